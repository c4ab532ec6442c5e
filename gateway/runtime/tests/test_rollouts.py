"""The keeper of rollouts: what it writes, what it makes active, and when it leaves things alone."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from acp_spec.bindings.errors import error
from acp_spec.model.errors import AcpFailure, Reason
from gateway.board.audit import AuditLog, first_break
from gateway.governance.rollout import Order, Status, counted
from gateway.governance.rollout_judging import Arm, Sample
from gateway.governance.rollout_spec import Kind, RolloutSpec, Stage, StageRule, Subject
from gateway.runtime import rollouts as keeper
from gateway.runtime.clock import ManualClock
from gateway.runtime.principal import LOCAL
from gateway.runtime.rollout_versions import PolicyVersions, Versions
from gateway.runtime.rollouts import RolloutParts, Rollouts
from gateway.stores.durable import WriteThrough
from gateway.stores.memory import MemoryStore
from gateway.stores.ports import Table
from gateway.telemetry.metrics import Metrics

GOOD = Sample(succeeded=True, fell_back=False, work_ms=10.0)
RULE = StageRule(share=0.5, min_samples=3, min_ms=1_000, prove=False)


class Planners:
    """Versions of the one component `planner`."""

    def __init__(self) -> None:
        self.now = "1.0.0"
        self.is_there = True
        self.refusal: AcpFailure | None = None

    def active(self, name: str) -> str:
        return self.now if name == "planner" else ""

    def problem(self, subject: Subject) -> str | None:
        return None if subject.candidate == "2.0.0" else "no such version"

    def available(self, subject: Subject) -> bool:
        return self.is_there

    def permitted(self, subject: Subject) -> None:
        if self.refusal is not None:
            raise self.refusal

    async def activate(self, subject: Subject, version: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.now = version


class House:
    """A keeper over a store in memory; `again` is a restart."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.clock = ManualClock()
        self.planners = Planners()
        self.again()

    def again(self) -> None:
        durable = WriteThrough(self.store)
        self.audit = AuditLog(self.store, durable, now_ms=self.clock.now_ms)
        self.policies = PolicyVersions(self.store, durable)
        versions = Versions(self.planners, self.planners, policies=self.policies)
        parts = RolloutParts(
            store=self.store,
            durable=durable,
            audit=self.audit,
            clock=self.clock,
            metrics=Metrics(),
        )
        self.rollouts = Rollouts(parts, versions)

    def start(self, **over: object) -> str:
        given: dict[str, Any] = {
            "subject": Subject(name="planner", candidate="2.0.0"),
            "canary": RULE,
            "shadow": RULE,
            "controlled": RULE,
            "full": msgspec.structs.replace(RULE, share=1.0),
            **over,
        }
        view = asyncio.run(self.rollouts.start(RolloutSpec(**given), LOCAL))
        return view.rollout_id

    def order(self, rollout_id: str, order: Order) -> Any:
        return asyncio.run(
            self.rollouts.order(rollout_id, order, reason="because", principal=LOCAL)
        )

    def sessions_end(self, rollout_id: str, count: int = 3) -> None:
        for arm in (*[Arm.BASELINE] * count, *[Arm.CANDIDATE] * count):
            stage = self.rollouts.get(rollout_id).stage
            self.rollouts.update(rollout_id, _counting(stage, arm))

    def pass_ms(self, ms: int) -> None:
        self.clock.advance(ms)
        asyncio.run(self.rollouts.tick())


def _counting(stage: Stage, arm: Arm) -> Callable[[Any], Any]:
    return lambda rollout: counted(rollout, stage, arm=arm, sample=GOOD)


@pytest.fixture
def house() -> House:
    return House()


def test_it_goes_its_way_and_every_step_is_in_the_audit_log(house: House) -> None:
    rollout = house.start()
    for _ in range(4):
        house.sessions_end(rollout)
        house.pass_ms(1_000)
    assert house.rollouts.get(rollout).status is Status.COMPLETED
    assert house.planners.now == "2.0.0"
    actions = [entry.action for entry in house.audit.entries()]
    assert actions == ["rollout.start", *["rollout.promote"] * 3, "rollout.complete"]
    assert first_break(house.audit.entries()) is None


def test_a_restart_finds_samples_and_clock_and_counts_no_time_away(house: House) -> None:
    rollout = house.start()
    house.sessions_end(rollout)
    house.pass_ms(999)
    house.pass_ms(0)
    before = house.rollouts.get(rollout)
    house.clock.advance(1_000_000)
    house.again()
    house.pass_ms(0)
    after = house.rollouts.get(rollout)
    assert (after.candidates, after.stage) == (before.candidates, Stage.CANARY)
    assert after.observed_ms <= before.observed_ms == 999
    house.pass_ms(1_000)
    assert house.rollouts.get(rollout).stage is Stage.SHADOW


def test_a_clock_that_jumps_promotes_nothing(house: House) -> None:
    rollout = house.start()
    house.sessions_end(rollout)
    house.clock.jump_to(house.clock.now_ms() + 10**9)
    house.pass_ms(0)
    assert house.rollouts.get(rollout).stage is Stage.CANARY


def test_time_in_which_the_gateway_was_stopped_is_not_time_in_which_all_went_well(
    house: House,
) -> None:
    """A container that was paused for two days promoted its candidate in the moment it went on."""
    long = msgspec.structs.replace(RULE, min_ms=10_000, steady_ms=10_000)
    rollout = house.start(canary=long)
    house.sessions_end(rollout)
    house.pass_ms(172_800_000)
    after = house.rollouts.get(rollout)
    assert (after.stage, after.observed_ms) == (Stage.CANARY, keeper.WATCHED_MS_MAX)
    for _ in range(4):
        house.pass_ms(2_000)
    assert house.rollouts.get(rollout).stage is Stage.SHADOW


def test_full_makes_it_active_and_a_rollback_takes_it_back(house: House) -> None:
    rollout = house.start()
    for _ in range(3):
        house.order(rollout, Order.PROMOTE)
    assert (house.rollouts.get(rollout).stage, house.planners.now) == (Stage.FULL, "2.0.0")
    house.order(rollout, Order.ROLLBACK)
    assert house.planners.now == "1.0.0"
    assert house.rollouts.active == ()


def test_when_somebody_else_moves_the_active_version_it_stops(house: House) -> None:
    rollout = house.start()
    house.planners.now = "1.5.0"
    house.pass_ms(250)
    view = house.rollouts.get(rollout)
    assert view.status is Status.PAUSED
    assert "1.5.0" in view.reason


def test_what_the_board_refuses_waits_for_a_person(house: House) -> None:
    rollout = house.start()
    for _ in range(2):
        house.order(rollout, Order.PROMOTE)
    house.planners.refusal = AcpFailure(error(Reason.PERMISSION_DENIED, "needs a proposal"))
    with pytest.raises(AcpFailure, match="needs a proposal"):
        house.order(rollout, Order.PROMOTE)
    assert house.rollouts.get(rollout).stage is Stage.CONTROLLED
    house.sessions_end(rollout)
    house.pass_ms(1_000)
    view = house.rollouts.get(rollout)
    assert (view.stage, view.status) == (Stage.CONTROLLED, Status.PAUSED)
    assert "needs a proposal" in view.reason
    assert house.planners.now == "1.0.0"
    house.again()
    assert house.rollouts.get(rollout).status is Status.PAUSED


def test_no_caller_is_served_by_what_the_board_refuses(house: House) -> None:
    """A fifth of the callers got it, and only the last stage asked."""
    rollout = house.start()
    house.order(rollout, Order.PROMOTE)
    house.planners.refusal = AcpFailure(error(Reason.PERMISSION_DENIED, "needs a proposal"))
    with pytest.raises(AcpFailure, match="needs a proposal"):
        house.order(rollout, Order.PROMOTE)
    house.sessions_end(rollout)
    house.pass_ms(1_000)
    view = house.rollouts.get(rollout)
    assert (view.stage, view.status) == (Stage.SHADOW, Status.PAUSED)
    assert "needs a proposal" in view.reason
    house.planners.refusal = None
    house.order(rollout, Order.RESUME)
    house.order(rollout, Order.PROMOTE)
    assert house.rollouts.get(rollout).stage is Stage.CONTROLLED


def test_nothing_is_promoted_to_what_is_not_there(house: House) -> None:
    rollout = house.start()
    house.planners.is_there = False
    house.sessions_end(rollout)
    house.pass_ms(10_000)
    assert house.rollouts.get(rollout).observed_ms == 0
    with pytest.raises(AcpFailure, match="not there"):
        house.order(rollout, Order.PROMOTE)


def test_a_policys_parameters_become_active_and_are_taken_back_over_a_restart(
    house: House,
) -> None:
    subject = Subject(kind=Kind.POLICY, name="backoff", candidate="quick", params={"base_ms": 7})
    rollout = house.start(subject=subject)
    for _ in range(3):
        house.order(rollout, Order.PROMOTE)
    house.again()
    assert house.policies.params("backoff") == '{"base_ms":7}'
    assert house.policies.active("backoff") == "quick"
    house.order(rollout, Order.ROLLBACK)
    house.again()
    assert house.policies.params("backoff") == ""
    assert house.policies.active("backoff") == "default"


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        (Subject(name="nobody", candidate="2.0.0"), "no component"),
        (Subject(name="planner", candidate="3.0.0"), "no such version"),
        (Subject(name="planner", candidate="1.0.0"), "active already"),
        (Subject(name="planner", candidate="2.0.0", baseline="0.9.0"), "not 0.9.0"),
        (Subject(kind=Kind.POLICY, name="backoff", candidate="x", params={"oops": 1}), "oops"),
    ],
)
def test_what_cannot_be_tried_is_told(house: House, subject: Subject, said: str) -> None:
    with pytest.raises(AcpFailure, match=said):
        house.start(subject=subject)


def test_so_many_at_once_and_so_many_kept(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "RUNNING_MAX", 1)
    monkeypatch.setattr(keeper, "FINISHED_MAX", 2)
    rollout = house.start(rollout="first")
    with pytest.raises(AcpFailure, match="under way"):
        house.start(
            rollout="other",
            subject=Subject(kind=Kind.POLICY, name="backoff", candidate="q", params={"base_ms": 9}),
        )
    house.order(rollout, Order.ROLLBACK)
    for name in ("second", "third", "fourth"):
        house.clock.advance(1)
        house.order(house.start(rollout=name), Order.ROLLBACK)
    assert [one.rollout_id for one in house.rollouts.list().rollouts] == ["third", "fourth"]
    house.again()
    assert [one.rollout_id for one in house.rollouts.list().rollouts] == ["third", "fourth"]


def test_a_row_that_cannot_be_read_does_not_keep_a_gateway_from_starting(house: House) -> None:
    rollout = house.start()
    batch = house.store.batch()
    batch.put(Table.GOVERNANCE, b"rollout\0spoilt", b'{"rollout": {}}')
    house.store.write(batch)
    house.again()
    assert [one.rollout_id for one in house.rollouts.list().rollouts] == [rollout]


def test_people_hear_of_what_waits_for_them_and_of_what_was_taken_back(house: House) -> None:
    rollout = house.start()
    assert house.rollouts.count(Status.RUNNING) == 1
    house.planners.now = "1.5.0"
    house.pass_ms(250)
    assert house.rollouts.count(Status.PAUSED) == 1
    house.order(rollout, Order.ROLLBACK)
    assert house.rollouts.taken_back() == 0, "a person knows what it did itself"
    house.planners.now = "1.0.0"
    house.start(rollout="bad")
    for arm, good in ((Arm.BASELINE, True), (Arm.CANDIDATE, False)):
        ended = msgspec.structs.replace(GOOD, succeeded=good)
        for _ in range(60):
            house.rollouts.update(
                "bad",
                lambda one, arm=arm, ended=ended: counted(  # type: ignore[misc]
                    one, Stage.CANARY, arm=arm, sample=ended
                ),
            )
    house.pass_ms(250)
    assert house.rollouts.taken_back() == 1
    house.clock.advance(keeper.DAY_MS + 1)
    assert house.rollouts.taken_back() == 0
