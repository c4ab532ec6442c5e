"""What is still to come at each place: brought by sessions, taken away by their steps and ends."""

from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.enums import StepType
from gateway.engine.tests.stage import CATALOG, FOUR_CALLS, PLANNER, REFLECTOR, TOOLS, workflow_of
from gateway.governance.rules import Rules, Slots
from gateway.runtime.demand import Demand, Visit
from gateway.runtime.habits import Habits, Place, moved
from gateway.runtime.tests.fake_components import FakeTargets

FOUR = workflow_of(FOUR_CALLS)
DIGEST = FOUR.source_digest
PINS = {
    "step:plan": "planner@1.0.0",
    "step:remember": "observer@1.0.0",
    "step:judge": "reflector@1.0.0",
}
QUEUES = {kind.value: Slots(limit=7) for kind in StepType}
PLAN_KEYS = ("queue:PLAN", "instance:planner-1.0.0-1")
TOOL_KEYS = ("queue:TOOL", "instance:tools-1.0.0-1")
JUDGE_KEYS = ("queue:TOOL", "instance:reflector-1.0.0-1")
READ = Place("tools@1.0.0", StepType.TOOL)


def demand() -> Demand:
    rules = Rules(queues=QUEUES, target=Slots(limit=3))
    targets = FakeTargets(PLANNER, REFLECTOR, TOOLS)
    return Demand(targets, rules_for=lambda target: rules)


def opened(known: Demand, name: str = "s", tenant: str = "t") -> list[Visit]:
    visits = known.visits(name, FOUR, pins=PINS, catalog=CATALOG)
    known.admitted(name, tenant, digest=DIGEST, visits=visits)
    return visits


def test_a_session_brings_the_steps_that_are_known_with_their_limits() -> None:
    known = demand()
    plan, remember, judge = opened(known)
    assert (plan.step, plan.keys, plan.limits) == (0, PLAN_KEYS, (7, 3))
    assert (remember.step, remember.keys) == (2, ()), "nobody serves it"
    assert (judge.step, judge.keys) == (3, JUDGE_KEYS)
    assert known.to_come("instance:planner-1.0.0-1") == 1


def test_a_call_that_asks_is_no_longer_to_come() -> None:
    known = demand()
    opened(known)
    known.reached("s", 0, keys=PLAN_KEYS)
    assert known.to_come(PLAN_KEYS[1]) == 0
    assert known.to_come(JUDGE_KEYS[1]) == 1


def test_what_was_skipped_is_no_longer_to_come() -> None:
    known = demand()
    opened(known)
    known.reached("s", 3, keys=JUDGE_KEYS)
    assert not known._to_come


def test_the_end_takes_away_the_rest() -> None:
    known = demand()
    opened(known)
    known.ended("s")
    assert not known._to_come
    assert known.crowd("t").total == 0
    known.ended("s")


def test_what_comes_after_a_long_operation_stands_in_nobodys_way() -> None:
    """A thousand sessions that waited for a person kept the gate shut before an idle component."""
    known = demand()
    opened(known)
    known.reached("s", 0, keys=PLAN_KEYS)
    known.stands_still("s")
    assert not known._to_come
    assert known.crowd("t").own == 1
    known.reached("s", 3, keys=JUDGE_KEYS)
    known.ended("s")
    assert known.crowd("t").own == 0


def test_where_a_plan_goes_is_learned() -> None:
    known = demand()
    opened(known)
    known.reached("s", 0, keys=PLAN_KEYS)
    known.reached("s", 1, keys=TOOL_KEYS, planned=READ)
    known.ended("s")
    steps = [(visit.step, visit.share) for visit in opened(known, "next")]
    assert steps == [(0, 1.0), (1, 1.0), (2, 1.0), (3, 1.0)]


def test_a_place_that_plans_seldom_use_counts_little() -> None:
    habits = Habits()
    for number in range(400):
        used = {(1, READ)} if number % 10 == 0 else set()
        habits.note("w", used, position=1)
    assert 0.02 < habits.shares("w", 1)[READ] < 0.25


def test_a_session_that_did_not_come_so_far_says_nothing_of_a_step() -> None:
    habits = Habits()
    habits.note("w", {(5, READ)}, position=5)
    for _ in range(100):
        habits.note("w", set(), position=4)
    assert habits.shares("w", 5)[READ] == 1.0


def test_few_places_are_remembered() -> None:
    shares = {Place(f"p{number}@1.0.0", StepType.TOOL): 0.5 for number in range(200)}
    assert len(moved(shares, {READ})) == 32


def test_the_crowd_of_a_tenant() -> None:
    known = Demand(weight_of=lambda tenant: 3.0 if tenant == "big" else 1.0)
    for number in range(3):
        known.admitted(f"b{number}", "big", digest="w", visits=[])
    known.admitted("s", "small", digest="w", visits=[])
    assert known.crowd("big").share == 3
    assert known.crowd("new").total_weight == 5


def test_the_times_of_very_many_places_are_bounded() -> None:
    known = demand()
    known.served(("instance:a",), 20.0, well=True, now_ms=1)
    assert known.service("instance:a").mean_ms == 20.0
    assert known.service("instance:b").count == 0


Moves = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4)), max_size=40)


@given(Moves)
def test_whatever_sessions_do_nothing_is_left_of_them(moves: list[tuple[str, int]]) -> None:
    known = demand()
    for name, step in moves:
        if name not in known._sessions:
            opened(known, name, tenant=name)
        if step == 4:
            known.ended(name)
        else:
            keys = (PLAN_KEYS, TOOL_KEYS, TOOL_KEYS, JUDGE_KEYS)[step]
            known.reached(name, step, keys=keys, planned=READ if step == 1 else None)
    for name in "abc":
        known.ended(name)
    assert not known._to_come
    assert not known._of_tenant
    assert known.crowd("a").total_weight == 1.0
