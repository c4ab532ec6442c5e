"""The state of a session: a pure fold of its events, and the questions one may ask of it.

Values are replaced, never changed in place: `evolve` gives a state whose maps may be written while
the old state stays as it was. Nothing here decides; `step` and `advance` do.
"""

import enum

import msgspec

from acp_spec.model.calls import Memory, ReflectResponse
from acp_spec.model.enums import (
    TERMINAL_SESSION,
    SessionStatus,
    SideEffect,
    StepStatus,
)
from acp_spec.model.errors import AcpError
from acp_spec.model.payload import ABSENT, Payload
from acp_spec.model.plan import Plan
from acp_spec.model.recovery import Decision, Trigger
from acp_spec.model.session import Deviation
from gateway.engine.definition import Step, Workflow
from gateway.engine.events import (
    AttemptEnded,
    AttemptStarted,
    CallCreated,
    FeedbackGiven,
    Late,
    Opened,
    OperationEnded,
    Refused,
)

RETRIES_PER_CALL = 2

OPERATION_LIMIT_MS = 24 * 60 * 60 * 1000
"""Of an operation whose card names no limit: its session's deadline stands still, so one is due."""


class Phase(enum.Enum):
    """Where a call is between its creation and its one outcome."""

    READY = "READY"
    SENT = "SENT"
    DECIDING = "DECIDING"
    BACKOFF = "BACKOFF"
    OPERATION = "OPERATION"
    SETTLED = "SETTLED"


class AttemptState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One attempt: started unless refused, ended unless it is in flight."""

    number: int
    queued_at_ms: int
    started: AttemptStarted | None = None
    ended: AttemptEnded | None = None
    refused: Refused | None = None
    operation: OperationEnded | None = None
    late: Late | None = None
    side_effect: SideEffect = SideEffect.UNKNOWN
    budget_left: int = 0


class CallState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    created: CallCreated
    phase: Phase = Phase.READY
    status: StepStatus = StepStatus.RUNNING
    number: int = 1
    attempts: tuple[AttemptState, ...] = ()
    response: Payload = ABSENT
    output: Payload = ABSENT
    error: AcpError | None = None
    side_effect: SideEffect = SideEffect.NONE
    retries_left: int = RETRIES_PER_CALL
    queued_at_ms: int = 0
    first_sent_ms: int | None = None
    resume_at_ms: int = 0
    trigger: Trigger = Trigger.FAILED
    decisions: int = 0
    cancelling: bool = False
    operation_since_ms: int = 0
    stands_on: int = 0
    """Of two attempts the one that ended last, if that is not the latest; else 0."""

    @property
    def open(self) -> bool:
        return self.phase is not Phase.SETTLED

    @property
    def operation_limit_ms(self) -> int:
        """How long this call may run as an operation."""
        return self.created.operation_timeout_ms or OPERATION_LIMIT_MS

    @property
    def lease_most(self) -> int:
        """What the next attempt may be lent: never more than an earlier one was (CTX-012)."""
        lent = [attempt.started.lease for attempt in self.attempts if attempt.started is not None]
        return min([self.retries_left, *lent])

    @property
    def attempt(self) -> AttemptState | None:
        """The attempt that the call stands on: the latest, or of two the last to end."""
        if self.stands_on:
            return self.numbered(self.stands_on)
        return self.attempts[-1] if self.attempts else None

    @property
    def in_flight(self) -> tuple[AttemptState, ...]:
        """The attempts that are out: one, or two while a hedge runs."""
        attempts = self.attempts
        if len(attempts) == 1:  # most calls have one, and are asked this often
            only = attempts[0]
            return attempts if only.started is not None and only.ended is None else ()
        return tuple([a for a in attempts if a.started is not None and a.ended is None])

    def started(self, number: int) -> AttemptStarted | None:
        """How the attempt of this number was started; None if it was not."""
        for attempt in reversed(self.attempts):
            if attempt.number == number:
                return attempt.started
        return None

    def superseded(self, number: int) -> bool:
        """Whether the attempt of this number was ended because another one answered first."""
        attempt = self.numbered(number)
        ended = attempt.ended if attempt else None
        return ended is not None and ended.superseded_by > 0

    def is_out(self, number: int) -> bool:
        """Whether the attempt of this number may still be answered."""
        if self.phase is not Phase.SENT:
            return False
        attempt = self.numbered(number)
        return attempt is not None and attempt.started is not None and attempt.ended is None

    def numbered(self, number: int) -> AttemptState | None:
        """The attempt of this number, if it was started or refused."""
        for attempt in reversed(self.attempts):
            if attempt.number == number:
                return attempt
        return None

    def with_attempt(self, changed: AttemptState) -> tuple[AttemptState, ...]:
        """All attempts, with this one as it is now."""
        if len(self.attempts) == 1 and self.attempts[0].number == changed.number:
            return (changed,)
        return tuple([changed if a.number == changed.number else a for a in self.attempts])


class SubGoalState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A sub-goal of the current pass: its call, or how it ended without one."""

    call_id: str = ""
    status: StepStatus = StepStatus.RUNNING
    error: AcpError | None = None


class StepState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`generation` counts the passes through this step; `redo` the re-done calls per sub-goal."""

    status: StepStatus = StepStatus.PENDING
    generation: int = 0
    sub_goals: dict[str, SubGoalState] = {}
    redo: dict[str, int] = {}
    retry_of: dict[str, str] = {}
    error: AcpError | None = None
    reason: str = ""


class Ending(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The session will end so once no call is open; `fall_back` asks for the fallback's output.

    `fell_back`: this output is one already (of a business fallback, R15).
    """

    status: SessionStatus
    error: AcpError | None = None
    output: Payload = ABSENT
    fall_back: bool = False
    fell_back: bool = False


class PlanState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    step: str
    generation: int
    call_id: str
    plan: Plan
    rationale: str = ""
    confidence: float | None = None


class ReflectionState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    step: str
    call_id: str
    loop: int
    response: ReflectResponse
    refused_retries: tuple[str, ...] = ()


class FeedbackState(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    given: FeedbackGiven
    version: str


class SessionState(msgspec.Struct, kw_only=True, gc=False):
    """Everything about one session. Treated as a value: only `step` makes a new one."""

    workflow: Workflow | None
    opened: Opened
    status: SessionStatus = SessionStatus.RUNNING
    now_ms: int = 0
    sequence: int = 0
    version: tuple[int, int, int] = (0, 0, 0)
    position: int = 0
    loop: int = 0
    steps: dict[str, StepState] = {}
    calls: dict[str, CallState] = {}
    variables: dict[str, Payload] = {}
    memory: tuple[Memory, ...] = ()
    plans: tuple[PlanState, ...] = ()
    plan_of: dict[str, Plan] = {}
    reflections: tuple[ReflectionState, ...] = ()
    decisions: tuple[Decision, ...] = ()
    feedback: dict[tuple[str, str, int, str, str], FeedbackState] = {}
    feedback_log: list[FeedbackState] = []
    deviations: tuple[Deviation, ...] = ()
    manual: dict[str, str] = {}
    budget_left: int = 0
    deadline_at_ms: int = 0
    paused_since_ms: int | None = None
    critique: str = ""
    ending: Ending | None = None
    output: Payload = ABSENT
    error: AcpError | None = None
    fell_back: bool = False
    ended_at_ms: int | None = None
    erased: bool = False
    commanded: bytes = b""
    """What `commanded` keeps of every command so far: a replay must come to it again."""

    @property
    def session_id(self) -> str:
        return self.opened.session_id

    @property
    def terminal(self) -> bool:
        return self.status in TERMINAL_SESSION

    @property
    def version_text(self) -> str:
        return "{}.{}.{}".format(*self.version)

    @property
    def current_step(self) -> Step | None:
        """The workflow step the session stands at; None past the last, or without a workflow."""
        if self.workflow is None or self.position >= len(self.workflow.steps):
            return None
        return self.workflow.steps[self.position]

    def deadline_at(self, now_ms: int) -> int:
        """When the session's time is over, as it looks now; 0 without a deadline.

        While a long operation runs the clock stands still (SPEC 9.5): the end moves along.
        """
        if not self.deadline_at_ms or self.paused_since_ms is None:
            return self.deadline_at_ms
        return self.deadline_at_ms + max(0, now_ms - self.paused_since_ms)

    def plan_in(self, step: str) -> Plan | None:
        """The plan that this pass of a plan step gave; None when it failed, or was skipped."""
        entry = self.steps.get(step)
        succeeded = entry is not None and entry.status is StepStatus.SUCCEEDED
        return self.plan_of.get(step) if succeeded else None

    def open_calls(self) -> list[CallState]:
        """Calls that have no outcome yet, in the order they were created."""
        return [call for call in self.calls.values() if call.open]

    def call_of(self, step: str, sub_goal: str = "") -> CallState | None:
        """The call of this pass for that step (and sub-goal), if it was created."""
        state = self.steps.get(step)
        found = state.sub_goals.get(sub_goal) if state else None
        return self.calls.get(found.call_id) if found and found.call_id else None


def evolve(state: SessionState) -> SessionState:
    """A new state to write to: its maps and lists are copies, the old one stays as it was."""
    new = msgspec.structs.replace(state)
    new.steps = dict(state.steps)
    new.calls = dict(state.calls)
    new.feedback = state.feedback.copy()
    new.feedback_log = state.feedback_log.copy()
    return new


def parse_version(text: str) -> tuple[int, int, int] | None:
    """`plan.execution.feedback` as three counters; None when it has not that form."""
    parts = text.split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    return int(parts[0]), int(parts[1]), int(parts[2])


def version_met(version: tuple[int, int, int], least: tuple[int, int, int]) -> bool:
    """`min_version` is met when all three counters are at least as high (SPEC section 2)."""
    return all(have >= want for have, want in zip(version, least, strict=True))
