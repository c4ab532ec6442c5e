"""Live parameters: versions in order, durable, audited; what holds is never half a change."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from acp_spec.model.card import Card, Limits
from acp_spec.model.errors import AcpFailure
from gateway.board.audit import AuditLog
from gateway.governance.backoff import Backoff
from gateway.governance.parameters import Override, Parameters, problem
from gateway.governance.rules import BreakerRules, HedgeRules, RateRules, RetryTokenRules, Slots
from gateway.runtime.clock import ManualClock
from gateway.runtime.parameters import (
    KEPT_MAX,
    LiveParameters,
    ParameterBook,
    ParameterChange,
    changed_fields,
)
from gateway.runtime.principal import LOCAL
from gateway.runtime.tests.fake_components import FakeConnection, FakeTarget
from gateway.stores.durable import WriteThrough
from gateway.stores.memory import MemoryStore
from gateway.stores.ports import Store, Table
from gateway.stores.rocksdb import RocksStore

QUICK = Parameters(breaker=BreakerRules(open_ms=1_500))


def book(store: Store) -> tuple[LiveParameters, ParameterBook, AuditLog]:
    live, durable = LiveParameters(Parameters()), WriteThrough(store)
    audit = AuditLog(store, durable, now_ms=lambda: 7)
    return (
        live,
        ParameterBook(live, store, durable=durable, audit=audit, clock=ManualClock()),
        audit,
    )


def change(kept: ParameterBook, expected: int, parameters: Parameters, note: str = "") -> int:
    asked = ParameterChange(expected_version=expected, parameters=parameters, note=note)
    return asyncio.run(kept.change(asked, LOCAL)).version


def target(card: Card) -> FakeTarget:
    return FakeTarget("i", card, FakeConnection())


def test_a_change_makes_the_next_version_which_holds_at_once_for_every_target() -> None:
    live, kept, _ = book(MemoryStore())
    one = target(Card(name="c", version="1.0.0"))
    assert (live.rules_for(one).version, live.rules_for(one).breaker.open_ms) == (1, 1_000)
    assert change(kept, 1, QUICK) == 2
    assert (live.rules_for(one).version, live.rules_for(one).breaker.open_ms) == (2, 1_500)


def test_a_change_holds_once_it_is_on_disk_and_not_before() -> None:
    """What holds and is lost with the power would be a change that nobody made."""

    async def story() -> None:
        store = MemoryStore()
        live, disk = LiveParameters(Parameters()), SlowDisk(store)
        audit = AuditLog(store, disk, now_ms=lambda: 7)
        kept = ParameterBook(live, store, durable=disk, audit=audit, clock=ManualClock())
        asked = ParameterChange(expected_version=1, parameters=QUICK)
        changing = asyncio.create_task(kept.change(asked, LOCAL))
        await asyncio.sleep(0)
        assert (live.current.version, changing.done()) == (1, False)
        disk.is_synced.set()
        assert (await changing).version == live.current.version == 2

    asyncio.run(story())


class SlowDisk(WriteThrough):
    """It has synced when the test says so."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.is_synced = asyncio.Event()

    async def synced(self) -> None:
        await self.is_synced.wait()


def test_who_changed_another_version_than_the_newest_is_told_and_changes_nothing() -> None:
    live, kept, audit = book(MemoryStore())
    change(kept, 1, QUICK)
    with pytest.raises(AcpFailure) as refused:
        change(kept, 1, Parameters())
    assert refused.value.error.reason == "STALE_STATE"
    assert "version 2" in refused.value.error.message
    assert (live.current.parameters, audit.head[0]) == (QUICK, 1)


def test_a_restart_finds_the_newest_version_and_the_whole_history(tmp_path: Path) -> None:
    store = RocksStore(tmp_path / "store")
    _, kept, _ = book(store)
    change(kept, 1, QUICK, note="faster")
    change(kept, 2, Parameters(retry_budget=3))
    store.close()
    again = RocksStore(tmp_path / "store")
    live, kept, _ = book(again)
    assert (live.current.version, live.retry_budget) == (3, 3)
    assert [(one.version, one.note) for one in kept.history(limit=9)] == [(3, ""), (2, "faster")]
    assert change(kept, 3, QUICK) == 4
    again.close()


def test_a_version_that_cannot_be_read_leaves_the_one_before_it_in_force() -> None:
    store = MemoryStore()
    _, kept, _ = book(store)
    change(kept, 1, QUICK)
    change(kept, 2, Parameters())
    (newest, _), *_ = store.scan(Table.GOVERNANCE, b"", reverse=True)
    WriteThrough(store).put(Table.GOVERNANCE, newest, b'{"version": 3, "parameters": 7}')
    live, kept, _ = book(store)
    assert (live.current.version, live.current.parameters) == (2, QUICK)
    assert len(kept.unreadable) == 1
    assert "version 3" in kept.unreadable[0]


def test_the_history_keeps_so_many_and_forgets_the_oldest() -> None:
    store = MemoryStore()
    _, kept, _ = book(store)
    for expected in range(1, KEPT_MAX + 3):
        change(kept, expected, QUICK)
    versions = [one.version for one in kept.history(limit=10 * KEPT_MAX)]
    assert versions == list(range(KEPT_MAX + 3, 3, -1))


def test_every_change_stands_in_the_audit_log_with_what_it_changed_and_by_whom() -> None:
    _, kept, audit = book(MemoryStore())
    change(kept, 1, QUICK, note="an outage")
    (entry,) = audit.entries()
    assert (entry.actor, entry.action) == ("local", "governance.parameters.changed")
    assert entry.subject == "governance:parameters@2"
    told = msgspec.json.decode(entry.details)
    assert told == {"before": 1, "changed": ["breaker.open_ms"], "note": "an outage"}


def test_changed_fields_are_named_by_their_whole_path() -> None:
    rate = {"quote": RateRules(per_second=5)}
    after = Parameters(retry_budget=1, components={"fees": Override(actions=rate)})
    assert set(changed_fields(Parameters(), after)) >= {
        "retry_budget",
        "components.fees.actions.quote.per_second",
    }


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        (Parameters(backoff=Backoff(base_ms=9, max_ms=8)), "backoff"),
        (Parameters(breaker=BreakerRules(open_ms=9, max_open_ms=8)), "breaker: open_ms"),
        (
            Parameters(components={"c": Override(breaker=BreakerRules(open_ms=80_000))}),
            "components.c.breaker",
        ),
        (Parameters(components={"": Override()}), "components: ''"),
        (Parameters(components={"Fees": Override()}), "components: 'Fees'"),
        (Parameters(components={"fees\n": Override()}), r"components: 'fees\n'"),
        (Parameters(components={"f" * 70_000: Override()}), "no component's name"),
        (
            Parameters(components={"fees": Override(actions={"a b": RateRules(per_second=1)})}),
            "components.fees.actions: 'a b'",
        ),
    ],
)
def test_a_document_that_makes_no_sense_is_refused_with_its_place(
    parameters: Parameters, said: str
) -> None:
    assert said in (problem(parameters) or "")
    store = MemoryStore()
    _, kept, audit = book(store)
    with pytest.raises(AcpFailure) as refused:
        change(kept, 1, parameters)
    assert said in refused.value.error.message
    assert len(refused.value.error.message) < 300
    assert (audit.head[0], list(store.scan(Table.GOVERNANCE, b""))) == (0, [])


def test_a_component_goes_by_its_override_then_by_its_card_then_by_what_holds_for_all() -> None:
    live = LiveParameters(
        Parameters(
            target=Slots(limit=32, max_waiting=7),
            components={
                "b": Override(
                    target=Slots(limit=3),
                    retry_tokens=RetryTokenRules(enabled=False),
                    breaker=BreakerRules(failures_in_a_row=2),
                    hedge=HedgeRules(share=0.5),
                    backoff=Backoff(base_ms=7),
                    rate=RateRules(per_second=2),
                    actions={"x": RateRules(per_second=1)},
                )
            },
        )
    )
    limits = Limits(max_concurrency=5, max_rate_per_s=100)
    plain = live.rules_for(target(Card(name="a", version="1.0.0")))
    assert (plain.target, plain.rate) == (Slots(limit=32, max_waiting=7), None)
    assert (plain.breaker, plain.hedge) == (BreakerRules(), HedgeRules())
    assert live.backoff_of("a") == Backoff()
    told = live.rules_for(target(Card(name="c", version="1.0.0", limits=limits)))
    assert told.target == Slots(limit=5, max_waiting=7)
    assert told.rate == RateRules(per_second=100, burst=10)
    ruled = live.rules_for(target(Card(name="b", version="1.0.0", limits=limits)))
    assert (ruled.target.limit, ruled.retries.enabled) == (3, False)
    assert (ruled.breaker.failures_in_a_row, ruled.hedge.share) == (2, 0.5)
    assert live.backoff_of("b") == Backoff(base_ms=7)
    assert ruled.rate == RateRules(per_second=2), "an operator's word goes before the card's"
    assert {name: rate.per_second for name, rate in ruled.actions.items()} == {"x": 1}


@pytest.mark.parametrize(("stated", "held"), [(5e-324, 0.001), (1e308, 1_000_000.0)])
def test_a_cards_rate_is_one_that_can_be_divided_by(stated: float, held: float) -> None:
    """A wait of 10^323 ms was an OverflowError in whatever session called the component."""
    live = LiveParameters(Parameters())
    card = Card(name="a", version="1.0.0", limits=Limits(max_rate_per_s=stated))
    rate = live.rules_for(target(card)).rate
    assert rate is not None
    assert rate.per_second == held


def test_a_rate_of_nothing_is_refused_with_its_least() -> None:
    with pytest.raises(msgspec.ValidationError, match=r">= 0\.001.*per_second"):
        msgspec.convert(
            {"components": {"a": {"actions": {"x": {"per_second": 5e-324}}}}}, type=Parameters
        )
