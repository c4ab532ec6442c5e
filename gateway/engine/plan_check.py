"""Is this plan one that can run? Shape only: ids, graph, bindings, size (SPEC section 3).

Which actions a plan may use is governance (the plan guard); here a plan is merely well formed.
"""

from acp_spec.model.plan import Plan, SubGoal


def plan_problem(plan: Plan, max_sub_goals: int | None) -> str | None:
    """What is wrong, as a sentence for the planner's author; None when nothing is."""
    if max_sub_goals is not None and len(plan.sub_goals) > max_sub_goals:
        return f"the plan has {len(plan.sub_goals)} sub-goals; the workflow allows {max_sub_goals}"
    known: set[str] = set()
    for goal in plan.sub_goals:
        if not goal.id or not goal.action:
            return "a sub-goal needs an `id` and an `action`"
        if goal.id in known:
            return f"two sub-goals have the id {goal.id!r}"
        known.add(goal.id)
    for goal in plan.sub_goals:
        problem = _references(goal, known)
        if problem is not None:
            return problem
    return _cycle(plan)


def _references(goal: SubGoal, known: set[str]) -> str | None:
    for name in goal.depends_on:
        if name not in known:
            return f"sub-goal {goal.id!r} depends on {name!r}, which is not in the plan"
    for binding in goal.bindings:
        if binding.from_ not in goal.depends_on:
            return (
                f"sub-goal {goal.id!r} binds from {binding.from_!r},"
                " which must be in its `depends_on`"
            )
    for when in goal.when:
        if when.from_ not in goal.depends_on:
            return (
                f"sub-goal {goal.id!r} compares with {when.from_!r},"
                " which must be in its `depends_on`"
            )
    return None


def _cycle(plan: Plan) -> str | None:
    waiting = {goal.id: set(goal.depends_on) for goal in plan.sub_goals}
    while waiting:
        ready = [name for name, needs in waiting.items() if not needs & waiting.keys()]
        if not ready:
            return f"the sub-goals {', '.join(sorted(waiting))} depend on each other in a circle"
        for name in ready:
            del waiting[name]
    return None
