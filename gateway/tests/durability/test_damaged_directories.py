"""Full disks, cut and damaged journals, directories in use: a clear word, exit code, way out."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from conftest import skip_or_fail
from gateway.stores.durable import WriteThrough
from gateway.stores.ports import Table
from gateway.stores.rocksdb import RocksStore
from gateway.tests.durability.directories import (
    cut,
    damage,
    limited_acp,
    mounted,
    newest_log,
    refusal,
    unmount,
)
from gateway.tests.e2e.client import Client, opening
from gateway.tests.e2e.stranger import READ, Stranger, card, serving
from gateway.tests.served import Served, serve_gateway

Serve = Callable[..., Served]
USAGE, UNAVAILABLE, REFUSED = 2, 5, 8
WORKFLOW = """
workflow: looked
version: 1.0.0
steps: [{name: look, role: execute, component: looker, action: look}]
output: look.output
"""
BIG_INPUT = json.dumps("x" * 60_000)
REQUESTS_MAX = 2_000


@pytest.fixture
def looker() -> Iterator[Stranger]:
    """A component over all lives of the gateway."""
    stranger = Stranger(
        card("looker", "EXECUTOR", actions={"look": READ}), {"execute": lambda body: '{"output":1}'}
    )
    with serving(stranger):
        yield stranger


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


def fill(gateway: Served, looker: Stranger) -> list[str]:
    """Open sessions until the disk says no; those that were acknowledged."""
    acknowledged: list[str] = []
    with Client(gateway.url) as client:
        client.register(looker.url)
        client.put_workflow(WORKFLOW)
        for _ in range(REQUESTS_MAX):
            reply = client.post("/v1/sessions", opening("looked", BIG_INPUT))
            if reply.status != 201:
                assert (reply.status, reply.reason) == (503, "UNAVAILABLE"), reply.text
                break
            acknowledged.append(reply.json["session_id"])
        ready = client.get("/readyz")
        assert ready.status == 503
        assert "no space left" in ready.text
        assert str(gateway.data_dir) not in ready.text, "no file name is for everybody"
        assert "free some, then restart" in ready.text
        assert client.get("/healthz").status == 200
    assert acknowledged
    assert "no space left" in gateway.log()
    return acknowledged


def all_end(gateway: Served, acknowledged: list[str]) -> None:
    with Client(gateway.url) as client:
        for session_id in acknowledged:
            assert client.ended(session_id)["status"] == "SUCCEEDED"
        assert client.run("looked").json["status"] == "SUCCEEDED"


def test_when_files_may_not_grow_nothing_is_acknowledged_and_a_restart_has_all_that_was(
    tmp_path: Path, folder: Path, looker: Stranger, serve: Serve
) -> None:
    program = limited_acp(tmp_path, file_kib=600)
    log = tmp_path / "full.log"
    gateway = serve_gateway(data_dir=folder, log_file=log, environ={}, acp=program)
    try:
        acknowledged = fill(gateway, looker)
    finally:
        assert gateway.stop() == UNAVAILABLE, "it stops as told, and does not say that all is well"
    assert not any(line.startswith("Traceback") for line in gateway.log().splitlines())
    all_end(serve(data_dir=folder), acknowledged)


def test_on_a_full_disk_nothing_is_acknowledged_and_with_space_all_goes_on(
    tmp_path: Path, folder: Path, looker: Stranger, serve: Serve
) -> None:
    folder.mkdir()
    if not mounted(folder, mib=24):
        skip_or_fail("needs the right to mount a tmpfs (run as root)")
    try:
        ballast = folder / "ballast"
        gateway = serve(data_dir=folder)
        ballast.write_bytes(bytes(14 << 20))
        acknowledged = fill(gateway, looker)
        gateway.stop()
        ballast.unlink()
        again = serve(data_dir=folder)
        all_end(again, acknowledged)
        again.stop()
    finally:
        unmount(folder)


def test_a_log_cut_at_its_end_is_what_a_kill_leaves_and_starts(
    folder: Path, looker: Stranger, serve: Serve
) -> None:
    gateway = serve(data_dir=folder)
    with Client(gateway.url) as client:
        client.register(looker.url)
        client.put_workflow(WORKFLOW)
        ids = [client.run("looked").json["session_id"] for _ in range(5)]
    gateway.kill()
    cut(newest_log(folder), count=7)
    all_end(serve(data_dir=folder), ids)


def test_damage_in_the_middle_is_refused_and_can_be_salvaged_by_decision(
    folder: Path, looker: Stranger, serve: Serve
) -> None:
    gateway = serve(data_dir=folder)
    with Client(gateway.url) as client:
        client.register(looker.url)
        client.put_workflow(WORKFLOW)
        ids = [client.run("looked", BIG_INPUT).json["session_id"] for _ in range(20)]
    gateway.kill()
    damage(newest_log(folder), at=0.5)
    refused = refusal(folder)
    assert refused.exit_code == REFUSED
    for words in ("cannot start", "damaged", "backup", "journal.salvage: true"):
        assert words in refused.said
    assert "Traceback" not in refused.said
    salvaged = serve(data_dir=folder, environ={"ACP_JOURNAL_SALVAGE": "true"})
    with Client(salvaged.url) as client:
        there = [one for one in ids if client.get(f"/v1/sessions/{one}").status == 200]
        assert 0 < len(there) < len(ids)
        assert there == ids[: len(there)], "what stands before the damage is kept, whole"
    all_end(salvaged, there)
    salvaged.stop()
    assert serve(data_dir=folder).pid, "afterwards it starts without a decision again"


def test_a_directory_in_use_is_refused_and_the_one_who_has_it_goes_on(
    folder: Path, serve: Serve
) -> None:
    gateway = serve(data_dir=folder)
    refused = refusal(folder)
    assert refused.exit_code == REFUSED
    assert "in use by another process" in refused.said
    assert "another --data-dir" in refused.said
    assert "Traceback" not in refused.said
    with Client(gateway.url) as client:
        assert client.get("/readyz").status == 200


def test_a_directory_that_is_a_file_is_refused(folder: Path) -> None:
    folder.write_text("not a directory", encoding="ascii")
    refused = refusal(folder)
    assert refused.exit_code == USAGE
    assert str(folder) in refused.said
    assert "give another --data-dir" in refused.said
    assert "Traceback" not in refused.said


def test_a_row_that_governs_and_cannot_be_read_keeps_it_from_starting_in_one_line(
    folder: Path, serve: Serve
) -> None:
    """It was a traceback, which names neither the row nor what to do."""
    gateway = serve(data_dir=folder)
    with Client(gateway.url) as client:
        client.put_workflow(WORKFLOW)
        assert client.post("/v1/tokens", {"scopes": ["submit"]}).status == 201
        change = {"kind": "RETIREMENT", "subject": "component:a@1"}
        assert client.post("/v1/proposals", {"change": change, "title": "t"}).status == 201
    gateway.stop()
    for table, prefix in GOVERNING.items():
        key, value = written(folder, table, prefix)
        overwrite(folder, table, row=(key, value[:-1]))
        refused = refusal(folder)
        assert refused.exit_code == REFUSED
        assert f"of table {table.name} cannot be read" in refused.said
        assert "restore a backup" in refused.said
        assert "Traceback" not in refused.said
        overwrite(folder, table, row=(key, value))
    assert serve(data_dir=folder).pid, "and with its rows it starts"


GOVERNING = {Table.WORKFLOW: b"looked\0", Table.TOKEN: b"", Table.GOVERNANCE: b"proposal\0"}


def written(folder: Path, table: Table, prefix: bytes) -> tuple[bytes, bytes]:
    with closing(RocksStore(folder / "store")) as store:
        return next(row for row in store.scan(table, prefix) if row[1].startswith(b"{"))


def overwrite(folder: Path, table: Table, *, row: tuple[bytes, bytes]) -> None:
    with closing(RocksStore(folder / "store")) as store:
        WriteThrough(store).put(table, *row)
        store.sync()


def test_a_table_file_that_is_damaged_costs_its_sessions_and_no_others(
    folder: Path, looker: Stranger, serve: Serve
) -> None:
    """Half of the journal's table file cannot be read: it says which sessions, and runs."""
    gateway = serve(data_dir=folder)
    with Client(gateway.url) as client:
        client.register(looker.url)
        client.put_workflow(WORKFLOW)
        ids = [client.open("looked", BIG_INPUT, mode="MANUAL") for _ in range(20)]
    gateway.kill()
    serve(data_dir=folder).kill()  # a start writes what the log held into table files
    tables = sorted((folder / "store").glob("*.sst"), key=lambda path: path.stat().st_size)
    damage(tables[-1], at=0.5)
    again = serve(data_dir=folder)
    with Client(again.url) as client:
        statuses = {one: client.get(f"/v1/sessions/{one}") for one in ids}
        readable = [one for one in ids if statuses[one].status == 200]
        assert 0 < len(readable) < len(ids)
        lost = next(one for one in ids if one not in readable)
        assert statuses[lost].reason == "DATA_LOSS", statuses[lost].text
        assert lost in statuses[lost].message
        assert all(
            str(folder) not in told.text and ".sst" not in told.text for told in statuses.values()
        )
        ready = client.get("/readyz")
        assert ready.status == 503
        assert "the store is damaged" in ready.text
        assert "/" not in ready.text
        assert client.run("looked").json["status"] == "SUCCEEDED"
        assert client.post(f"/v1/sessions/{readable[0]}/finish", {"output": 1}).status == 200
    assert again.log().count("store_damaged") == 1
    assert ".sst" in again.log(), "whoever reads the log learns where"


def test_trajectories_that_cannot_be_written_make_it_unready(
    folder: Path, looker: Stranger, serve: Serve
) -> None:
    folder.mkdir()
    (folder / "trajectories").write_text("a file where a folder is meant", encoding="ascii")
    gateway = serve(data_dir=folder)
    with Client(gateway.url) as client:
        client.register(looker.url)
        client.put_workflow(WORKFLOW)
        assert client.run("looked").json["status"] == "SUCCEEDED"
        ready = client.get("/readyz")
        for _ in range(150):
            if ready.status == 503:
                break
            client.run("looked")
            Event().wait(0.1)
            ready = client.get("/readyz")
        assert ready.status == 503
        assert "trajectories cannot be written" in ready.text
        assert str(folder) not in ready.text
    assert "outbox_paused" in gateway.log()
