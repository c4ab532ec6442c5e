"""A validated workflow, as the engine runs it: frozen, complete, every expression compiled.

Only `workflow_file` builds these. A value here needs no further check: references exist, names are
unique, limits hold. Nothing here knows YAML.
"""

import enum
from dataclasses import dataclass

from acp_spec.model.enums import StepRole, Verdict
from gateway.expressions.expression import Expression
from gateway.governance.contract import NO_CONTRACT, Contract

MAX_LOOPS_DEFAULT = 3
MAX_SUB_GOALS_DEFAULT = 10


class OnError(enum.Enum):
    """What a FAILED step does to the session (protocol section 8, "Ends")."""

    FAIL = "FAIL"
    CONTINUE = "CONTINUE"


class Require(enum.Enum):
    """When an execute step over a plan is FAILED: if all its sub-goals failed, or if any did."""

    ANY = "ANY"
    ALL = "ALL"


class PinMode(enum.Enum):
    """What happens when no pinned instance is left: go on with a deviation, or NO_COMPONENT."""

    PREFER = "PREFER"
    STRICT = "STRICT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """One line of a mapping: a request field, or a variable, and the expression that fills it.

    `line` and `column` are where the expression begins in the workflow file.
    """

    field: str
    expression: Expression
    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A step runs only if this is true; otherwise it is SKIPPED."""

    expression: Expression
    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """A recovery policy by name, with its own parameters as JSON text (an object)."""

    policy: str
    params: bytes = b"{}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fallback:
    """What a session ends with when a FALLBACK is called for."""

    output: Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one session; `deadline_ms` 0 leaves it to the caller or the gateway's default."""

    max_loops: int = MAX_LOOPS_DEFAULT
    max_sub_goals: int = MAX_SUB_GOALS_DEFAULT
    deadline_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step. Exactly one of `plan` and `action` is set for EXECUTE, neither for other roles.

    `component` empty means any that has the role (or offers the action); `version_range` empty
    means any release. `on` holds the earlier step to go back to per verdict. `timeout_ms` 0 is the
    default.
    `repeat`: in a later loop the call is sent again even if it would match one already done.
    """

    name: str
    role: StepRole
    description: str = ""
    component: str = ""
    version_range: str = ""
    plan: str = ""
    action: str = ""
    condition: Condition | None = None
    input_mapping: tuple[Mapping, ...] = ()
    output_mapping: tuple[Mapping, ...] = ()
    on: tuple[tuple[Verdict, str], ...] = ()
    on_error: OnError = OnError.FAIL
    require: Require = Require.ANY
    recovery: Recovery | None = None
    pin: PinMode | None = None
    timeout_ms: int = 0
    repeat: bool = False
    line: int = 0
    column: int = 0

    def target(self, verdict: Verdict) -> str | None:
        """The step that this verdict goes back to, if the workflow names one."""
        return next((step for on, step in self.on if on is verdict), None)

    def mapped(self, field: str) -> Mapping | None:
        """The line of the input mapping that fills `field`, if there is one."""
        return next((mapping for mapping in self.input_mapping if mapping.field == field), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workflow:
    """A whole workflow with its contract; `source_digest` is the hex SHA-256 of its file."""

    name: str
    version: str
    steps: tuple[Step, ...]
    output: Mapping | None = None
    limits: Limits = Limits()
    recovery: Recovery | None = None
    fallback: Fallback | None = None
    pin: PinMode = PinMode.PREFER
    contract: Contract = NO_CONTRACT
    description: str = ""
    source_digest: str = ""

    def step(self, name: str) -> Step | None:
        """The step of this name, or None."""
        return next((step for step in self.steps if step.name == name), None)

    def index(self, name: str) -> int:
        """The place of an existing step in the order of the list."""
        return next(place for place, step in enumerate(self.steps) if step.name == name)

    def recovery_of(self, step: Step) -> Recovery | None:
        """The step's own recovery policy, else the workflow's."""
        return step.recovery or self.recovery

    def pin_of(self, step: Step) -> PinMode:
        return step.pin or self.pin
