"""What came of the sessions: per component calls and times, per outcome sessions, what is wrong.

A call counts once per attempt that was sent. Times are from sending to the answer, as the gateway
measured them.
"""

from collections import Counter
from dataclasses import dataclass, field

import msgspec

from acp_spec.codec.json_text import find
from acp_spec.model.enums import SessionStatus
from acp_spec.model.payload import is_absent
from acp_spec.model.session import SessionView
from acp_spec.model.trajectory import Attempt, Trajectory

ANSWERED, HANDED_OVER, FELL_BACK = "answered", "handed over", "fell back"


@dataclass(slots=True)
class Calls:
    """The attempts that one component served."""

    ok: int = 0
    failed: int = 0
    took_ms: list[int] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        return self.ok + self.failed

    def add(self, row: Attempt) -> None:
        if row.error is None:
            self.ok += 1
        else:
            self.failed += 1
            self.reasons[row.error.reason] += 1
        if row.sent_at_ms is not None and row.ended_at_ms is not None:
            self.took_ms.append(row.ended_at_ms - row.sent_at_ms)

    def percentile_ms(self, share: float) -> int:
        """The time that this share of the calls did not exceed; 0 without calls."""
        if not self.took_ms:
            return 0
        ordered = sorted(self.took_ms)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(slots=True)
class Tally:
    """Sums over sessions; `example` is one worth looking at: with the most different components."""

    components: dict[str, Calls] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    unexpected: list[SessionView] = field(default_factory=list)
    example: SessionView | None = None
    _example_size: tuple[int, int] = (0, 0)

    def add(self, view: SessionView, trajectory: Trajectory) -> None:
        """Count one session that has ended."""
        self.outcomes[outcome_of(view)] += 1
        if view.status is not SessionStatus.SUCCEEDED:
            self.unexpected.append(view)
        sent = [row for row in trajectory.calls if row.component and row.sent_at_ms is not None]
        for row in sent:
            self.components.setdefault(row.component, Calls()).add(row)
        size = (len({row.component for row in sent}), len(sent))
        if size > self._example_size:
            self.example, self._example_size = view, size

    @property
    def sessions(self) -> int:
        return sum(self.outcomes.values())


def outcome_of(view: SessionView) -> str:
    """How it ended, for the customer."""
    if view.status is not SessionStatus.SUCCEEDED:
        return str(view.status.value)
    if view.fell_back:
        return FELL_BACK
    return HANDED_OVER if _member(view, "handover") is True else ANSWERED


def answer_of(view: SessionView) -> str:
    """What the customer is told."""
    answer = _member(view, "answer")
    if isinstance(answer, str):
        return answer
    return view.error.message if view.error else ""


def _member(view: SessionView, name: str) -> object:
    if is_absent(view.output):
        return None
    found = find(bytes(view.output), f"/{name}")
    value: object = None if found is None else msgspec.json.decode(found)
    return value
