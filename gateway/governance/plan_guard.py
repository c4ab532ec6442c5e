"""The contract's section `plan`: limits on plans, checked before anything of a plan runs (R10).

A limit that is not stated does not hold; how large a plan may be at all says the workflow's
`limits.max_sub_goals`. Which actions may be called at all says `allowed_actions`.
"""

import enum
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from acp_spec.codec.json_text import CanonicalError, canonical
from acp_spec.codec.yaml_tree import Mapping as MappingTree
from acp_spec.model.plan import Plan, SubGoal
from gateway.expressions.field_reader import Field, FieldReader

KEYS: Final = (
    "max_sub_goals", "max_depth", "max_calls", "max_arguments_bytes", "repetition", "on_reject",
)  # fmt: skip
ANY_ACTION: Final = "*"
"""In `max_calls`: of every action that has no line of its own."""
SUB_GOALS_MOST: Final = 1_000
ARGUMENTS_BYTES_MOST: Final = 4 * 1024 * 1024


class Repetition(enum.Enum):
    """May two sub-goals be the same: one action with the same arguments, bindings and `when`?"""

    ALLOWED = "ALLOWED"
    FORBIDDEN = "FORBIDDEN"


class OnReject(enum.Enum):
    """What follows a rejected plan: the step fails, or the planner is asked again with the reason
    as critique, at most `limits.max_loops` times."""

    FAIL = "FAIL"
    REPLAN = "REPLAN"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanGuard:
    """Limits on one plan; 0 means none. `max_calls`: action (or `*`) -> sub-goals with it."""

    max_sub_goals: int = 0
    max_depth: int = 0
    max_calls: Mapping[str, int] = field(default_factory=dict)
    max_arguments_bytes: int = 0
    repetition: Repetition = Repetition.ALLOWED
    on_reject: OnReject = OnReject.FAIL


NO_GUARD: Final = PlanGuard()


def read(reader: FieldReader, found: Field) -> PlanGuard:
    """The limits; what is wrong in them is noted in `reader`."""
    fields = reader.fields(found.value, found.path, known=KEYS)

    def limit(key: str, most: int) -> int:
        return reader.integer(fields.get(key), 0, least=1, most=most)

    return PlanGuard(
        max_sub_goals=limit("max_sub_goals", SUB_GOALS_MOST),
        max_depth=limit("max_depth", SUB_GOALS_MOST),
        max_calls=_max_calls(reader, fields.get("max_calls")),
        max_arguments_bytes=limit("max_arguments_bytes", ARGUMENTS_BYTES_MOST),
        repetition=reader.choice(fields.get("repetition"), Repetition) or Repetition.ALLOWED,
        on_reject=reader.choice(fields.get("on_reject"), OnReject) or OnReject.FAIL,
    )


def _max_calls(reader: FieldReader, found: Field | None) -> dict[str, int]:
    """`{action: n}`; 0 forbids an action in plans. One number stands for every action."""
    if found is None:
        return {}
    if not isinstance(found.value, MappingTree):
        return {ANY_ACTION: reader.integer(found, 0, least=1, most=SUB_GOALS_MOST)}
    fields = reader.fields(found.value, found.path, known=None)
    return {
        action: reader.integer(each, 0, least=0, most=SUB_GOALS_MOST)
        for action, each in fields.items()
    }


def problems(plan: Plan, guard: PlanGuard) -> tuple[str, ...]:
    """Why this plan is rejected, a sentence each for whoever planned it; empty when it is not.

    The plan is well formed (`engine.plan_check`): its ids are unique and its graph has no circle.
    """
    return tuple(sentence for check in CHECKS for sentence in check(plan, guard))


def _size(plan: Plan, guard: PlanGuard) -> Iterator[str]:
    count = len(plan.sub_goals)
    if 0 < guard.max_sub_goals < count:
        yield f"the plan has {count} sub-goals; the contract allows {guard.max_sub_goals}"


def _depth(plan: Plan, guard: PlanGuard) -> Iterator[str]:
    depth = depth_of(plan) if guard.max_depth else 0
    if depth > guard.max_depth:
        yield (
            f"the longest chain of sub-goals that wait for each other has {depth};"
            f" the contract allows {guard.max_depth}"
        )


def _calls(plan: Plan, guard: PlanGuard) -> Iterator[str]:
    for action, count in Counter(goal.action for goal in plan.sub_goals).items():
        limit = guard.max_calls.get(action, guard.max_calls.get(ANY_ACTION, count))
        if count > limit:
            yield f"the plan calls {action!r} {count} times; the contract allows {limit}"


def _arguments(plan: Plan, guard: PlanGuard) -> Iterator[str]:
    for goal in plan.sub_goals:
        size = len(bytes(goal.arguments))
        if 0 < guard.max_arguments_bytes < size:
            yield (
                f"the arguments of sub-goal {goal.id!r} have {size} bytes;"
                f" the contract allows {guard.max_arguments_bytes}"
            )


def _repeated(plan: Plan, guard: PlanGuard) -> Iterator[str]:
    if guard.repetition is Repetition.ALLOWED:
        return
    seen: dict[bytes, str] = {}
    for goal in plan.sub_goals:
        first = seen.setdefault(_what(goal), goal.id)
        if first != goal.id:
            yield f"sub-goal {goal.id!r} does what {first!r} does already: once is enough"


def _what(goal: SubGoal) -> bytes:
    """All that a sub-goal does, equal for equal work: its name and its place do not matter."""
    return b"\0".join(
        (
            goal.action.encode(),
            _plain(bytes(goal.arguments)),
            msgspec.json.encode(sorted((b.to, b.from_, b.pointer) for b in goal.bindings)),
            msgspec.json.encode(goal.when),
        )
    )


def _plain(text: bytes) -> bytes:
    """The same text for the same JSON value; as it is where it has no canonical form."""
    try:
        return canonical(msgspec.json.decode(text or b"{}"))
    except (CanonicalError, msgspec.DecodeError):
        return text


def depth_of(plan: Plan) -> int:
    """How many sub-goals the longest chain of `depends_on` has. Without recursion: a chain may be
    as long as a plan."""
    depth = {goal.id: 1 for goal in plan.sub_goals}
    needs = {goal.id: set(goal.depends_on) for goal in plan.sub_goals}
    dependents: dict[str, list[str]] = {}
    for name, needed in needs.items():
        for need in needed:
            dependents.setdefault(need, []).append(name)
    ready = [name for name, needed in needs.items() if not needed]
    for name in ready:  # grows while it is walked
        for dependent in dependents.get(name, ()):
            depth[dependent] = max(depth[dependent], depth[name] + 1)
            needs[dependent].discard(name)
            if not needs[dependent]:
                ready.append(dependent)
    return max(depth.values(), default=0)


CHECKS: Final[tuple[Callable[[Plan, PlanGuard], Iterator[str]], ...]] = (
    _size,
    _depth,
    _calls,
    _arguments,
    _repeated,
)
