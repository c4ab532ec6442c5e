"""A cluster that others use too, or that is not the one it was; and comparisons under traffic."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.stores.records.comparing import Comparing, Wish
from gateway.stores.records.endpoint import Endpoint
from gateway.stores.records.feed_status import FeedingStatus, Outcome
from gateway.stores.records.feeding import STORE_FILE
from gateway.stores.records.log_tail import Place, next_batch
from gateway.stores.records.reach import Limits, Reader, Unreachable, ask
from gateway.stores.records.store import DATABASE, RecordStore, client_of, connect
from gateway.stores.records.tests.childhood import KEY, Child
from gateway.stores.records.tests.sessions import name_of, new_log, put, whole
from gateway.stores.records.tiers import Tiers, nothing_cold


def _url(cluster: Child) -> str:
    return f"http://default:{KEY}@127.0.0.1:{cluster.endpoint.port}"


def _lose_all(endpoint: Endpoint) -> None:
    client = client_of(endpoint, database="")
    client.command(f"DROP DATABASE {DATABASE}")
    client.close()


def _versions(cluster: Child, *numbers: int) -> dict[str, int]:
    store = connect(cluster.endpoint)
    try:
        return store.versions([name_of(number) for number in numbers])
    finally:
        store.close()


def test_two_gateways_whose_files_have_the_same_names_and_sizes_share_a_cluster(
    tmp_path: Path,
) -> None:
    """A token of file and offsets alone said of the second one's rows that they were there."""
    sizes = set()
    with Child(tmp_path / "there") as cluster:
        for number, name in ((1, "one"), (4, "two")):
            put(new_log(tmp_path / name / "trajectories"), whole(number))
            (file,) = (tmp_path / name / "trajectories").glob("*/*.jsonl")
            sizes.add((file.name, file.stat().st_size))
            with Child(tmp_path / name, url=_url(cluster), gateway_id=name) as feeder:
                assert feeder.fed().counts.sessions == 1
        assert len(sizes) == 1
        assert _versions(cluster, 1, 4) == {name_of(1): 7, name_of(4): 7}


def test_a_cluster_that_comes_back_empty_gets_all_of_the_log_once_more(tmp_path: Path) -> None:
    log = new_log(tmp_path / "here" / "trajectories")
    put(log, whole(1), whole(2))
    with Child(tmp_path / "there") as cluster:
        with Child(tmp_path / "here", url=_url(cluster)) as feeder:
            feeder.fed()
            _lose_all(cluster.endpoint)
            put(log, whole(3))
            feeder.once(lambda status: status.counts.sessions == 3 and not status.problem)
            assert _versions(cluster, 1, 2, 3) == {name_of(number): 7 for number in (1, 2, 3)}
            _lose_all(cluster.endpoint)
        with Child(tmp_path / "here", url=_url(cluster)) as again:
            again.once(lambda status: status.counts.sessions == 3)
        assert _versions(cluster, 1, 2, 3) == {name_of(number): 7 for number in (1, 2, 3)}


def test_a_cluster_that_another_gateway_made_anew_meanwhile_is_told_from_the_one_before(
    tmp_path: Path,
) -> None:
    put(new_log(tmp_path / "here" / "trajectories"), whole(1))
    with Child(tmp_path / "there") as cluster:
        with Child(tmp_path / "here", url=_url(cluster)) as feeder:
            feeder.fed()
        _lose_all(cluster.endpoint)
        other = connect(cluster.endpoint)
        other.migrate()
        other.close()
        (tmp_path / "here" / "records" / STORE_FILE).write_text("2026-01-01 00:00:00")
        with Child(tmp_path / "here", url=_url(cluster)) as again:
            again.once(lambda status: status.counts.sessions == 1)
        assert _versions(cluster, 1) == {name_of(1): 7}


def test_a_feed_that_has_nothing_to_do_notices_that_its_cluster_is_another_one(
    tmp_path: Path,
) -> None:
    put(new_log(tmp_path / "here" / "trajectories"), whole(1))
    with (
        Child(tmp_path / "there") as cluster,
        Child(tmp_path / "here", url=_url(cluster)) as feeder,
    ):
        feeder.fed()
        client = client_of(cluster.endpoint)
        client.command("TRUNCATE TABLE sessions")
        client.command("TRUNCATE TABLE migrations")
        client.command(
            "INSERT INTO migrations (number, name, applied_at) VALUES (1, 'x', toDateTime(7))"
        )
        feeder.once(lambda status: status.counts.batches >= 2)
        assert _versions(cluster, 1) == {name_of(1): 7}
        _lose_all(cluster.endpoint)
        feeder.once(lambda status: status.counts.batches == 1)
        assert _versions(cluster, 1) == {name_of(1): 7}
        client.close()


def test_the_same_store_is_not_fed_again_at_the_next_start(tmp_path: Path) -> None:
    put(new_log(tmp_path / "trajectories"), whole(1))
    with Child(tmp_path) as child:
        child.fed()
    mark = tmp_path / "records" / STORE_FILE
    written = mark.stat().st_mtime_ns
    with Child(tmp_path) as again:
        assert again.fed().counts.batches == 0
    assert mark.stat().st_mtime_ns == written, "a disk that is full by now keeps nobody from asking"


def test_who_asks_a_cluster_that_lost_the_tables_did_nothing_wrong(child: Child) -> None:
    _lose_all(child.endpoint)
    reader = Reader(child.endpoint, timeout_ms_max=10_000)
    with pytest.raises(Unreachable):
        reader.query("SELECT count() FROM v_sessions", Limits())


def _while_sessions_end(child: Child, then: Callable[[], FeedingStatus]) -> FeedingStatus:
    """Without a pause in which the feed would find nothing new."""
    over, log = threading.Event(), new_log(child.log_dir)

    def write() -> None:
        number = 1_000
        while not over.is_set():
            put(log, whole(number))
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        return then()
    finally:
        over.set()
        writer.join()
        log.close()


def test_a_comparison_does_not_wait_for_sessions_to_stop_ending(tmp_path: Path) -> None:
    put(new_log(tmp_path / "trajectories"), whole(1), whole(2), whole(3))
    with Child(tmp_path) as child:
        child.fed()
        found = _while_sessions_end(child, child.compared).comparison
        assert found.outcome is Outcome.IDENTICAL
        assert found.compared >= 3


def test_what_was_there_when_it_was_asked_for_is_compared_also_right_after_a_backfill(
    tmp_path: Path,
) -> None:
    log = new_log(tmp_path / "trajectories")
    for number in range(6):
        put(log, whole(number))
        log.close()  # a batch ends with its file
    with Child(tmp_path) as child:
        child.fed()
        ask(child.endpoint, "backfill")
        assert child.compared().comparison.compared == 6


def test_of_a_chunk_that_goes_beyond_the_feed_the_rest_is_compared(
    tmp_path: Path, store: RecordStore
) -> None:
    store.migrate()
    log = new_log(tmp_path)
    put(log, whole(71), whole(72))
    first = next_batch(tmp_path, Place())
    assert first is not None
    put(log, whole(73))
    tiers = Tiers(tmp_path, tmp_path / "state", cold=nothing_cold, damaged=lambda file, why: None)
    comparing = Comparing(tiers, store, wish=Wish("test", Place(), first.after, "test"))
    while comparing.step():
        pass
    assert comparing.found.compared == 2
    assert set(comparing.found.sessions) == {name_of(71), name_of(72)}
    assert store.versions([name_of(73)]) == {}
