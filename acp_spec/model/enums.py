"""Closed vocabularies of ACP v1 (SPEC sections 1-8). The value is the JSON form: capitals, bare.

Enums are strict: an unknown value in a request is an error. What a *response* with an unknown value
reads as (`SAFEST`) is applied by the codec, never here.
"""

import enum
import operator
from typing import TYPE_CHECKING


class Word(enum.Enum):
    """A member is one object, so it hashes as one, and its value is read as an attribute.

    Enum itself runs Python code for both, 100 times in a session of four calls.
    """

    __hash__ = object.__hash__
    if not TYPE_CHECKING:
        value = property(operator.attrgetter("_value_"))


class Role(Word):
    PLANNER = "PLANNER"
    EXECUTOR = "EXECUTOR"
    OBSERVER = "OBSERVER"
    REFLECTOR = "REFLECTOR"


class StepRole(Word):
    """The four calls, as a workflow step names them (`role: plan`)."""

    PLAN = "PLAN"
    EXECUTE = "EXECUTE"
    OBSERVE = "OBSERVE"
    REFLECT = "REFLECT"


ROLE_OF_STEP: dict[StepRole, Role] = {
    StepRole.PLAN: Role.PLANNER,
    StepRole.EXECUTE: Role.EXECUTOR,
    StepRole.OBSERVE: Role.OBSERVER,
    StepRole.REFLECT: Role.REFLECTOR,
}


class Effect(Word):
    READ = "READ"
    WRITE = "WRITE"


class Idempotency(Word):
    NATURAL = "NATURAL"
    BY_KEY = "BY_KEY"
    NONE = "NONE"


class SideEffect(Word):
    NONE = "NONE"
    PERFORMED = "PERFORMED"
    UNKNOWN = "UNKNOWN"


class Boundary(Word):
    CLIENT = "CLIENT"
    GATEWAY = "GATEWAY"
    ADAPTER = "ADAPTER"
    COMPONENT = "COMPONENT"
    DOWNSTREAM = "DOWNSTREAM"


class Verdict(Word):
    ACCEPT = "ACCEPT"
    RETRY = "RETRY"
    REPLAN = "REPLAN"
    FALLBACK = "FALLBACK"
    ABORT = "ABORT"


class Kind(Word):
    """What an executor is: a program, or a language model (its own queue, cache-affine routing)."""

    TOOL = "TOOL"
    LLM = "LLM"


class Operator(Word):
    """Comparisons a plan may state in `when` (never an expression: SPEC section 3)."""

    EQ = "EQ"
    NE = "NE"
    LT = "LT"
    LE = "LE"
    GT = "GT"
    GE = "GE"
    EXISTS = "EXISTS"
    IN = "IN"


class CancelState(Word):
    STOPPED = "STOPPED"
    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    UNKNOWN_CALL = "UNKNOWN_CALL"


class HealthStatus(Word):
    SERVING = "SERVING"
    NOT_SERVING = "NOT_SERVING"


class OperationStatus(Word):
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class Transport(Word):
    HTTP = "HTTP"
    GRPC = "GRPC"
    ATTACH = "ATTACH"


class SessionStatus(Word):
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class StepStatus(Word):
    """Of a step, and of a sub-goal in `results[]`. PENDING and RUNNING: only while it runs."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"
    CANCELLED = "CANCELLED"


class Mode(Word):
    AUTOMATIC = "AUTOMATIC"
    MANUAL = "MANUAL"


class StepType(Word):
    """Of `execute_step` in a MANUAL session, and of the gateway's queues (mission R07)."""

    PLAN = "PLAN"
    TOOL = "TOOL"
    LLM = "LLM"


class FeedbackKind(Word):
    RATING = "RATING"
    COMMENT = "COMMENT"
    VALIDATION = "VALIDATION"
    OUTCOME = "OUTCOME"


TERMINAL_SESSION = frozenset(
    {SessionStatus.SUCCEEDED, SessionStatus.FAILED, SessionStatus.CANCELLED}
)

SAFEST: dict[type[enum.Enum], enum.Enum] = {
    Idempotency: Idempotency.NONE,
    Effect: Effect.WRITE,
    SideEffect: SideEffect.UNKNOWN,
    Boundary: Boundary.COMPONENT,
    Kind: Kind.TOOL,
    CancelState: CancelState.UNKNOWN_CALL,
    HealthStatus: HealthStatus.NOT_SERVING,
}
"""What an unknown value in a *response* reads as; not listed = CONTRACT_VIOLATION there."""
