"""The store on disk: what survives a kill, what leaves it, what it says when it cannot work."""

import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.stores.errors import (
    DirectoryUnusable,
    StoreBusy,
    StoreCorrupt,
    StoreTooNew,
)
from gateway.stores.ports import Table
from gateway.stores.rocksdb import RocksStore
from gateway.stores.tables import FORMAT_KEY

PRELUDE = """
import sys
from pathlib import Path
from gateway.stores.errors import StoreError
from gateway.stores.ports import Table
from gateway.stores.rocksdb import RocksStore
path = Path(sys.argv[1])
def put(store, table, key, value):
    batch = store.batch()
    batch.put(table, key, value)
    store.write(batch)
"""

WRITER = """
store = RocksStore(path)
for number in range(10_000_000):
    batch = store.batch()
    batch.put(Table.JOURNAL, b"%08d" % number, b"x" * 700)
    batch.put(Table.INDEX, b"%08d" % number, b"")
    store.write(batch)
    print(number, flush=True)
"""


def _child(code: str, path: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", PRELUDE + code, str(path)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _put(store: RocksStore, table: Table, key: bytes, value: bytes) -> None:
    batch = store.batch()
    batch.put(table, key, value)
    store.write(batch)


def _files_with(path: Path, needle: bytes) -> list[str]:
    return [one.name for one in sorted(path.rglob("*")) if needle in one.read_bytes()]


def _killed_writer(path: Path, acknowledged: int) -> int:
    """Run a writer, kill -9 it once so many batches are acknowledged; the last acknowledged one."""
    with _child(WRITER, path) as child:
        assert child.stdout is not None
        last = -1
        while last < acknowledged:
            last = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        for line in child.stdout.read().splitlines():
            last = int(line) if line.isdigit() else last
    return last


def test_a_killed_process_loses_no_written_batch_and_halves_none(tmp_path: Path) -> None:
    last = _killed_writer(tmp_path, 1500)
    store = RocksStore(tmp_path)
    journal = [key for key, _ in store.scan(Table.JOURNAL, b"")]
    index = [key for key, _ in store.scan(Table.INDEX, b"")]
    store.close()
    assert journal == index, "a batch is there as a whole or not at all"
    assert journal == [b"%08d" % number for number in range(len(journal))]
    assert len(journal) > last


def test_a_torn_end_of_the_log_is_cut_without_a_word(tmp_path: Path) -> None:
    _killed_writer(tmp_path, 200)
    log = max(tmp_path.glob("*.log"))
    os.truncate(log, log.stat().st_size - 100)
    store = RocksStore(tmp_path)
    kept = sum(1 for _ in store.scan(Table.JOURNAL, b""))
    store.close()
    assert kept >= 200


def test_damage_inside_the_log_is_told_and_salvage_keeps_what_stands_before_it(
    tmp_path: Path,
) -> None:
    _killed_writer(tmp_path, 200)
    log = max(tmp_path.glob("*.log"))
    data = bytearray(log.read_bytes())
    data[80_000:80_004] = b"XXXX"
    log.write_bytes(data)
    with pytest.raises(StoreCorrupt, match="salvage"):
        RocksStore(tmp_path)
    # In a process of its own: a failed opening keeps RocksDB's lock until its process ends.
    code = "print(sum(1 for _ in RocksStore(path, salvage=True).scan(Table.JOURNAL, b'')))"
    with _child(code, tmp_path) as child:
        kept = int(child.communicate()[0])
    assert 80 < kept < 120


def test_a_scan_over_a_damaged_table_file_says_so_and_never_ends_early(tmp_path: Path) -> None:
    """A journal that silently lost its end would be taken for a younger session, and go on."""
    store = RocksStore(tmp_path)
    for number in range(200):
        _put(store, Table.JOURNAL, b"%08d" % number, os.urandom(700))
    store.erase(Table.KEY, b"any")  # writes everything into table files
    store.close()
    table = max(tmp_path.glob("*.sst"), key=lambda path: path.stat().st_size)
    data = bytearray(table.read_bytes())
    data[len(data) // 2] ^= 0xFF
    table.write_bytes(bytes(data))
    damaged = RocksStore(tmp_path)
    for reverse in (False, True):
        with pytest.raises(StoreCorrupt, match="damaged"):
            list(damaged.scan(Table.JOURNAL, b"", reverse=reverse))
    damaged.close()


def test_an_erased_key_is_in_no_file_any_more(tmp_path: Path) -> None:
    secrets = [os.urandom(32) for _ in range(4)]
    store = RocksStore(tmp_path)
    _put(store, Table.KEY, b"in an old table file", secrets[0])
    _put(store, Table.KEY, b"stays", secrets[3])
    store.erase(Table.KEY, b"nothing: it only drives the first row into a table file")
    _put(store, Table.KEY, b"in the log", secrets[1])
    _put(store, Table.JOURNAL, b"another table holds the log alive", b"x")
    _put(store, Table.KEY, b"overwritten", secrets[2])
    _put(store, Table.KEY, b"overwritten", b"other")
    store.sync()
    assert all(_files_with(tmp_path, secret) for secret in secrets), "they were there"
    for key in (b"in an old table file", b"in the log", b"overwritten"):
        store.erase(Table.KEY, key)
    assert [_files_with(tmp_path, secret) for secret in secrets[:3]] == [[], [], []]
    assert _files_with(tmp_path, secrets[3]), "the neighbour's key stays"
    assert store.get(Table.JOURNAL, b"another table holds the log alive") == b"x"
    store.close()
    store = RocksStore(tmp_path)
    assert [key for key, _ in store.scan(Table.KEY, b"")] == [b"stays"]
    store.close()


def test_sync_reaches_the_disk(tmp_path: Path, needs: Callable[[str], Path]) -> None:
    """Only the system can tell: between the two marks the process must ask for a data sync."""
    strace = needs("strace")
    code = """
import os
store = RocksStore(path)
put(store, Table.INDEX, b"k", b"v")
os.write(1, b"BEGIN")
store.sync()
os.write(1, b"END")
"""
    trace = tmp_path / "trace"
    command = [
        str(strace),
        "-f",
        "-e",
        "trace=fdatasync,fsync,write",
        "-o",
        str(trace),
        sys.executable,
    ]
    done = subprocess.run(
        [*command, "-c", PRELUDE + code, str(tmp_path / "db")], capture_output=True, check=False
    )
    if done.returncode != 0 and b"ptrace" in done.stderr:
        pytest.skip("needs the right to trace a process")
    between = re.search(r'"BEGIN".*?\n(.*)"END"', trace.read_text(), re.DOTALL)
    assert between is not None
    assert re.search(r"fdatasync\(\d+\)\s+= 0", between[1]), between[1]


def test_a_second_process_is_told_that_the_directory_is_in_use(tmp_path: Path) -> None:
    store = RocksStore(tmp_path)
    code = """
try:
    RocksStore(path)
except StoreError as error:
    print(type(error).__name__, error)
"""
    with _child(code, tmp_path) as child:
        said = child.communicate()[0]
    assert said.startswith("StoreBusy")
    assert str(tmp_path) in said
    assert "--data-dir" in said
    with pytest.raises(StoreBusy):
        RocksStore(tmp_path)
    store.close()
    RocksStore(tmp_path).close()


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [
        ("CURRENT", lambda data: b"junk\n"),
        ("MANIFEST*", lambda data: data[:50] + b"XXXX" + data[54:]),
        ("*.sst", lambda data: data[:10]),
    ],
)
def test_a_damaged_directory_is_refused_with_advice(
    tmp_path: Path, pattern: str, damage: "type[bytes]"
) -> None:
    store = RocksStore(tmp_path)
    _put(store, Table.INDEX, b"k", b"v" * 5000)
    store.erase(Table.INDEX, b"nothing: it only flushes")
    store.close()
    victim = max(tmp_path.glob(pattern))
    victim.write_bytes(damage(victim.read_bytes()))
    with pytest.raises(StoreCorrupt, match=r"restore it from a backup.*journal\.salvage: true"):
        RocksStore(tmp_path)


def test_a_directory_of_a_newer_gateway_is_refused(tmp_path: Path) -> None:
    store = RocksStore(tmp_path)
    _put(store, Table.META, FORMAT_KEY, b"99")
    store.close()
    with pytest.raises(StoreTooNew, match="newer gateway"):
        RocksStore(tmp_path)


def test_a_path_that_cannot_be_a_directory_is_a_clear_failure(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DirectoryUnusable, match="cannot use the data directory"):
        RocksStore(tmp_path / "file" / "db")


def test_a_full_disk_fails_the_write_and_keeps_what_was_written(tmp_path: Path) -> None:
    """A limit on the size of a file stands for the full disk: the log cannot grow any more."""
    code = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = RocksStore(path)
put(store, Table.INDEX, b"before", b"v")
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    for number in range(1000):
        put(store, Table.JOURNAL, b"%08d" % number, b"x" * 10_000)
        store.sync()
except StoreError as error:
    print(number, type(error).__name__, error, flush=True)
import os
os._exit(0)
"""
    with _child(code, tmp_path) as child:
        said = child.communicate()[0]
    number, kind = said.split()[:2]
    assert kind == "StoreFailed"
    store = RocksStore(tmp_path)
    assert store.get(Table.INDEX, b"before") == b"v"
    assert sum(1 for _ in store.scan(Table.JOURNAL, b"")) >= int(number)
    store.close()


def test_an_idle_store_takes_little_memory(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    store = RocksStore(tmp_path)
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    store.close()
    assert grown_kib < 32 * 1024
