"""How good the guard is: precision and recall on 400 true and mutated claims it was not tuned on.

A case counts as found when it would be penalised: contradicted, or with a source that leads
nowhere. The figures stand in docs/grounding.md; the least that is promised stands here.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from acp_spec.model.calls import Claim, SettledCall
from acp_spec.model.payload import payload
from gateway.rewards.grounding.claims import Judged, judged
from gateway.rewards.grounding.findings import Standing
from gateway.rewards.grounding.tests.claim_bases import TRACES, hotline
from gateway.rewards.grounding.tests.claim_cases import (
    HELD_OUT,
    TUNED,
    Labelled,
    held_out,
    labelled,
    read,
    tuned,
)
from gateway.rewards.grounding.tests.mutations import Draw, as_it_was

PRECISION_MIN = 0.95
RECALL_MIN = 0.9


def _judged(case: Labelled) -> Judged:
    calls = {
        call: SettledCall(call_id=call, output=payload(output.encode()))
        for call, output in case.outputs
    }
    claim = Claim(
        text=case.text,
        value=payload(case.value.encode()),
        unit=case.unit,
        derivation=case.derivation,
        sources=case.sources,
    )
    return judged(claim, calls)


def _penalised(found: Judged) -> bool:
    return found.standing is Standing.AGAINST or bool(found.missing)


def _figures(cases: list[Labelled]) -> tuple[float, float, float]:
    """Precision, recall, and the share of true claims that are supported."""
    found = [(case.is_true, _judged(case)) for case in cases]
    hits = sum(not true and _penalised(one) for true, one in found)
    alarms = sum(_penalised(one) for _, one in found)
    supported = sum(true and one.standing is Standing.STANDS for true, one in found)
    false, trues = sum(not true for true, _ in found), sum(true for true, _ in found)
    return hits / alarms, hits / false, supported / trues


def test_on_the_held_out_half_it_is_as_good_as_promised() -> None:
    cases = read(HELD_OUT)
    assert len(cases) == 400
    precision, recall, supported = _figures(cases)
    assert precision >= PRECISION_MIN
    assert recall >= RECALL_MIN
    assert supported >= 0.95, "true claims are not only left alone: they are supported"


def test_on_the_half_it_was_tuned_on_it_is_not_worse() -> None:
    precision, recall, _ = _figures(read(TUNED))
    assert precision >= PRECISION_MIN
    assert recall >= RECALL_MIN


def test_the_fixtures_are_what_the_generator_draws() -> None:
    assert read(TUNED) == tuned()
    assert read(HELD_OUT) == held_out()


def test_the_rows_of_the_public_trace_are_its_own(data_file: Callable[[str], Path]) -> None:
    lines = data_file("azure_llm_traces/conv.csv").read_text("utf-8").splitlines()[1:]
    rows = {(time[:19], int(context), int(made)) for time, context, made in map(_cells, lines)}
    assert set(TRACES) <= rows


def _cells(line: str) -> tuple[str, str, str]:
    time, context, made = line.split(",")
    return time, context, made


def test_no_call_and_no_seed_is_in_both_halves() -> None:
    halves = [{output for case in read(path) for _, output in case.outputs[:1]}
              for path in (TUNED, HELD_OUT)]  # fmt: skip
    assert not halves[0] & halves[1]
    unseen = {case.mutation for case in read(HELD_OUT)} - {case.mutation for case in read(TUNED)}
    assert len(unseen) >= 10, "the held-out half is wrong in ways that were not tuned on"


@pytest.mark.parametrize("action", sorted({base.action for base in hotline()}))
def test_the_hotlines_own_claims_are_all_supported(action: str) -> None:
    for base in hotline():
        case = as_it_was(base, Draw(""))
        if base.action == action and case is not None:
            found = _judged(labelled(case, "as_it_was", is_true=True))
            assert found.standing is Standing.STANDS, (base.text, found.reason)
