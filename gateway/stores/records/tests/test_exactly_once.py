"""Every row once, however often, in whatever order and how brokenly its session is told."""

import itertools
import random
from collections.abc import Iterable, Sequence

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_spec.model.trajectory import Rewards, Trajectory
from gateway.stores.records.exactly_once import bring, digest, mend
from gateway.stores.records.rows import shape
from gateway.stores.records.store import (
    TABLES,
    Held,
    RecordsDown,
    RecordStore,
)
from gateway.stores.records.tests.sessions import name_of, whole

_numbers = itertools.count(1_000)


def _fresh(count: int) -> list[int]:
    """Numbers of sessions that no other test uses: the store is shared."""
    return list(itertools.islice(_numbers, count))


def _version(number: int, version: int) -> Trajectory:
    """Version 2 adds a comment and changes a reward, 3 adds one more and takes a reward back."""
    one = whole(number, version, comments=("#late", "#rude", "ok")[:version])
    quality = one.rewards.quality
    if version == 2:
        quality = (msgspec.structs.replace(quality[0], value=0.75), *quality[1:])
    if version == 3:
        quality = quality[:1]
    rewards = Rewards(quality=quality, operational=one.rewards.operational)
    return msgspec.structs.replace(one, rewards=rewards)


def _wanted(sessions: Iterable[Trajectory]) -> list[tuple[str, str, int, int]]:
    return sorted(
        (table, one.session_id, row.key, row.hash)
        for one in sessions
        for table, rows in shape(one).items()
        for row in rows
    )


def _held(store: RecordStore, numbers: Sequence[int]) -> list[tuple[str, str, int, int]]:
    return sorted(
        (row.table, row.session_id, row.key, row.hash)
        for row in store.held([name_of(number) for number in numbers])
    )


class Killed(Exception):
    """Stands for the sender's death."""


class DyingStore(RecordStore):
    """Dies before the insert of that number, or after it: then the store has it all the same."""

    def __init__(self, store: RecordStore, *, at: int, after: bool) -> None:
        super().__init__(store._client)
        self._left = at
        self._after = after

    def insert(self, table: str, lines: Iterable[bytes], *, token: str) -> None:
        self._left -= 1
        if self._left < 0 and not self._after:
            raise Killed
        super().insert(table, lines, token=token)
        if self._left < 0:
            raise Killed


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.randoms(use_true_random=False))
def test_every_batch_twice_and_out_of_order_changes_nothing(
    store: RecordStore, chance: random.Random
) -> None:
    numbers = _fresh(3)
    batches = [
        [_version(number, version) for number in chance.sample(numbers, chance.randint(1, 3))]
        for version in (1, 2, 3)
        for _ in range(2)
    ]
    told = [(f"{numbers[0]}:{at}", batch) for at, batch in enumerate(batches)] * 2
    chance.shuffle(told)
    for token, batch in told:
        bring(store, batch, token=token, ask=chance.random() < 0.5)
    newest: dict[str, Trajectory] = {}
    for _, batch in told:
        for one in batch:
            newest[one.session_id] = max(newest.get(one.session_id, one), one, key=_sequence)
    assert _held(store, numbers) == _wanted(newest.values())


def _sequence(one: Trajectory) -> int:
    return one.sequence


@pytest.mark.parametrize("ask", [True, False], ids=["by asking alone", "by the token alone"])
@pytest.mark.parametrize("after", [True, False], ids=["after", "before"])
def test_a_sender_that_dies_at_any_insert_is_made_good_by_sending_again(
    store: RecordStore, *, after: bool, ask: bool
) -> None:
    for at in range(len(TABLES)):
        numbers = _fresh(2)
        batch = [_version(number, 1) for number in numbers]
        token = f"dying:{numbers[0]}"
        with pytest.raises(Killed):
            bring(DyingStore(store, at=at, after=after), batch, token=token)
        bring(store, batch, token=f"{token}, another" if ask else token, ask=ask)
        assert _held(store, numbers) == _wanted(batch), at


@pytest.mark.parametrize("after", [True, False])
def test_a_newer_version_whose_sender_dies_at_any_insert_arrives_once(
    store: RecordStore, *, after: bool
) -> None:
    for at in range(3):
        numbers = _fresh(2)
        bring(store, [_version(number, 1) for number in numbers], token=f"a:{numbers[0]}")
        batch = [_version(number, 3) for number in numbers]
        with pytest.raises(Killed):
            bring(DyingStore(store, at=at, after=after), batch, token=f"b:{numbers[0]}")
        bring(store, batch, token=f"b:{numbers[0]}", ask=True)
        assert _held(store, numbers) == _wanted(batch), at


def test_the_views_show_each_session_and_each_reward_at_its_newest(store: RecordStore) -> None:
    (number,) = _fresh(1)
    for version in (1, 2, 3, 1):
        bring(store, [_version(number, version)], token=f"{number}:{version}")
    named = f"session_id = '{name_of(number)}'"
    assert store._rows(f"SELECT sequence, feedback_count FROM v_sessions WHERE {named}") == [[3, 3]]
    rewards = store._rows(
        f"SELECT channel, name, value FROM v_rewards WHERE {named} ORDER BY channel, name"
    )
    assert rewards == [
        ["OPERATIONAL", "succeeded", 1],
        ["QUALITY", "helpful", 0.5],
        ["REFLECTOR", "helpful", 0.5],
    ]
    assert len(store._rows(f"SELECT 1 FROM v_feedback WHERE {named}")) == 3


def test_a_row_that_changed_after_the_end_replaces_the_one_before(store: RecordStore) -> None:
    (number,) = _fresh(1)
    bring(store, [_version(number, 1)], token=f"{number}:1")
    one = _version(number, 2)
    late = msgspec.structs.replace(one.calls[1], late=True)
    changed = msgspec.structs.replace(one, calls=(one.calls[0], late))
    bring(store, [changed], token=f"{number}:2")
    assert _held(store, [number]) == _wanted([changed])


def test_an_erased_session_is_gone_from_every_table_and_no_old_line_brings_it_back(
    store: RecordStore,
) -> None:
    gone, stays = _fresh(2)
    both = [_version(gone, 1), _version(stays, 1)]
    bring(store, both, token=f"{gone}:1")
    store.erase([name_of(gone)])
    bring(store, both, token=f"{gone}:1", ask=True)
    bring(store, [_version(gone, 3)], token=f"{gone}:3")
    assert _held(store, [gone, stays]) == _wanted(both[1:])


def test_one_session_that_cannot_be_taken_keeps_no_other_out(store: RecordStore) -> None:
    good, bad = _fresh(2)
    broken = msgspec.structs.replace(_version(bad, 1), opened_at="no time at all")
    brought = bring(store, [broken, _version(good, 1)], token=f"{bad}:1")
    assert [name for name, _ in brought.refused] == [name_of(bad)]
    assert brought.sessions == 1
    assert _held(store, [good]) == _wanted([_version(good, 1)])


def test_a_store_that_is_away_is_told_from_rows_that_are_refused(store: RecordStore) -> None:
    with pytest.raises(RecordsDown):
        store.insert("no_such_table", [b"{}\n"], token="x")


@pytest.mark.parametrize("table", TABLES)
def test_whatever_table_lost_rows_is_named_and_mended(store: RecordStore, table: str) -> None:
    numbers = _fresh(4)
    batch = [_version(number, 2) for number in numbers]
    bring(store, batch, token=f"{numbers[0]}")
    lost = name_of(numbers[2])
    store._mutate(f"ALTER TABLE {table} DELETE WHERE session_id = '{lost}'")
    assert mend(store, batch, token=f"mend:{numbers[0]}") == (lost,)
    assert _held(store, numbers) == _wanted(batch)
    assert mend(store, batch, token=f"again:{numbers[0]}") == ()


def test_rows_that_are_there_twice_or_say_what_no_session_said_are_mended(
    store: RecordStore,
) -> None:
    (number,) = _fresh(1)
    one = _version(number, 1)
    bring(store, [one], token=f"{number}")
    store.insert("gaps", [row.line for row in shape(one)["gaps"]], token=f"twice:{number}")
    (row,) = shape(one)["claims"]
    foreign = row.line.replace(str(row.key).encode(), b"12345")
    store.insert("claims", [foreign], token=f"foreign:{number}")
    assert mend(store, [one], token=f"mend:{number}") == (name_of(number),)
    assert _held(store, [number]) == _wanted([one])


def test_mending_leaves_alone_what_is_newer_in_the_store(store: RecordStore) -> None:
    (number,) = _fresh(1)
    bring(store, [_version(number, 3)], token=f"{number}")
    assert mend(store, [_version(number, 1)], token=f"mend:{number}") == ()
    assert _held(store, [number]) == _wanted([_version(number, 3)])


def test_the_digest_of_the_store_is_that_of_the_rows(store: RecordStore) -> None:
    (number,) = _fresh(1)
    bring(store, [_version(number, 2)], token=f"{number}")
    assert store.digests([name_of(number)]) == {name_of(number): digest(shape(_version(number, 2)))}
    assert Held("t", "s", 1, 2).hash == 2
