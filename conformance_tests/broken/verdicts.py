"""What a run against a broken peer says: was that rule caught alone, and for its reason?"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from conformance_tests.broken.peers import Broken
from conformance_tests.runner.requirements import Party
from conformance_tests.runner.results import Outcome, Result, Run, Verdict

SHOWN_MAX = 700


@dataclass(frozen=True, slots=True, kw_only=True)
class Caught:
    """One broken peer after its run; plain values, for it crosses processes."""

    requirement: str
    party: Party
    killed: bool
    for_its_reason: bool
    said: str


def judge(party: Party, peer: Broken, *, run: Run) -> Caught:
    """`killed`: its checks failed and no other MUST's, but for those that cannot but fail."""
    failures = [result for result in run.results if result.verdict is Verdict.FAILURE]
    failed = {result.requirement.id for result in failures}
    foreign = failed - {peer.requirement} - set(peer.fails_with)
    missing = [id_ for id_ in peer.fails_with if id_ not in failed]
    said = " / ".join(_shown(failures, peer.requirement)) or "nothing failed"
    if foreign or run.problems:
        others = [f"{r.id}: {r.why}" for r in failures if r.requirement.id in foreign]
        said = f"others failed too: {'; '.join([*others, *run.problems])}"[:SHOWN_MAX]
    elif missing:
        said = f"{missing} is said to fail with it and does not"
    killed = peer.requirement in failed and not foreign and not run.problems and not missing
    whys = [result.why for result in failures if result.requirement.id == peer.requirement]
    return Caught(
        requirement=peer.requirement,
        party=party,
        killed=killed,
        for_its_reason=killed and all(re.search(peer.because, why) for why in whys),
        said=said,
    )


def _shown(failures: Iterable[Result], requirement: str) -> list[str]:
    return [r.why[:200] for r in failures if r.requirement.id == requirement][:3]


def not_green(run: Run) -> str:
    """Why a correct peer is not one; empty when it is."""
    wrong = [f"{r.id}: {r.why}" for r in run.results if r.outcome is not Outcome.PASSED]
    return "; ".join([*wrong, *run.problems])[:SHOWN_MAX]
