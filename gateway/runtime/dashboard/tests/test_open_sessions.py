"""Open sessions from the index: counted and paged by time, in bounds, of one tenant."""

import msgspec
import pytest

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Mode, SessionStatus
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.ids import session_id
from gateway.engine.shards import PlanRow, Shard
from gateway.runtime.dashboard import open_sessions
from gateway.runtime.dashboard.open_sessions import OpenSessions
from gateway.runtime.live import Live
from gateway.stores.memory import MemoryStore
from gateway.stores.ports import Table
from gateway.stores.tables import listed_row, shard_row

RUNNING, WAITING = SessionStatus.RUNNING, SessionStatus.WAITING
AT_MS = 1_790_000_000_000


def name(number: int) -> str:
    return session_id(AT_MS + number, 0, random_64=number)


def store_of(*sessions: tuple[int, SessionStatus, str], tenant: str = "default") -> MemoryStore:
    store = MemoryStore()
    for number, status, workflow in sessions:
        one = name(number)
        plan = PlanRow(
            lineage_id=f"{one}.0",
            workflow=workflow,
            status=status,
            mode=Mode.AUTOMATIC,
            version="1.0.0",
            opened_at_ms=AT_MS + number,
        )
        batch = store.batch()
        row = listed_row(tenant, one, status=status.value)
        batch.put(Table.INDEX, row, workflow.encode())
        batch.put(Table.SHARD, shard_row(one, Shard.PLAN.value), msgspec.json.encode(plan))
        store.write(batch)
    return store


def nobody(session: str) -> Live | None:
    return None


def test_open_sessions_are_counted_by_status_since_and_workflow() -> None:
    look = OpenSessions(
        store_of((1, RUNNING, "a@1"), (2, WAITING, "a@2"), (3, RUNNING, "b@1")), nobody
    )
    count = look.count("default")
    assert (count.running, count.waiting, count.is_all) == (2, 1, True)
    assert look.count("default", since_ms=AT_MS + 2).running == 1
    assert look.count("default", workflow="a").running == 1
    assert look.count("default", workflow="a@2").waiting == 1
    assert look.count("bank").running == 0


def test_more_than_are_counted_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    look = OpenSessions(store_of(*((n, RUNNING, "a@1") for n in range(5))), nobody)
    monkeypatch.setattr(open_sessions, "COUNTED_MAX", 5)
    assert look.count("default").is_all
    monkeypatch.setattr(open_sessions, "COUNTED_MAX", 4)
    count = look.count("default")
    assert (count.running, count.is_all) == (4, False)


def test_a_page_looks_at_a_bounded_number_and_says_how_far_it_saw(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mixed = ((n, (RUNNING, WAITING)[n % 2], ("a@1", "b@1")[n % 3 == 0]) for n in range(12))
    look = OpenSessions(store_of(*mixed), nobody)
    monkeypatch.setattr(open_sessions, "LOOKED_AT_MAX", 5)
    seen: list[str] = []
    after: dict[str, str | int] = {}
    pages = 0
    while True:
        found = look.page("default", {"workflow": "b", **after}, limit=2)
        seen += [item.session_id for item in found.items]
        pages += 1
        if not found.down_to:
            break
        after = {"after": found.down_to}
    assert seen == [name(n) for n in (9, 6, 3, 0)]
    assert pages > 2


def test_a_filter_that_needs_states_reads_few_of_them_and_passes_over_a_damaged_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def damaged(session: str) -> Live | None:
        asked.append(session)
        raise AcpFailure(error(Reason.DATA_LOSS, "damaged"))

    look = OpenSessions(store_of(*((n, RUNNING, "a@1") for n in range(9))), damaged)
    monkeypatch.setattr(open_sessions, "STATES_MAX", 4)
    found = look.page("default", {"component": "cards"}, limit=50)
    assert (found.items, found.down_to, len(asked)) == ([], name(5), 4)
