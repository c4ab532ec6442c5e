"""What the checker remembers of sessions: counted by itself, from events and sends alone."""

from dataclasses import dataclass, field
from typing import Final

from acp_spec.model.enums import SessionStatus, SideEffect, StepStatus
from gateway.engine.events import AnyEvent, AttemptEnded, AttemptStarted
from gateway.engine.states import SessionState

NO_VERSION: Final = (0, 0, 0)


@dataclass(slots=True, eq=False)
class CallBook:
    """One call. `number`: the latest attempt that was started; `out`: those that have not ended,
    two while one has a hedge beside it."""

    number: int = 0
    out: set[int] = field(default_factory=set)
    sent: int = 0
    started_at: int = 0
    syncs_at_start: int = 0
    """How many the disk had ended when its latest attempt was admitted."""
    first_sent_ms: int | None = None
    least_lease: int | None = None
    doubtful: bool = False
    """Some sent attempt may have done it: its side effect is not known to be none."""
    body: bytes = b""
    digest: str = ""
    outcome: tuple[StepStatus, bytes] | None = None

    def ends(self, event: AttemptEnded) -> None:
        self.out.discard(event.attempt)
        if not event.not_sent and event.side_effect is not SideEffect.NONE:
            self.doubtful = True

    def starts(self, event: AttemptStarted, sequence: int, *, syncs: int) -> None:
        self.number = event.attempt
        self.syncs_at_start = syncs
        self.out.add(event.attempt)
        self.started_at = sequence
        if self.first_sent_ms is None:
            self.first_sent_ms = event.at_ms
        self.least_lease = min(event.lease, self.least_lease or event.lease)


@dataclass(slots=True, eq=False)
class SessionBook:
    """One session. Sequences are those of its journal."""

    number: str
    sequence: int = 0
    version: tuple[int, int, int] = NO_VERSION
    at_ms: int = 0
    written: int = 0
    durable: int = 0
    status: SessionStatus = SessionStatus.RUNNING
    budget: int = 0
    retries: int = 0
    spent: int = 0
    calls: dict[str, CallBook] = field(default_factory=dict)
    records: set[int] = field(default_factory=set)
    faults: set[str] = field(default_factory=set)
    state: SessionState | None = None
    end: int = 0
    is_over: bool = False
    is_erased: bool = False

    # What the clients were told; a crash takes none of it back.
    acknowledged: int = 0
    told_status: SessionStatus | None = None
    is_told_erased: bool = False
    is_cancelled: bool = False
    waits: dict[str, float] = field(default_factory=dict)
    """Calls that were put off, since when."""

    def forget_life(self) -> None:
        """A life ended: what the next one finds is read from its journal, event by event."""
        self.sequence = 0
        self.version = NO_VERSION
        self.at_ms = 0
        self.status = SessionStatus.RUNNING
        self.retries = self.spent = 0
        self.calls = {}
        self.records = set()
        self.is_over = self.is_cancelled = False
        self.waits = {}
        self.state = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A law that did not hold."""

    law: str
    what: str
    session: str
    at_s: float


def call_of(event: AnyEvent) -> str:
    """The call that an event is about; empty for the session's own events."""
    return getattr(event, "call_id", "")
