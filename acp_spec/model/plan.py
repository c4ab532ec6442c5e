"""A plan: sub-goals, the graph between them, and where their data comes from (SPEC section 3).

A planner's text is never run: data flows by JSON Pointer bindings, conditions are comparisons.
"""

import msgspec

from acp_spec.model.bounds import NonEmpty
from acp_spec.model.enums import Operator
from acp_spec.model.payload import ABSENT, Payload


class Binding(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"from_": "from"}
):
    """The value at `pointer` of sub-goal `from`'s output is spliced at `to` in the arguments."""

    to: str
    from_: NonEmpty
    pointer: str = ""


class When(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"from_": "from"}):
    """Run only if this comparison over an earlier output holds; all of a sub-goal's must hold."""

    from_: NonEmpty
    pointer: str = ""
    op: Operator
    value: Payload = ABSENT


class SubGoal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    id: NonEmpty
    action: NonEmpty
    description: str = ""
    arguments: Payload = ABSENT
    bindings: tuple[Binding, ...] = ()
    depends_on: tuple[str, ...] = ()
    when: tuple[When, ...] = ()
    repeat: bool = False


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    root_goal: str = ""
    sub_goals: tuple[SubGoal, ...] = ()
