"""The chain: whole as written, broken by every change that somebody could make to a row."""

import asyncio
import hashlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.board.audit import (
    DETAILS_BYTES_MAX,
    FIRST,
    TURN,
    AuditLog,
    Entry,
    first_break,
    read_entries,
    verdict_of,
)
from gateway.stores.durable import WriteThrough
from gateway.stores.memory import MemoryStore
from gateway.stores.ports import Table


def log_of(count: int) -> tuple[MemoryStore, AuditLog]:
    store = MemoryStore()
    log = AuditLog(store, WriteThrough(store), now_ms=lambda: 1_000)
    for number in range(count):
        log.record("changed", f"thing:{number}", actor="ann", tenant="t", details={"n": number})
    return store, log


def test_an_empty_log_is_whole_and_begins_at_the_first_digest() -> None:
    store, log = log_of(0)
    assert log.head == (0, FIRST)
    assert first_break(read_entries(store)) is None


def test_a_log_goes_on_where_it_stopped_before_a_restart() -> None:
    store, log = log_of(3)
    again = AuditLog(store, WriteThrough(store), now_ms=lambda: 2_000)
    assert again.head == log.head
    again.record("changed", "thing:3", actor="bob", tenant="t")
    assert [entry.number for entry in read_entries(store)] == [1, 2, 3, 4]
    assert first_break(read_entries(store)) is None


def test_a_tenant_reads_its_own_entries_only() -> None:
    _, log = log_of(2)
    log.record("changed", "thing:x", actor="eve", tenant="other")
    assert [entry.subject for entry in log.entries(tenant="other")] == ["thing:x"]
    assert [entry.subject for entry in log.entries(after=1, tenant="t")] == ["thing:1"]


def test_what_is_too_large_for_the_log_stands_there_by_its_size_and_digest() -> None:
    """It was refused once, behind the change that it told of: that held, and no entry said so."""
    store, log = log_of(1)
    large = {"names": ["x" * 100] * DETAILS_BYTES_MAX}
    entry = log.record("changed", "thing:large", actor="ann", tenant="t", details=large)
    text = msgspec.json.encode(large)
    told = msgspec.json.decode(entry.details)
    assert told == {
        "details_bytes": len(text),
        "details_sha256": hashlib.sha256(text).hexdigest(),
    }
    assert [one.subject for one in read_entries(store)] == ["thing:0", "thing:large"]
    assert first_break(read_entries(store)) is None


@pytest.mark.parametrize("value", [b"", b"garbage{", b'{"number":3}', b"[1]"])
@pytest.mark.parametrize("place", [1, 3, 5])
def test_a_row_that_is_no_entry_any_more_is_where_the_chain_breaks(
    place: int, value: bytes
) -> None:
    """Its verification was a traceback, and of the newest one there was no gateway any more."""
    store, _ = log_of(5)
    WriteThrough(store).put(Table.AUDIT, place.to_bytes(8, "big"), value)
    verdict = verdict_of(read_entries(store), head="")
    assert (verdict.whole, verdict.number, verdict.entries) == (False, place, 5)
    assert "cannot be read" in verdict.message
    again = AuditLog(store, WriteThrough(store), now_ms=lambda: 2_000)
    assert again.spoilt is (place == 5)
    assert again.record("changed", "thing:6", actor="ann", tenant="t").number == 6
    assert verdict_of(read_entries(store), head="").number == place


def test_the_log_goes_on_behind_its_last_row_whatever_that_row_says_of_itself() -> None:
    """A number that was made smaller had the next entries written over older ones."""
    store, _ = log_of(5)
    *_, last = read_entries(store)
    smaller = msgspec.json.encode(msgspec.structs.replace(last, number=2))
    WriteThrough(store).put(Table.AUDIT, (5).to_bytes(8, "big"), smaller)
    again = AuditLog(store, WriteThrough(store), now_ms=lambda: 2_000)
    again.record("changed", "thing:6", actor="ann", tenant="t")
    assert [one.subject for one in read_entries(store)] == [
        *(f"thing:{n}" for n in range(5)),
        "thing:6",
    ]
    assert verdict_of(read_entries(store), head="").number == 5


def test_a_long_log_is_read_in_turns_and_others_work_in_between() -> None:
    async def story() -> None:
        _, log = log_of(2 * TURN + 1)
        worked = 0

        async def others() -> None:
            nonlocal worked
            while True:
                worked += 1
                await asyncio.sleep(0)

        beside = asyncio.create_task(others())
        found = [entry async for entry in log.in_turns()]
        assert [entry.number for entry in found] == list(range(1, 2 * TURN + 2))
        assert worked >= 2
        assert [entry.number async for entry in log.in_turns(after=2 * TURN)] == [2 * TURN + 1]
        beside.cancel()

    asyncio.run(story())


CHANGES = {
    "at_ms": 1_001,
    "tenant": "u",
    "actor": "bob",
    "action": "looked",
    "subject": "other",
    "details": msgspec.Raw(b'{"n":99}'),
    "previous": "f" * 64,
    "digest": "e" * 64,
}


def test_every_field_of_an_entry_is_covered_by_a_change_below() -> None:
    assert set(CHANGES) | {"number"} == set(Entry.__struct_fields__)


@pytest.mark.parametrize("field", CHANGES)
@given(place=st.integers(0, 4))
def test_a_changed_field_breaks_the_chain_there_or_right_behind(field: str, place: int) -> None:
    entries = list(read_entries(log_of(5)[0]))
    entries[place] = msgspec.structs.replace(entries[place], **{field: CHANGES[field]})
    found = first_break(entries)
    assert found is not None
    assert found.number == place + 1


@given(order=st.permutations(range(4)), taken=st.integers(0, 3))
def test_an_entry_taken_out_or_moved_breaks_the_chain(order: list[int], taken: int) -> None:
    entries = list(read_entries(log_of(4)[0]))
    moved = [entries[place] for place in order]
    assert (first_break(moved) is None) == (order == list(range(4)))
    without = entries[:taken] + entries[taken + 1 :]
    assert (first_break(without) is None) == (taken == 3), "a cut end is told by `head` alone"
