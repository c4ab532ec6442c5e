"""v(S): the mean reward had the players in S behaved as in the new window, the rest as before.

Every session is walked on its own record while it may be; where a player of the other window could
have answered otherwise, the walk goes on in the histories on record. A way that nobody ever took is
uncovered: no guess is made for it.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from gateway.insight.histories import WINDOWS, Asked, Path, Vector
from gateway.insight.mechanisms import INPUTS, JUDGING, WORKFLOW, Mechanisms

COVERED_LEAST = 0.5
"""A session counts if at least this share of what could happen in it is on record, under every
coalition; what is not is then taken to be like what is."""

KNOWN_MAX = 20_000
"""Values of histories that are remembered at once: some 3 KB each."""

Value: TypeAlias = npt.NDArray[np.float64]
"""Two rows: the share that is covered, and the reward summed over it; a column per resample."""


class Game:
    """All coalitions' values over the same sessions: those that every coalition covers."""

    def __init__(self, mechanisms: Mechanisms, paths: Sequence[Sequence[Path]]) -> None:
        self._of = mechanisms
        self._paths = paths
        self._known: dict[tuple[int, int], Value] = {}
        self._none = np.zeros((2, len(paths[0][0].weight)))

    def covers(self, coalitions: Iterable[int], *, enough: float) -> tuple[Vector, Vector]:
        """Per window and path the least share covered under any of them, on the records as they
        are. Stops once less than `enough` of a window is covered: it only gets less."""
        least = np.ones(len(self._paths[0])), np.ones(len(self._paths[1]))
        for coalition in coalitions:
            window = self._of.window(INPUTS, coalition)
            for place, path in enumerate(self._paths[window]):
                covered = float(self._own(path, coalition)[0, 0])
                least[window][place] = min(least[window][place], covered)
            if self.coverage(window, least[window]) < enough:
                break
        return least

    def coverage(self, window: int, covered: Vector) -> float:
        """The share of the window's sessions, each by how much of it is covered."""
        weights = np.array([path.weight[0] for path in self._paths[window]])
        counted = np.where(covered >= COVERED_LEAST, covered, 0.0)
        return float((weights * counted).sum() / weights.sum())

    def value(self, coalition: int, covered: Sequence[Vector]) -> Vector:
        """The mean over what is covered: of the records, then of each resample."""
        window = self._of.window(INPUTS, coalition)
        total, earned = np.zeros_like(self._none)
        for path, share in zip(self._paths[window], covered[window], strict=True):
            if share >= COVERED_LEAST:
                value = self._own(path, coalition)
                enough = value[0] >= COVERED_LEAST
                weight = np.where(enough, path.weight, 0.0)
                total += weight
                earned += weight * value[1] / np.where(enough, value[0], 1.0)
        return np.divide(earned, total, out=np.full_like(total, np.nan), where=total > 0)

    # ---- on a session's own record -------------------------------------------------------------

    def _own(self, path: Path, coalition: int) -> Value:
        """From the end back: what its own record gives, mixed with what else could have come."""
        if self._is_own(JUDGING, path, coalition=coalition):
            value = np.stack([np.ones_like(path.reward), path.reward])
        else:
            value = self._end(path.nodes[-1], coalition)
        value = self._going_on(path, len(path.steps), own=value, coalition=coalition)
        for place in reversed(range(len(path.steps))):
            value = self._answered(path, place, own=value, coalition=coalition)
            value = self._going_on(path, place, own=value, coalition=coalition)
        return value

    def _answered(self, path: Path, place: int, *, own: Value, coalition: int) -> Value:
        step, asked = path.steps[place], path.asked[place]
        player = self._of.player_of[step.link]
        if player not in self._of.settled and self._is_own(player, path, coalition=coalition):
            return own
        return self._mixed(path.nodes[place], asked, coalition=coalition, own=(step.came, own))

    def _going_on(self, path: Path, place: int, *, own: Value, coalition: int) -> Value:
        if self._is_own(WORKFLOW, path, coalition=coalition):
            return own
        taken = path.asked[place] if place < len(path.steps) else None
        node, found = path.nodes[place], self._none.copy()
        for asked, share in self._of.goes_on[self._window(WORKFLOW, coalition)].get(node, ()):
            found += share * (
                own if asked == taken else self._asked(node, asked, coalition=coalition)
            )
        return found

    def _is_own(self, player: str, path: Path, *, coalition: int) -> bool:
        """It behaves as in the window that the path is from; who does not play always does."""
        plays = player in self._of.bits
        return not plays or self._of.window(player, coalition) == path.window

    # ---- where a session has left its record ---------------------------------------------------

    def _from(self, node: int, coalition: int) -> Value:
        """What comes of a history, whoever's it was; remembered for all coalitions alike to it."""
        key = node, coalition & self._of.reach[node]
        found = self._known.get(key)
        if found is None:
            found = self._none.copy()
            for asked, share in self._of.goes_on[self._window(WORKFLOW, coalition)].get(node, ()):
                found += share * self._asked(node, asked, coalition=coalition)
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[key] = found
        return found

    def _asked(self, node: int, asked: Asked | None, *, coalition: int) -> Value:
        if asked is None:
            return self._end(node, coalition)
        return self._mixed(node, asked, coalition=coalition)

    def _mixed(
        self, node: int, asked: Asked, *, coalition: int, own: tuple[str, Value] | None = None
    ) -> Value:
        """Over all outcomes that the player of this step is known to give for such work."""
        player = self._of.player_of[asked.link]
        if player in self._of.settled:
            outcomes = self._of.shares_of_both.get(asked.work, ())
        else:
            outcomes = self._of.shares[self._window(player, coalition)].get(asked.work, ())
        found = self._none.copy()
        for came, share in outcomes:
            if own is not None and came == own[0]:
                found += share * own[1]
                continue
            child = self._of.histories.child(node, asked, came=came)
            if child is not None:
                found += share * self._from(child, coalition)
        return found

    def _end(self, node: int, coalition: int) -> Value:
        return self._of.judged[self._window(JUDGING, coalition)].get(node, self._none)

    def _window(self, player: str, coalition: int) -> int:
        """Of tables that are the same for both, either one."""
        return self._of.window(player, coalition) if player in self._of.bits else WINDOWS[0]
