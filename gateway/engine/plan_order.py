"""The order of a session's sub-goals that does not depend on which one was faster. Pure.

Records keep it beside the calls: the plans themselves are in the trajectory only.
"""

from collections.abc import Iterable, Mapping

from acp_spec.model.plan import SubGoal
from acp_spec.model.trajectory import PlanVersion


def plan_order(plans: Iterable[PlanVersion]) -> dict[str, int]:
    """Sub-goals behind what they depend on, else as the plan lists them."""
    order: dict[str, int] = {}
    for version in plans:
        goals = {goal.id: goal for goal in version.plan.sub_goals}
        for name in goals:
            _place(name, goals, order=order)
    return order


def _place(name: str, goals: Mapping[str, SubGoal], *, order: dict[str, int]) -> None:
    """Depth first, on a stack of its own: a plan may be a long chain."""
    waiting = [name]
    while waiting:
        name = waiting[-1]
        left = [other for other in goals[name].depends_on if other in goals and other not in order]
        fresh = [other for other in left if other not in waiting]
        if fresh:
            waiting += fresh
        else:
            order.setdefault(waiting.pop(), len(order))
