"""Is a plan one that can run: ids, graph, bindings, size (PLN-001 to PLN-004)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.enums import Operator
from acp_spec.model.plan import Binding, Plan, SubGoal, When
from gateway.engine.plan_check import plan_problem


def plan(*goals: SubGoal) -> Plan:
    return Plan(sub_goals=goals)


def goal(name: str, *needs: str, action: str = "act") -> SubGoal:
    return SubGoal(id=name, action=action, depends_on=needs)


BINDING = Binding(to="/x", from_="a", pointer="")
WHEN = When(from_="a", op=Operator.EXISTS)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (plan(goal("a"), goal("a")), "two sub-goals have the id 'a'"),
        (plan(goal("")), "needs an `id` and an `action`"),
        (plan(goal("a", action="")), "needs an `id` and an `action`"),
        (plan(goal("a", "b")), "depends on 'b', which is not in the plan"),
        (plan(goal("a", "a")), "in a circle"),
        (plan(goal("a", "b"), goal("b", "c"), goal("c", "a"), goal("d")), "a, b, c depend on each"),
        (plan(goal("a"), SubGoal(id="b", action="x", bindings=(BINDING,))), "binds from 'a'"),
        (plan(goal("a"), SubGoal(id="b", action="x", when=(WHEN,))), "compares with 'a'"),
        (plan(*(goal(str(n)) for n in range(4))), "has 4 sub-goals; the workflow allows 3"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(broken: Plan, says: str) -> None:
    problem = plan_problem(broken, 3 if len(broken.sub_goals) > 3 and "allows" in says else 10)
    assert problem is not None
    assert says in problem


def test_a_good_plan_and_an_empty_one_have_no_problem() -> None:
    good = SubGoal(id="b", action="x", depends_on=("a",), bindings=(BINDING,), when=(WHEN,))
    assert plan_problem(plan(goal("a"), good), 2) is None
    assert plan_problem(plan(), 0) is None


@given(st.lists(st.tuples(st.integers(0, 8), st.sets(st.integers(0, 8), max_size=3)), max_size=9))
def test_a_plan_without_a_problem_can_be_put_in_order(drawn: list[tuple[int, set[int]]]) -> None:
    goals = tuple(goal(str(name), *(str(n) for n in needs)) for name, needs in drawn)
    if plan_problem(Plan(sub_goals=goals), None) is not None:
        return
    done: set[str] = set()
    while len(done) < len(goals):
        ready = {g.id for g in goals if g.id not in done and set(g.depends_on) <= done}
        assert ready, "some sub-goal can always begin"
        done |= ready
