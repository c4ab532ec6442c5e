"""What can differ between two windows, as players of one game, and the tables that say how.

Players: each component that does not simply always answer the same, the mix of `inputs`, the
`workflow` (where its version changed), and the `judging` of equal outcomes. A component whose
outcome is the same for equal input in both windows is *settled*: it contributes nothing, exactly.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from gateway.insight.histories import (
    BASELINE,
    NEW,
    WINDOWS,
    Asked,
    Counts,
    Histories,
    Path,
    Vector,
    nodes_of,
    share_of,
)
from gateway.insight.samples import SessionSample

INPUTS, WORKFLOW, JUDGING = "(inputs)", "(workflow)", "(judging)"
"""Players that are no component; a component's name has no parentheses."""

Shares: TypeAlias = dict[tuple[str, str], list[tuple[str, Vector]]]
Ways: TypeAlias = dict[int, list[tuple[Asked | None, Vector]]]
Judged: TypeAlias = dict[int, Vector]
"""Per whole history two rows: 1 where it was seen, and the mean reward there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mechanisms:
    """Tables by window. `bits`: each player's bit in a coalition's number.

    `settled`: players that always answer the same; what they came to is known for work that both
    windows saw. `goes_on` and `judged` have one table for both windows where nothing changed.
    """

    histories: Histories
    bits: Mapping[str, int]
    player_of: Mapping[str, str]
    settled: frozenset[str]
    shares: tuple[Shares, Shares]
    shares_of_both: Shares
    goes_on: tuple[Ways, Ways]
    judged: tuple[Judged, Judged]
    reach: Sequence[int]
    """Per history the bits of the players that can still matter after it."""

    @property
    def players(self) -> tuple[str, ...]:
        return tuple(self.bits)

    def window(self, player: str, coalition: int) -> int:
        """Which window this player behaves as."""
        return NEW if coalition & self.bits[player] else BASELINE


def mechanisms(
    paths: Sequence[Sequence[Path]],
    sessions: Sequence[Sequence[SessionSample]],
    *,
    histories: Histories,
) -> Mechanisms:
    """The tables of both windows, and who plays."""
    player_of = players_by_link(one for window in sessions for one in window)
    outcomes = tuple(_outcomes(one) for one in paths)
    settled = frozenset(_settled(outcomes, player_of))
    workflow_changed = len({frozenset(s.workflow for s in window) for window in sessions}) > 1
    rewards = _rewards(sessions, histories)
    judging_differs = any(low != high for low, high in rewards)
    players = [one for one in sorted(set(player_of.values())) if one not in settled]
    players += [WORKFLOW] * workflow_changed + [JUDGING] * judging_differs + [INPUTS]
    bits = {player: 1 << place for place, player in enumerate(players)}
    groups = paths if workflow_changed else [[*paths[BASELINE], *paths[NEW]]] * 2
    judges = paths if judging_differs else [[*paths[BASELINE], *paths[NEW]]] * 2
    return Mechanisms(
        histories=histories,
        bits=bits,
        player_of=player_of,
        settled=settled,
        shares=(outcomes[BASELINE].shares(), outcomes[NEW].shares()),
        shares_of_both=_of_both(outcomes, player_of, settled=settled),
        goes_on=(_goes_on(groups[BASELINE]), _goes_on(groups[NEW])),
        judged=(_judged(judges[BASELINE]), _judged(judges[NEW])),
        reach=_reach(paths, histories, bits=bits, player_of=player_of),
    )


def players_by_link(sessions: Iterable[SessionSample]) -> dict[str, str]:
    """Per kind of work its player: the component, or all that did the same work, joined by `+`."""
    names: dict[str, set[str]] = {}
    for session in sessions:
        for step in session.steps:
            names.setdefault(step.link, set()).add(step.component)
    groups: list[set[str]] = []
    for served in names.values():
        touching = [group for group in groups if group & served]
        groups = [group for group in groups if not group & served]
        groups.append(served.union(*touching))
    name_of = {one: "+".join(sorted(group)) for group in groups for one in group}
    return {link: name_of[next(iter(served))] for link, served in names.items()}


_Outcomes: TypeAlias = Counts[tuple[str, str], str]


def _outcomes(paths: Sequence[Path]) -> _Outcomes:
    counts: _Outcomes = Counts()
    for path in paths:
        for asked, step in zip(path.asked, path.steps, strict=True):
            counts.add(asked.work, step.came, weight=path.weight)
    return counts


def _settled(outcomes: Sequence[_Outcomes], player_of: Mapping[str, str]) -> set[str]:
    """Players that gave one and the same outcome for each work, in both windows."""
    seen: dict[tuple[str, str], set[str]] = {}
    for one in outcomes:
        for work, came in one.by_key.items():
            seen.setdefault(work, set()).update(came)
    return set(player_of.values()) - {player_of[w[0]] for w, came in seen.items() if len(came) > 1}


def _of_both(
    outcomes: Sequence[_Outcomes], player_of: Mapping[str, str], *, settled: frozenset[str]
) -> Shares:
    """What settled players come to: certain where both windows saw the work, else unknown."""
    found: Shares = {}
    for work, came in outcomes[BASELINE].by_key.items():
        if player_of[work[0]] in settled and work in outcomes[NEW].by_key:
            seen = np.minimum(*(np.asarray(outcomes[w].total(work)) for w in WINDOWS))
            found[work] = [(next(iter(came)), (seen > 0).astype(np.float64))]
    return found


def _rewards(
    sessions: Sequence[Sequence[SessionSample]], histories: Histories
) -> list[tuple[float, float]]:
    """Per whole history the least and the greatest reward in either window."""
    found: dict[int, tuple[float, float]] = {}
    for session in (one for window in sessions for one in window):
        assert session.reward is not None
        node = nodes_of(histories, given=session.given, steps=session.steps)[-1]
        low, high = found.get(node, (session.reward, session.reward))
        found[node] = min(low, session.reward), max(high, session.reward)
    return list(found.values())


def _goes_on(paths: Iterable[Path]) -> Ways:
    counts: Counts[int, Asked | None] = Counts()
    for path in paths:
        for node, asked in zip(path.nodes, (*path.asked, None), strict=True):
            counts.add(node, asked, weight=path.weight)
    return counts.shares()


def _judged(paths: Iterable[Path]) -> Judged:
    weights: dict[int, Vector] = {}
    sums: dict[int, Vector] = {}
    for path in paths:
        end, earned = path.nodes[-1], path.weight * path.reward
        weights[end] = weights[end] + path.weight if end in weights else path.weight
        sums[end] = sums[end] + earned if end in sums else earned
    return {
        end: np.stack([(weight > 0).astype(np.float64), share_of(sums[end], weight)])
        for end, weight in weights.items()
    }


def _reach(
    paths: Sequence[Sequence[Path]],
    histories: Histories,
    *,
    bits: Mapping[str, int],
    player_of: Mapping[str, str],
) -> list[int]:
    """Per history the players after it: values below it are the same for all others' behaviour."""
    nodes = histories.deepest_first()
    reach = [bits.get(JUDGING, 0) | bits.get(WORKFLOW, 0)] * len(nodes)
    for path in (one for window in paths for one in window):
        for node, step in zip(path.nodes, path.steps, strict=False):
            reach[node] |= bits.get(player_of[step.link], 0)
    for node in nodes:
        for child in histories.below.get(node, ()):
            reach[node] |= reach[child]
    return reach
