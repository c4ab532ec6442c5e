"""A plan's sub-goals: which are ready, which never run, and the arguments of those that do.

Data moves by JSON Pointer, byte for byte; `when` is a plain comparison of JSON values (SPEC
section 3). A pointer that does not resolve fails that sub-goal, before anything is sent.
"""

from collections.abc import Callable

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.codec.json_text import PointerError, find, splice
from acp_spec.model.enums import Boundary, Operator, SideEffect, StepStatus
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.payload import is_absent
from acp_spec.model.plan import Plan, SubGoal, When
from gateway.engine.states import SessionState, StepState

ENDED = (StepStatus.SUCCEEDED, StepStatus.FAILED, StepStatus.SKIPPED, StepStatus.CANCELLED)

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class Skip(msgspec.Struct, frozen=True):
    """The sub-goal never runs: why, as the error that stands in `results`."""

    status: StepStatus
    error: AcpError


def ready(plan: Plan, entry: StepState) -> list[SubGoal]:
    """Sub-goals not begun whose dependencies have all ended, in the plan's order."""
    return [
        goal
        for goal in plan.sub_goals
        if goal.id not in entry.sub_goals
        and all(
            name in entry.sub_goals and entry.sub_goals[name].status in ENDED
            for name in goal.depends_on
        )
    ]


def skip(state: SessionState, step: str, *, entry: StepState, goal: SubGoal) -> Skip | None:
    """Why this ready sub-goal does not run; None when it does."""
    for name in goal.depends_on:
        status = entry.sub_goals[name].status
        if status is not StepStatus.SUCCEEDED:
            message = f"not run: sub-goal {name!r}, which it depends on, is {status.value}"
            return _skipped(message)
    for when in goal.when:
        if not holds(when, _output(state, step, goal=when.from_)):
            pointer = when.pointer or "the output"
            return _skipped(f"not run: {pointer} of {when.from_!r} is not {when.op.value}")
    return None


def _skipped(message: str) -> Skip:
    failure = error(Reason.CANCELLED, message, boundary=Boundary.GATEWAY)
    return Skip(StepStatus.SKIPPED, msgspec.structs.replace(failure, side_effect=SideEffect.NONE))


def arguments(state: SessionState, step: str, *, goal: SubGoal) -> bytes | AcpError:
    """The arguments with every binding spliced in, or why that cannot be."""
    text = b"{}" if is_absent(goal.arguments) else bytes(goal.arguments)
    for binding in goal.bindings:
        source = _output(state, step, goal=binding.from_)
        value = _found(source, binding.pointer)
        if value is None:
            where = f"pointer {binding.pointer!r} in the output of {binding.from_!r}"
            return _violation(f"sub-goal {goal.id!r}: {where} does not resolve")
        try:
            text = splice(text, binding.to, value=value)
        except PointerError as problem:
            return _violation(f"sub-goal {goal.id!r}: cannot write at {binding.to!r}: {problem}")
    return text


def _violation(message: str) -> AcpError:
    return error(
        Reason.CONTRACT_VIOLATION,
        message,
        side_effect=SideEffect.NONE,
        boundary=Boundary.GATEWAY,
    )


def _output(state: SessionState, step: str, *, goal: str) -> bytes:
    call = state.call_of(step, goal)
    return b"" if call is None or is_absent(call.output) else bytes(call.output)


def _found(source: bytes, pointer: str) -> bytes | None:
    try:
        return find(source, pointer) if source else None
    except PointerError:
        return None


def holds(when: When, source: bytes) -> bool:
    """Does the comparison hold? What is missing, or not comparable, does not hold."""
    found = _found(source, when.pointer)
    if when.op is Operator.EXISTS:
        wanted = is_absent(when.value) or bytes(when.value) != b"false"
        return (found is not None) is wanted
    if found is None or is_absent(when.value):
        return False
    try:
        return COMPARE[when.op](_value(found), _value(bytes(when.value)))
    except msgspec.DecodeError:
        return False  # a number beyond every double or thousands of digits long: not comparable


def _value(text: bytes) -> Json:
    value: Json = msgspec.json.decode(text)
    return value


def _order(compare: Callable[[float | str, float | str], bool]) -> Callable[[Json, Json], bool]:
    def ordered(left: Json, right: Json) -> bool:
        if isinstance(left, str) and isinstance(right, str):
            return compare(left, right)
        numbers = _number(left), _number(right)
        return None not in numbers and compare(numbers[0] or 0, numbers[1] or 0)

    return ordered


def _number(value: Json) -> float | int | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _equal(left: Json, right: Json) -> bool:
    """JSON's equality: 1 and 1.0 are equal, 1 and true are not, however deep they lie."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        pairs = zip(left, right, strict=False)
        return len(left) == len(right) and all(_equal(a, b) for a, b in pairs)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(left[k], right[k]) for k in left)
    return left == right


COMPARE: dict[Operator, Callable[[Json, Json], bool]] = {
    Operator.EQ: _equal,
    Operator.NE: lambda left, right: not _equal(left, right),
    Operator.LT: _order(lambda left, right: left < right),  # type: ignore[operator]
    Operator.LE: _order(lambda left, right: left <= right),  # type: ignore[operator]
    Operator.GT: _order(lambda left, right: left > right),  # type: ignore[operator]
    Operator.GE: _order(lambda left, right: left >= right),  # type: ignore[operator]
    Operator.IN: lambda left, right: (
        isinstance(right, list) and any(_equal(left, item) for item in right)
    ),
}
