"""A rollout goes on by its rules, is stopped by proof, and remembers across a restart."""

import random
from collections.abc import Callable
from itertools import pairwise

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.governance.rollout import (
    ALLOWED,
    OVER,
    Moment,
    Order,
    Pair,
    Rollout,
    Session,
    Status,
    begun,
    counted,
    dropped,
    ordered,
    paired,
    place,
    stopped,
    ticked,
    waits_for,
)
from gateway.governance.rollout_judging import Arm, Outcome, Sample
from gateway.governance.rollout_spec import (
    ORDER,
    LatencyRule,
    OnWorse,
    RateRule,
    RewardRule,
    RolloutSpec,
    ShareRule,
    Stage,
    StageRule,
    Sticky,
    Subject,
    named,
    spec_problem,
)

SUBJECT = Subject(name="planner", candidate="2.0.0", baseline="1.0.0")
GOOD = Sample(succeeded=True, fell_back=False, work_ms=100.0)
FAILED = msgspec.structs.replace(GOOD, succeeded=False)
Maker = Callable[[random.Random], Sample]


def small(**over: object) -> RolloutSpec:
    """Stages of some dozens of samples, each of a second."""
    given: dict[str, object] = {
        "subject": SUBJECT,
        "canary": StageRule(share=0.01, min_samples=10, min_ms=1_000, prove=False),
        "shadow": StageRule(share=0.05, min_samples=10, min_ms=1_000),
        "controlled": StageRule(share=0.2, min_samples=10, min_ms=1_000, steady_ms=2_000),
        "full": StageRule(share=1.0, min_ms=1_000, prove=False),
        "success": RateRule(margin=0.5, prove=True),
        **over,
    }
    return RolloutSpec(**given)  # type: ignore[arg-type]  # keywords of one test each


def fed(rollout: Rollout, count: int, *, candidate: Sample, baseline: Sample = GOOD) -> Rollout:
    """So many sessions of both arms, in the stage's own way."""
    for _ in range(count):
        if rollout.stage in (Stage.CANARY, Stage.SHADOW):
            pair = Pair(primary=baseline, twin=candidate)
            rollout = paired(rollout, rollout.stage, pair=pair)
        else:
            rollout = counted(rollout, rollout.stage, arm=Arm.BASELINE, sample=baseline)
            rollout = counted(rollout, rollout.stage, arm=Arm.CANDIDATE, sample=candidate)
    return rollout


def after(rollout: Rollout, elapsed_ms: float, *, available: bool = True) -> Rollout:
    at_ms = rollout.changed_at_ms + 1
    return ticked(rollout, Moment(at_ms=at_ms, elapsed_ms=elapsed_ms, available=available))


def in_stage(stage: Stage, spec: RolloutSpec | None = None) -> Rollout:
    rollout = begun(spec or small(), by="op", at_ms=1_000)
    while rollout.stage is not stage:
        onward = ordered(rollout, Order.PROMOTE, by="op", reason="", at_ms=1_000)
        assert isinstance(onward, Rollout)
        rollout = onward
    return rollout


# ---- places ------------------------------------------------------------------------------------


def members(stage: Stage, arm: Arm, count: int = 20_000) -> set[int]:
    rollout = in_stage(stage)
    sessions = (Session(session_id=f"s{number}", tenant="t") for number in range(count))
    return {n for n, session in enumerate(sessions) if place(rollout, session) is arm}


def test_shares_are_kept_and_who_takes_part_goes_on_doing_so() -> None:
    found = [members(stage, Arm.CANDIDATE) for stage in ORDER]
    for share, part in zip((0.01, 0.05, 0.2, 1.0), found, strict=True):
        assert abs(len(part) / 20_000 - share) < 0.006
    for earlier, later in pairwise(found):
        assert earlier <= later


def test_as_many_are_compared_with_as_get_the_candidate() -> None:
    control = members(Stage.CONTROLLED, Arm.BASELINE)
    assert abs(len(control) / 20_000 - 0.2) < 0.006
    assert not control & members(Stage.CONTROLLED, Arm.CANDIDATE)


def test_a_session_sticks_to_its_place_by_what_the_rollout_says() -> None:
    def places(sticky: Sticky, sessions: list[Session]) -> set[Arm | None]:
        rollout = in_stage(Stage.CONTROLLED, small(sticky=sticky))
        return {place(rollout, session) for session in sessions}

    same_key = [Session(session_id=f"s{n}", tenant="t", session_key="k") for n in range(200)]
    assert len(places(Sticky.SESSION_KEY, same_key)) == 1
    assert len(places(Sticky.TENANT, same_key)) == 1
    assert len(places(Sticky.SESSION, same_key)) == 3


def test_two_rollouts_choose_independently() -> None:
    one, other = in_stage(Stage.CONTROLLED), in_stage(Stage.CONTROLLED, small(rollout="another"))
    sessions = [Session(session_id=f"s{n}", tenant="t") for n in range(20_000)]
    both = [s for s in sessions if place(one, s) is place(other, s) is Arm.CANDIDATE]
    assert abs(len(both) / 20_000 - 0.04) < 0.006


def test_nobody_takes_part_in_a_paused_rollout() -> None:
    paused = stopped(in_stage(Stage.CONTROLLED), why="look", at_ms=2_000)
    assert place(paused, Session(session_id="s", tenant="t")) is None


# ---- promotion and its conditions --------------------------------------------------------------


def test_a_good_candidate_goes_through_all_stages_and_says_what_each_needed() -> None:
    rollout = begun(small(), by="op", at_ms=1_000)
    for _ in range(40):
        rollout = after(fed(rollout, 10, candidate=GOOD), 500.0)
    assert rollout.status is Status.COMPLETED
    assert [report.stage for report in rollout.history] == list(ORDER)
    shadow = rollout.history[1]
    proof = next(verdict for verdict in shadow.verdicts if verdict.metric == "success")
    assert proof.outcome is Outcome.FINE
    assert proof.candidate_samples == shadow.candidates >= 10


def test_time_alone_promotes_nothing_and_samples_alone_promote_nothing() -> None:
    rollout = begun(small(), by="op", at_ms=1_000)
    assert after(rollout, 1e12).stage is Stage.CANARY
    many = fed(rollout, 500, candidate=GOOD)
    assert after(many, 999.0).stage is Stage.CANARY
    assert after(after(many, 999.0), 1.0).stage is Stage.SHADOW


def test_durations_scale_by_one_factor() -> None:
    rollout = fed(begun(small(time_scale=0.01), by="op", at_ms=0), 20, candidate=GOOD)
    assert after(rollout, 9.0).stage is Stage.CANARY
    assert after(rollout, 10.0).stage is Stage.SHADOW


def test_no_figure_beyond_its_margin_is_promoted_though_nothing_is_proven() -> None:
    spec = small(success=RateRule(margin=0.05, prove=False))
    rollout = fed(begun(spec, by="op", at_ms=0), 20, candidate=GOOD)
    rollout = after(fed(rollout, 3, candidate=FAILED), 5_000.0)
    assert (rollout.stage, rollout.status) == (Stage.CANARY, Status.RUNNING)
    assert "success back within its margin" in waits_for(rollout)


def test_a_stage_that_was_not_steady_starts_its_steady_time_anew() -> None:
    spec = small(success=RateRule(margin=0.3, prove=False))
    rollout = after(fed(in_stage(Stage.CONTROLLED, spec), 10, candidate=GOOD), 1_900.0)
    strained = after(fed(rollout, 8, candidate=FAILED), 50.0)
    assert strained.steady_ms == 0.0
    calm = after(fed(strained, 100, candidate=GOOD), 1_900.0)
    assert calm.stage is Stage.CONTROLLED
    assert after(calm, 200.0).stage is Stage.FULL


def test_while_the_candidate_is_gone_nothing_counts_as_watched() -> None:
    rollout = fed(in_stage(Stage.CONTROLLED), 50, candidate=GOOD)
    gone = after(rollout, 1e9, available=False)
    assert (gone.stage, gone.observed_ms, gone.steady_ms) == (Stage.CONTROLLED, 0.0, 0.0)


def test_nothing_is_promoted_to_a_candidate_that_has_left_nor_while_it_is_paused() -> None:
    ready = fed(after(in_stage(Stage.CANARY), 2_000.0), 10, candidate=GOOD)
    assert after(ready, 1.0, available=False).stage is Stage.CANARY
    assert after(ready, 1.0).stage is Stage.SHADOW
    paused = ordered(ready, Order.PAUSE, by="op", reason="", at_ms=1_000)
    assert isinstance(paused, Rollout)
    assert after(paused, 1e9) == paused


def test_samples_of_an_earlier_stage_come_too_late() -> None:
    rollout = in_stage(Stage.CONTROLLED)
    late = paired(rollout, Stage.SHADOW, pair=Pair(primary=GOOD, twin=FAILED))
    assert late == rollout
    assert counted(rollout, Stage.FULL, arm=Arm.CANDIDATE, sample=GOOD) == rollout


def test_what_stays_undecided_is_for_a_person() -> None:
    rule = StageRule(share=0.05, min_samples=5, max_samples=12)
    spec = small(shadow=rule, success=RateRule(margin=0.001, prove=True))
    rollout = after(fed(in_stage(Stage.SHADOW, spec), 12, candidate=GOOD), 10.0)
    assert rollout.status is Status.PAUSED
    assert rollout.reason == "undecided after 12 candidates"
    anew = ordered(rollout, Order.RESUME, by="op", reason="", at_ms=9_000)
    assert isinstance(anew, Rollout)
    assert anew.stats.candidate.success.total == 0


# ---- rollback for the right reason -------------------------------------------------------------

SLOW = msgspec.structs.replace(GOOD, work_ms=900.0)
FELL = msgspec.structs.replace(GOOD, fell_back=True)
DULL, BRIGHT = (msgspec.structs.replace(GOOD, reward=value) for value in (0.1, 0.9))


@pytest.mark.parametrize("stage", ORDER[:3])
@pytest.mark.parametrize(
    ("metric", "candidate", "baseline"),
    [
        ("success", FAILED, GOOD),
        ("fallback", FELL, GOOD),
        ("latency", SLOW, GOOD),
        ("reward", DULL, BRIGHT),
    ],
)
def test_a_bad_candidate_is_rolled_back_for_what_is_bad(
    stage: Stage, metric: str, candidate: Sample, baseline: Sample
) -> None:
    spec = small(latency=LatencyRule(quantile=0.5), success=RateRule(margin=0.05, prove=True))
    rollout = in_stage(stage, spec)
    for _ in range(60):
        rollout = after(fed(rollout, 5, candidate=candidate, baseline=baseline), 0.0)
    assert rollout.status is Status.ROLLED_BACK
    report = rollout.history[-1]
    assert report.why == f"worse than the baseline in {metric}"
    worse = [v for v in report.verdicts if v.outcome is Outcome.WORSE]
    assert [(v.metric, v.candidate_samples > 0) for v in worse] == [(metric, True)]


def test_a_wrong_output_is_seen_in_shadow_alone_and_its_fields_are_counted() -> None:
    spec = small(output=ShareRule(most=0.05))
    wrong = Pair(primary=GOOD, twin=GOOD, differs=True, fields=("/answer",))
    for stage, status in ((Stage.CANARY, Status.RUNNING), (Stage.SHADOW, Status.ROLLED_BACK)):
        rollout = in_stage(stage, spec)
        for _ in range(9):
            rollout = after(paired(rollout, stage, pair=wrong), 0.0)
        assert rollout.status is status
        assert rollout.stats.fields == {"/answer": 9 if stage is Stage.CANARY else 3}


def test_a_few_examples_of_each_trouble_are_kept_for_people() -> None:
    rollout = in_stage(Stage.CANARY)
    for number in range(20):
        for pair in (
            Pair(primary=GOOD, twin=GOOD),
            Pair(primary=GOOD, twin=FAILED, ids=(f"p{number}", f"t{number}")),
            Pair(primary=FAILED, twin=FAILED),
            Pair(primary=GOOD, twin=GOOD, differs=True, ids=("p", "t")),
        ):
            rollout = paired(rollout, Stage.CANARY, pair=pair)
    kinds = [example.what for example in rollout.stats.examples]
    assert (kinds.count("FAILED"), kinds.count("DIFFERS"), len(kinds)) == (5, 5, 10)
    assert rollout.stats.examples[0].primary == "p0"


def test_twins_without_a_record_say_nothing_of_success() -> None:
    rollout = in_stage(Stage.SHADOW, small(uncovered=None))
    pair = Pair(primary=GOOD, twin=FAILED, uncovered=True)
    for _ in range(200):
        rollout = after(paired(rollout, Stage.SHADOW, pair=pair), 1_000.0)
    assert rollout.status is Status.RUNNING
    assert rollout.stats.candidate.success.total == 0
    assert rollout.stats.uncovered.hits == 200


def test_too_many_without_a_record_stop_the_rollout() -> None:
    rollout = in_stage(Stage.SHADOW)
    pair = Pair(primary=GOOD, twin=FAILED, uncovered=True)
    for _ in range(60):
        rollout = after(paired(rollout, Stage.SHADOW, pair=pair), 1_000.0)
    assert rollout.history[-1].why == "worse than the baseline in uncovered"


def test_harm_may_pause_instead() -> None:
    rollout = in_stage(Stage.CONTROLLED, small(on_worse=OnWorse.PAUSE))
    rollout = after(fed(rollout, 100, candidate=FAILED), 0.0)
    assert rollout.status is Status.PAUSED
    assert rollout.by == ""


def test_full_is_held_against_what_the_baseline_was_before() -> None:
    rollout = fed(in_stage(Stage.CONTROLLED), 100, candidate=GOOD)
    onward = ordered(rollout, Order.PROMOTE, by="op", reason="", at_ms=2_000)
    assert isinstance(onward, Rollout)
    for _ in range(100):
        onward = counted(onward, Stage.FULL, arm=Arm.CANDIDATE, sample=FAILED)
    assert after(onward, 0.0).reason == "worse than the baseline in success"


def test_an_equal_candidate_is_seldom_stopped_however_often_one_looks() -> None:
    """The whole decision, simulated: all metrics, a look after every fifth pair."""

    def noisy(chance: random.Random) -> Sample:
        return Sample(
            succeeded=chance.random() < 0.9,
            fell_back=chance.random() < 0.1,
            work_ms=chance.lognormvariate(4, 0.5),
            reward=chance.random(),
        )

    spec = small(
        alpha=0.2,
        canary=StageRule(share=0.01, min_samples=10_000),
        success=RateRule(margin=0.0),
        fallback=RateRule(margin=0.0),
        latency=LatencyRule(quantile=0.9, margin=0.0, slack_ms=0.0),
        reward=RewardRule(margin=0.0),
    )
    chance, stops = random.Random("equal"), 0
    for _ in range(60):
        rollout = begun(spec, by="op", at_ms=0)
        for number in range(200):
            pair = Pair(primary=noisy(chance), twin=noisy(chance))
            rollout = paired(rollout, Stage.CANARY, pair=pair)
            if number % 5 == 0:
                rollout = after(rollout, 1.0)
        stops += rollout.status is not Status.RUNNING
    assert stops / 60 <= 0.2 / len(ORDER)


# ---- declarations ------------------------------------------------------------------------------


def test_the_defaults_are_a_good_declaration() -> None:
    spec = RolloutSpec(subject=SUBJECT)
    assert spec_problem(spec) is None
    assert named(spec) == "component-planner-2.0.0"
    assert (spec.canary.share, spec.shadow.share, spec.controlled.share) == (0.01, 0.05, 0.2)
    assert spec.controlled.steady_ms == 48 * 60 * 60 * 1000


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rollout": "a/b"}, "slash"),
        ({"subject": Subject(name="x", candidate="two")}, "candidate"),
        ({"subject": Subject(name="x", candidate="1.0.0", baseline="1.0.0")}, "same version"),
        ({"shadow": StageRule(share=0.001)}, "at least"),
        ({"controlled": StageRule(share=0.6)}, "0.5"),
        ({"canary": StageRule(share=0.0)}, "never end"),
        ({"full": StageRule(share=0.9)}, "everybody"),
        ({"reward": RewardRule(low=1.0, high=0.0)}, "low"),
        ({"ignore": ("/a",) * 101}, "ignore"),
        ({"subject": Subject(name="x", candidate="1" * 200), "rollout": "y"}, "characters"),
    ],
)
def test_a_wrong_declaration_is_told_with_its_place(change: dict[str, object], said: str) -> None:
    assert said in (spec_problem(small(**change)) or "")


# ---- the machine -------------------------------------------------------------------------------

SAMPLES = st.builds(
    Sample,
    succeeded=st.booleans(),
    fell_back=st.booleans(),
    work_ms=st.floats(0, 1e6),
    reward=st.none() | st.floats(0, 1),
)


class RolloutMachine(RuleBasedStateMachine):
    """Whatever happens in whatever order, also restarts: forward only, over is over, audited."""

    @initialize(on_worse=st.sampled_from(OnWorse), scale=st.sampled_from([0.1, 1.0]))
    def begin(self, on_worse: OnWorse, scale: float) -> None:
        self.rollout = begun(small(on_worse=on_worse, time_scale=scale), by="op", at_ms=0)
        self.given_ms = 0.0
        self.now_ms = 0

    @rule(elapsed_ms=st.floats(0, 3_000), available=st.booleans())
    def time_passes(self, elapsed_ms: float, available: bool) -> None:
        before = self.rollout
        self.now_ms += int(elapsed_ms)
        moment = Moment(at_ms=self.now_ms, elapsed_ms=elapsed_ms, available=available)
        self.rollout = ticked(before, moment)
        self.given_ms += elapsed_ms
        if self.rollout.stage is not before.stage or self.rollout.status is Status.COMPLETED:
            self._left_by_its_rules(before)

    def _left_by_its_rules(self, before: Rollout) -> None:
        if before.over:
            return
        report, stage_rule = self.rollout.history[-1], before.spec.rule(before.stage)
        assert report.candidates >= stage_rule.min_samples
        assert report.observed_ms >= before.spec.scaled_ms(stage_rule.min_ms)
        assert not any(v.strained or v.outcome is Outcome.WORSE for v in report.verdicts)
        if stage_rule.prove:
            assert all(v.outcome is Outcome.FINE for v in report.verdicts if v.prove)

    @rule(sample=SAMPLES, arm=st.sampled_from(Arm), count=st.integers(1, 30))
    def sessions_end(self, sample: Sample, arm: Arm, count: int) -> None:
        for _ in range(count):
            self.rollout = counted(self.rollout, self.rollout.stage, arm=arm, sample=sample)

    @rule(primary=SAMPLES, twin=SAMPLES, differs=st.booleans(), count=st.integers(1, 30))
    def twins_end(self, primary: Sample, twin: Sample, differs: bool, count: int) -> None:
        pair = Pair(primary=primary, twin=twin, differs=differs)
        for _ in range(count):
            self.rollout = paired(self.rollout, self.rollout.stage, pair=pair)

    @rule(count=st.integers(10, 80))
    def all_goes_well(self, count: int) -> None:
        self.rollout = fed(self.rollout, count, candidate=GOOD)

    @rule()
    def a_twin_is_dropped(self) -> None:
        self.rollout = dropped(self.rollout)

    @rule(order=st.sampled_from(Order))
    def a_person_orders(self, order: Order) -> None:
        before = self.rollout
        found = ordered(before, order, by="op", reason="", at_ms=self.now_ms)
        assert isinstance(found, Rollout) is (before.status in ALLOWED[order])
        if isinstance(found, Rollout):
            self.rollout = found
            assert found.by == "op"

    @rule()
    def the_gateway_restarts(self) -> None:
        data = msgspec.json.encode(self.rollout)
        assert msgspec.json.decode(data, type=Rollout) == self.rollout
        self.rollout = msgspec.json.decode(data, type=Rollout)

    @precondition(lambda self: self.rollout.over)
    @rule(elapsed_ms=st.floats(0, 1e9))
    def over_is_over(self, elapsed_ms: float) -> None:
        moment = Moment(at_ms=self.now_ms, elapsed_ms=elapsed_ms)
        assert ticked(self.rollout, moment) == self.rollout
        assert place(self.rollout, Session(session_id="s", tenant="t")) is None

    @invariant()
    def stages_were_left_in_order(self) -> None:
        stages = [report.stage for report in self.rollout.history]
        assert stages == list(ORDER[: len(stages)])
        assert self.rollout.stage is ORDER[len(stages) - (self.rollout.status in OVER)]

    @invariant()
    def nobody_watched_longer_than_time_went(self) -> None:
        watched = sum(report.observed_ms for report in self.rollout.history)
        current = 0.0 if self.rollout.over else self.rollout.observed_ms
        assert watched + current <= self.given_ms + 1e-6
        assert self.rollout.steady_ms <= self.rollout.observed_ms + 1e-6

    @invariant()
    def it_says_what_it_waits_for(self) -> None:
        if not self.rollout.running:
            assert waits_for(self.rollout) == ()


TestRolloutMachine = RolloutMachine.TestCase
TestRolloutMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize(
    "figures",
    [
        {"latency": {"slack_ms": 1e308}},
        {"latency": {"margin": 1e308}},
        {"reward": {"margin": 1e308}},
        {"reward": {"low": -1e300, "high": 1e300}},
        {"time_scale": 1e308},
    ],
)
def test_a_figure_beyond_all_bounds_is_refused_where_it_stands(figures: object) -> None:
    """A limit made of it was infinite: `null` on disk, and the rollout gone at the next start."""
    assert isinstance(figures, dict)
    declared = {"subject": {"name": "x", "candidate": "2.0.0"}, **figures}
    with pytest.raises(msgspec.ValidationError, match=next(iter(figures))):
        msgspec.convert(declared, type=RolloutSpec)
