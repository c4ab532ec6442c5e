"""Every limit on plans lets through what keeps it and rejects what breaks it, with a sentence."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.payload import payload
from acp_spec.model.plan import Binding, Plan, SubGoal
from gateway.governance.plan_guard import NO_GUARD, PlanGuard, Repetition, depth_of, problems


def goal(name: str, action: str = "a", *, after: tuple[str, ...] = (), args: str = "{}") -> SubGoal:
    return SubGoal(id=name, action=action, depends_on=after, arguments=payload(args.encode()))


def plan(*goals: SubGoal) -> Plan:
    return Plan(root_goal="g", sub_goals=goals)


CHAIN: Final = plan(goal("1"), goal("2", after=("1",)), goal("3", after=("2", "1")), goal("4"))
ONCE: Final = PlanGuard(repetition=Repetition.FORBIDDEN)


@pytest.mark.parametrize(
    ("guard", "sentence"),
    [
        (PlanGuard(max_sub_goals=3), "has 4 sub-goals; the contract allows 3"),
        (PlanGuard(max_depth=2), "wait for each other has 3; the contract allows 2"),
        (PlanGuard(max_calls={"a": 3}), "calls 'a' 4 times; the contract allows 3"),
        (PlanGuard(max_calls={"*": 3}), "calls 'a' 4 times; the contract allows 3"),
        (PlanGuard(max_calls={"a": 0, "*": 9}), "the contract allows 0"),
        (PlanGuard(max_arguments_bytes=1), "arguments of sub-goal '1' have 2 bytes"),
        (ONCE, "sub-goal '2' does what '1' does already"),
    ],
)
def test_a_plan_over_a_limit_is_rejected_with_the_figures(guard: PlanGuard, sentence: str) -> None:
    assert sentence in problems(CHAIN, guard)[0]


@pytest.mark.parametrize(
    "guard",
    [
        NO_GUARD,
        PlanGuard(max_sub_goals=4),
        PlanGuard(max_depth=3),
        PlanGuard(max_calls={"a": 4}),
        PlanGuard(max_calls={"*": 1, "a": 4}),
        PlanGuard(max_arguments_bytes=2),
    ],
)
def test_a_plan_at_a_limit_may_run(guard: PlanGuard) -> None:
    assert problems(CHAIN, guard) == ()


def test_all_that_is_wrong_is_told_at_once_so_that_one_replan_can_mend_it() -> None:
    found = problems(CHAIN, PlanGuard(max_sub_goals=1, max_depth=1, max_calls={"*": 1}))
    assert len(found) == 3


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"a": 1, "b": [2]}', '{"b":[2],"a":1}', True),
        ('{"a": 1}', '{"a": 1.0}', True),
        ('{"a": 1}', '{"a": 2}', False),
        ('{"a": 1e999}', '{"a": 1e999}', True),
    ],
)
def test_two_sub_goals_are_the_same_when_their_arguments_mean_the_same(
    one: str, other: str, same: bool
) -> None:
    found = problems(plan(goal("1", args=one), goal("2", args=other)), ONCE)
    assert bool(found) is same


def test_what_another_sub_goal_gives_makes_a_difference() -> None:
    bound = SubGoal(
        id="2", action="a", depends_on=("1",), bindings=(Binding(to="/x", from_="1", pointer="/y"),)
    )
    assert problems(plan(goal("1"), bound), ONCE) == ()


@given(st.integers(1, 200))
def test_the_depth_of_a_chain_is_its_length_however_long(length: int) -> None:
    goals = [goal(str(n), after=(str(n - 1),) if n else ()) for n in range(length)]
    assert depth_of(plan(*reversed(goals))) == length


@given(st.lists(st.sampled_from("abc"), max_size=12), st.integers(0, 4))
def test_no_plan_that_calls_an_action_too_often_gets_through(actions: list[str], most: int) -> None:
    found = problems(
        plan(*(goal(str(n), action) for n, action in enumerate(actions))),
        PlanGuard(max_calls={"*": most}),
    )
    too_often = {action for action in actions if actions.count(action) > most}
    assert len(found) == len(too_often)
