"""The child from outside, over TCP as if it were a cluster: killed, hung, full, asked nonsense."""

import hashlib
import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest
from clickhouse_connect.driver.exceptions import DatabaseError

from acp_spec.model.payload import payload
from acp_spec.model.trajectory import Trajectory
from gateway.stores.records.child import NICE
from gateway.stores.records.feed import ASIDE_FILE
from gateway.stores.records.feed_status import FeedingStatus, Outcome
from gateway.stores.records.feeding import BOOT_FILE
from gateway.stores.records.reach import Limits, QueryFailed, Reader, Unreachable, ask
from gateway.stores.records.rows import shape
from gateway.stores.records.store import RecordStore, client_of, connect
from gateway.stores.records.tests.childhood import KEY, Child, patiently
from gateway.stores.records.tests.sessions import AT_MS, line, name_of, new_log, put, whole

DYING = "gateway.stores.records.tests.dying_child"


def _held(child: Child, sessions: Iterable[Trajectory]) -> list[tuple[str, str, int, int]]:
    store = connect(child.endpoint)
    try:
        return sorted(
            (row.table, row.session_id, row.key, row.hash)
            for row in store.held([one.session_id for one in sessions])
        )
    finally:
        store.close()


def _is_identical(status: FeedingStatus) -> bool:
    return status.comparison.outcome is Outcome.IDENTICAL


def _wanted(sessions: Iterable[Trajectory]) -> list[tuple[str, str, int, int]]:
    return sorted(
        (table, one.session_id, row.key, row.hash)
        for one in sessions
        for table, rows in shape(one).items()
        for row in rows
    )


def test_what_the_log_gets_is_in_the_store_once_also_over_restarts(tmp_path: Path) -> None:
    log = new_log(tmp_path / "trajectories")
    put(log, *(whole(number) for number in range(3)))
    with Child(tmp_path) as child:
        child.fed()
        put(log, *(whole(number, 9, comments=("#late",)) for number in (1, 2, 3)))
        child.fed()
        assert child.stop() == 0
    newest = [whole(0), *(whole(number, 9, comments=("#late",)) for number in (1, 2, 3))]
    with Child(tmp_path) as again:
        assert again.fed().counts.batches == 0
        assert _held(again, newest) == _wanted(newest)


@pytest.mark.parametrize(
    ("step", "number"),
    [
        *(("begin", n) for n in (0, 1)),
        ("begun", 1),
        *(("insert", n) for n in (0, 8, 9)),  # nine tables first, then feedback and sessions
        *(("inserted", n) for n in (7, 9)),
        ("erase", 0),
        ("done", 1),
    ],
)
def test_a_child_killed_at_any_step_leaves_every_row_once(
    tmp_path: Path, step: str, number: int
) -> None:
    log = new_log(tmp_path / "trajectories")
    put(log, *(whole(n) for n in range(3)))
    log.close()  # a batch ends with its file
    put(log, *(whole(n, 9, comments=("#late",)) for n in range(2)))
    log.erase(name_of(2), now_ms=AT_MS)
    log.close()
    with Child(tmp_path, module=DYING, arguments=(step, str(number))) as dying:
        assert dying.process.wait(timeout=60) == -signal.SIGKILL
    newest = [whole(n, 9, comments=("#late",)) for n in range(2)]
    with Child(tmp_path) as again:
        again.fed()
        assert _held(again, [*newest, whole(2)]) == _wanted(newest)


def test_a_start_waits_for_a_predecessor_that_is_still_dying(tmp_path: Path) -> None:
    with Child(tmp_path) as first, Child(tmp_path).when_started(first.kill) as second:
        assert second.status().problem == ""


def test_a_start_gives_up_and_says_so_while_another_child_holds_the_store(tmp_path: Path) -> None:
    with Child(tmp_path):
        second = Child(tmp_path, lock_wait_s=0.1)
        assert second.process.wait(timeout=30) == 6
        second.__exit__()


PARENT = """
import os, signal, sys
from pathlib import Path
from gateway.stores.records.tests.childhood import Child
child = Child(Path(sys.argv[1])).ready()
if sys.argv[2] == "stopped":
    os.kill(child.process.pid, signal.SIGSTOP)
print(child.process.pid, flush=True)
signal.pause()
"""


@pytest.mark.parametrize("state", ["running", "stopped"])
def test_a_child_dies_with_its_killed_parent_also_while_it_is_stopped(
    tmp_path: Path, state: str
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), state], stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    for _ in patiently():
        if not _is_alive(pid):
            break
    with Child(tmp_path) as again:  # and its lock is free
        assert again.status().problem == ""


def _is_alive(pid: int) -> bool:
    """A zombie that nobody has waited for is dead."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def test_a_statement_that_breaks_off_leaves_nothing_in_the_next_answer(child: Child) -> None:
    client = client_of(child.endpoint, database="")
    for _ in range(5):
        with pytest.raises(DatabaseError, match="395"):
            client.raw_query("SELECT throwIf(number = 100000) FROM numbers(200000)")
        assert client.raw_query("SELECT 7", fmt="TabSeparated") == b"7\n"
    client.close()


def test_clients_of_clickhouse_speak_to_it_as_to_a_server(child: Child) -> None:
    client = client_of(child.endpoint)
    asked = client.query("SELECT {a:String}, {b:Array(Int32)}", parameters={"a": "it's", "b": [1]})
    assert asked.result_rows == [("it's", [1])]
    client.command("CREATE TABLE IF NOT EXISTS foreign_rows (a String) ENGINE = Memory")
    client.insert("foreign_rows", [["one"], ["two"]], column_names=["a"])
    assert client.command("SELECT count() FROM foreign_rows") == 2
    client.close()


def test_nobody_gets_in_without_the_key(child: Child) -> None:
    stranger = msgspec.structs.replace(child.endpoint, password="guessed")
    with pytest.raises(DatabaseError, match="516"):
        client_of(stranger)
    with pytest.raises(Unreachable, match="refuse"):
        ask(stranger, "status")


def test_a_question_only_reads_and_stays_within_its_limits(child: Child) -> None:
    reader = Reader(child.endpoint, timeout_ms_max=10_000)
    for sql, why in (
        ("CREATE TABLE x (a String) ENGINE = Memory", "readonly"),
        ("SELECT * FROM file('/etc/hostname', 'LineAsString')", "readonly"),
        ("SELECT * FROM url('http://127.0.0.1:1/', 'LineAsString')", "readonly"),
        ("SELECT 1 SETTINGS readonly = 0", "readonly"),
        ("SELECT number FROM numbers(100000)", "max rows"),
        ("SELECT count() FROM numbers(1e18)", "Timeout"),
        ("SELECT no_such_column FROM v_calls", "no_such_column"),
    ):
        timeout_ms = 300 if why == "Timeout" else 10_000
        with pytest.raises(QueryFailed, match=why):
            reader.query(sql, Limits(timeout_ms=timeout_ms, rows=10))
    answer = reader.query("SELECT 1 AS one, 'x' AS x;", Limits())
    assert msgspec.json.decode(answer.data) == [[1, "x"]]
    assert [column.name for column in answer.meta] == ["one", "x"]
    reader.close()


def test_a_hung_child_costs_its_asker_the_timeout_and_no_more(tmp_path: Path) -> None:
    with Child(tmp_path) as child:
        os.kill(child.process.pid, signal.SIGSTOP)
        with pytest.raises(Unreachable):
            ask(child.endpoint, "status", timeout_s=0.2)
        os.kill(child.process.pid, signal.SIGCONT)
        assert child.status().problem == ""


def test_a_full_disk_is_waited_out_and_nothing_is_lost(tmp_path: Path) -> None:
    log = new_log(tmp_path / "trajectories")
    sessions = [whole(number) for number in range(20)]
    with Child(tmp_path) as child:
        child.fed()
        store = connect(child.endpoint)
        _room(store, "1000000000000000000")
        put(log, *sessions)
        child.once(lambda status: "enough free space" in status.problem)
        assert child.status().counts.sessions == 0
        _room(store, "0")
        child.fed()
        store.close()
        assert _held(child, sessions) == _wanted(sessions)


def _room(store: RecordStore, wanted_bytes: str) -> None:
    """What must be free on the disk for an insert: a disk that has less is as good as full."""
    setting = f"min_free_disk_bytes_to_perform_insert = {wanted_bytes}"
    store._mutate(f"ALTER TABLE decisions MODIFY SETTING {setting}")


def test_parts_that_a_disk_broke_off_are_dropped_and_healed_from_the_log(tmp_path: Path) -> None:
    log = new_log(tmp_path / "trajectories")
    sessions = [_incompressible(number) for number in range(50)]
    with Child(tmp_path) as child:
        child.fed()
        _, hard = resource.prlimit(child.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(child.process.pid, resource.RLIMIT_FSIZE, (8_192, hard))
        put(log, *sessions)
        child.fed()  # the engine noticed nothing
        resource.prlimit(child.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        found = child.compared().comparison
        assert found.damaged_parts > 0
        assert found.differing == 50
        assert _held(child, sessions) == _wanted(sessions)
        assert child.compared().comparison.outcome is Outcome.IDENTICAL


def test_a_damaged_part_that_stops_the_feed_is_found_and_healed_without_being_asked(
    tmp_path: Path,
) -> None:
    log = new_log(tmp_path / "trajectories")
    with Child(tmp_path) as child:
        child.fed()
        _, hard = resource.prlimit(child.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(child.process.pid, resource.RLIMIT_FSIZE, (2_048, hard))
        put(log, *(_incompressible(number) for number in range(50)))
        child.fed()
        resource.prlimit(child.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        newer = [
            msgspec.structs.replace(_incompressible(number), sequence=9) for number in range(40)
        ]
        put(log, *newer)  # the feed asks what of them is there, and cannot read it
        child.once(lambda status: status.comparison.outcome is Outcome.HEALED)
        child.fed()
        sessions = [*newer, *(_incompressible(number) for number in range(40, 50))]
        assert _held(child, sessions) == _wanted(sessions)


def _incompressible(number: int) -> Trajectory:
    text = "".join(hashlib.sha256(f"{number} {n}".encode()).hexdigest() for n in range(16))
    return msgspec.structs.replace(whole(number), output=payload(f'"{text}"'.encode()))


def test_parts_lost_in_a_power_cut_are_named_and_healed_from_the_log(tmp_path: Path) -> None:
    log = new_log(tmp_path / "trajectories")
    with Child(tmp_path) as child:
        for at in range(3):
            put(log, *(whole(number) for number in range(at * 4, at * 4 + 4)))
            child.fed()
        assert child.compared().comparison.outcome is Outcome.IDENTICAL
        child.kill()
    lost = _newest_parts(tmp_path / "records" / "store")
    for part in lost:
        shutil.rmtree(part)
    with Child(tmp_path) as again:
        found = again.compared().comparison
        assert found.outcome is Outcome.HEALED
        assert found.compared == 12
        assert set(found.sessions) <= {name_of(number) for number in range(12)}
        assert found.differing == len(found.sessions) > 0
        sessions = [whole(number) for number in range(12)]
        assert _held(again, sessions) == _wanted(sessions)
        assert again.compared().comparison.outcome is Outcome.IDENTICAL


def _newest_parts(store: Path) -> list[Path]:
    """Of each table the part that was written last: it may never have reached the disk."""
    tables: dict[Path, Path] = {}
    for part in store.glob("store/*/*/202*_*_*_*"):
        newest = tables.get(part.parent, part)
        if part.stat().st_mtime_ns >= newest.stat().st_mtime_ns:
            tables[part.parent] = part
    assert len(tables) == 9, "whole() says nothing in feedback"
    return list(tables.values())


def test_after_a_boot_the_store_is_compared_without_being_asked(tmp_path: Path) -> None:
    log = new_log(tmp_path / "trajectories")
    put(log, whole(1))
    with Child(tmp_path) as child:
        child.fed()
        child.stop()
    (tmp_path / "records" / BOOT_FILE).write_text("another boot")
    with Child(tmp_path) as again:
        found = again.once(_is_identical).comparison
        assert "started anew" in found.why
        assert found.compared == 1


def test_the_store_is_compared_with_the_log_as_often_as_it_was_told(tmp_path: Path) -> None:
    put(new_log(tmp_path / "trajectories"), whole(1))
    with Child(tmp_path, verify_every_ms=1) as child:
        status = child.once(lambda status: status.comparisons > 2)
        assert status.comparison.why == "as scheduled"


def test_a_session_erased_behind_the_stores_back_is_found_by_a_comparison(tmp_path: Path) -> None:
    log = new_log(tmp_path / "trajectories")
    put(log, whole(1), whole(2))
    log.erase(name_of(1), now_ms=AT_MS)
    with Child(tmp_path) as child:
        child.fed()
        store = connect(child.endpoint)
        for table, rows in shape(whole(1)).items():
            store.insert(table, [row.line for row in rows], token="from nowhere")
        found = child.compared().comparison
        assert found.sessions == [name_of(1)]
        assert store.held([name_of(1)]) == []
        store.close()


def test_feeding_everything_again_changes_nothing(tmp_path: Path) -> None:
    log = new_log(tmp_path / "trajectories")
    put(log, *(whole(number) for number in range(5)))
    with Child(tmp_path) as child:
        child.fed()
        ask(child.endpoint, "backfill")
        child.once(lambda status: status.counts.batches == 2)
        sessions = [whole(number) for number in range(5)]
        assert _held(child, sessions) == _wanted(sessions)


def test_lines_that_nobody_here_can_read_are_put_aside_and_the_rest_goes_on(tmp_path: Path) -> None:
    log = new_log(tmp_path / "trajectories")
    newer = msgspec.structs.replace(whole(1), schema_version="2.0")
    log.append([line(newer), b'{"session_id":"half"}\n', line(whole(2))], AT_MS)
    with Child(tmp_path) as child:
        assert child.fed().counts.quarantined == 2
        assert _held(child, [whole(2)]) == _wanted([whole(2)])
    text = (tmp_path / "records" / ASIDE_FILE).read_text()
    assert "schema_version 2.0 is newer than 1.0" in text
    assert name_of(1) in text


def test_a_cluster_is_fed_by_a_child_without_an_engine_of_its_own(tmp_path: Path) -> None:
    log = new_log(tmp_path / "here" / "trajectories")
    put(log, *(whole(number) for number in range(3)))
    with Child(tmp_path / "there") as cluster:
        url = f"http://default:{KEY}@127.0.0.1:{cluster.endpoint.port}"
        with Child(tmp_path / "here", url=url) as feeder:
            feeder.fed()
            sessions = [whole(number) for number in range(3)]
            assert _held(cluster, sessions) == _wanted(sessions)
            assert not (tmp_path / "here" / "records" / "store").exists()


def test_a_cluster_that_is_away_is_waited_for(tmp_path: Path) -> None:
    log = new_log(tmp_path / "here" / "trajectories")
    put(log, whole(1))
    with Child(tmp_path / "there") as cluster:
        port = cluster.endpoint.port
        cluster.kill()
    with Child(tmp_path / "here", url=f"http://default:{KEY}@127.0.0.1:{port}") as feeder:
        status = feeder.once(lambda status: "not connected yet" not in status.problem)
        assert status.problem == f"no ClickHouse answers at 127.0.0.1:{port}: Connection refused"
        assert status.counts.sessions == 0


YIELDS = """
import os, threading
from pathlib import Path
from gateway.stores.records import child
over = threading.Event()
other = threading.Thread(target=over.wait, daemon=True)
other.start()
child._yield_to_others()
own = min(os.nice(0), os.getpriority(os.PRIO_PROCESS, other.native_id))
over.set()
group = Path("/proc/self/autogroup")
print(own, group.read_text() if group.is_file() else "", end="")
"""


AUTOGROUP = Path("/proc/self/autogroup")  # empty where the session of the system itself goes on


@pytest.mark.parametrize("is_leader", [True, False])
def test_it_yields_to_the_gateway_and_takes_nobody_with_it(is_leader: bool) -> None:
    command = [sys.executable, "-c", YIELDS]
    told = subprocess.run(command, start_new_session=is_leader, capture_output=True, check=True)
    own, _, group = told.stdout.decode().partition(" ")
    assert int(own) >= NICE
    if not is_leader:
        assert group == (AUTOGROUP.read_text() if AUTOGROUP.is_file() else "")
    elif group and os.access(AUTOGROUP, os.W_OK):
        assert group.split()[-1] == str(NICE)


def test_the_child_yields_once_it_has_started(child: Child) -> None:
    assert os.getpriority(os.PRIO_PROCESS, child.process.pid) >= NICE
