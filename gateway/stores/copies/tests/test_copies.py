"""What is exported comes in again byte for byte, once, and only where it belongs."""

import shutil
from pathlib import Path

import msgspec
import pytest

from acp_spec.model.times import parse_rfc3339
from gateway.stores.archive.object_store import open_store
from gateway.stores.archive.tests.attic import Attic, FrailStore, Killed
from gateway.stores.copies.exporting import PlaceTaken
from gateway.stores.copies.importing import TargetDamaged
from gateway.stores.copies.manifest import (
    BEGUN,
    MANIFEST,
    ExportManifest,
    ExportUnreadable,
    Form,
    Selection,
)
from gateway.stores.copies.tests.copying import (
    exported,
    imported,
    lines_in,
    log_in,
    place_in,
    small,
    write,
)
from gateway.stores.memory import MemoryStore
from gateway.stores.ports import Table
from gateway.stores.reader import TrajectoryReader
from gateway.stores.records.tests.sessions import AT_MS, line, name_of, whole
from gateway.stores.tables import sequence_row, session_row

ODD = b'{"n":9007199254740993, "d":0.10,"text":"\\u0000 and \xc3\xa9"}'


def _odd(session: str, sequence: int = 1) -> bytes:
    """A line that no encoder of ours would write: order of fields, white space, numbers."""
    return (
        b'{ "sequence":%d,"output": %s,"status":"SUCCEEDED","lineage_id":"l",'
        % (
            sequence,
            ODD,
        )
        + b'"session_id":"%s","schema_version":"1.0" }\n' % session.encode()
    )


@pytest.mark.parametrize("form", list(Form))
def test_lines_of_both_tiers_come_back_byte_for_byte(tmp_path: Path, form: Form) -> None:
    attic = Attic(tmp_path / "from")
    attic.write(whole(1), whole(2))
    attic.write(whole(3))
    attic.archive()
    assert attic.cold.files()
    write(tmp_path / "from", _odd("s"), line(whole(1, sequence=9)))
    made = exported(tmp_path / "from", place_in(tmp_path / "copy"), form)
    report = imported(place_in(tmp_path / "copy"), tmp_path / "into")
    wanted = [line(whole(2)), line(whole(3)), _odd("s"), line(whole(1, sequence=9))]
    assert lines_in(tmp_path / "into") == wanted
    assert (report.imported, made.sessions) == (4, 4)
    assert made.raw_bytes == sum(map(len, wanted))
    assert [one.session_id for one in TrajectoryReader(tmp_path / "into")] == [
        name_of(2),
        name_of(3),
        "s",
        name_of(1),
    ]


def test_an_export_in_json_lines_is_a_folder_that_the_trainer_reads(tmp_path: Path) -> None:
    write(tmp_path / "from", line(whole(1)), line(whole(2)))
    exported(tmp_path / "from", place_in(tmp_path / "copy"))
    reader = TrajectoryReader(tmp_path / "copy")
    assert [one.session_id for one in reader] == [name_of(1), name_of(2)]


def test_twice_is_once(tmp_path: Path) -> None:
    write(tmp_path / "from", line(whole(1)), line(whole(2)))
    exported(tmp_path / "from", place_in(tmp_path / "copy"))
    imported(place_in(tmp_path / "copy"), tmp_path / "into")
    before = lines_in(tmp_path / "into")
    report = imported(place_in(tmp_path / "copy"), tmp_path / "into")
    assert (report.imported, report.there_already) == (0, 2)
    assert lines_in(tmp_path / "into") == before
    assert imported(place_in(tmp_path / "copy"), tmp_path / "from").there_already == 2


def test_older_never_beats_newer_and_what_differs_is_named_and_left(tmp_path: Path) -> None:
    write(tmp_path / "from", small("older", 3), small("newer", 9), small("other", 5))
    exported(tmp_path / "from", place_in(tmp_path / "copy"))
    write(tmp_path / "into", small("older", 4), small("newer", 8), small("other", 5, tenant="t"))
    report = imported(place_in(tmp_path / "copy"), tmp_path / "into")
    assert (report.older, report.imported, report.differ) == (1, 1, 1)
    assert report.differing == ["other"]
    assert lines_in(tmp_path / "into")[3:] == [small("newer", 9)]


def test_what_is_in_the_archive_of_the_target_is_there_already(tmp_path: Path) -> None:
    attic = Attic(tmp_path / "into")
    attic.write(whole(1))
    attic.write(whole(2))
    exported(tmp_path / "into", place_in(tmp_path / "copy"))
    attic.archive()
    report = imported(place_in(tmp_path / "copy"), tmp_path / "into")
    assert (report.imported, report.there_already) == (0, 2)
    for path in (tmp_path / "into" / "archive").rglob("*.r1.*"):
        path.write_bytes(b"broken")
    with pytest.raises(TargetDamaged, match=name_of(1)):
        imported(place_in(tmp_path / "copy"), tmp_path / "into")


def test_erased_sessions_do_not_leave_and_do_not_come_back(tmp_path: Path) -> None:
    write(tmp_path / "from", *(line(whole(n)) for n in range(4)))
    exported(tmp_path / "from", place_in(tmp_path / "before"))
    log_in(tmp_path / "from").erase(name_of(0), now_ms=AT_MS)
    made = exported(tmp_path / "from", place_in(tmp_path / "after"))
    assert (made.sessions, made.erased) == (3, 1)

    store = MemoryStore()  # 1 was deleted here, 2 waits in the outbox, and 0 in the log
    rows = store.batch()
    rows.put(Table.SESSION, session_row(name_of(1)), b"{}")
    rows.put(Table.OUTBOX, sequence_row(name_of(2), whole(2).sequence), b"")
    store.write(rows)
    write(tmp_path / "into", line(whole(0)))
    log_in(tmp_path / "into").erase(name_of(0), now_ms=AT_MS)
    report = imported(place_in(tmp_path / "before"), tmp_path / "into", store)
    assert (report.erased, report.there_already, report.imported) == (2, 1, 1)
    assert lines_in(tmp_path / "into")[1:] == [line(whole(3))]


class _Deleting:
    """A place into which an object is put just when a person deletes a session."""

    def __init__(self, folder: Path, data_dir: Path) -> None:
        self.inner, self._data_dir = place_in(folder), data_dir
        self.fetch, self.names, self.delete = self.inner.fetch, self.inner.names, self.inner.delete

    def put(self, name: str, source: Path) -> None:
        self.inner.put(name, source)
        if name.startswith("date="):
            log_in(self._data_dir).erase(name_of(1), now_ms=AT_MS)


@pytest.mark.parametrize("others", [0, 2])
def test_a_session_deleted_during_an_export_is_taken_out_of_it(tmp_path: Path, others: int) -> None:
    write(tmp_path / "from", *(line(whole(n)) for n in range(1, 2 + others)))
    made = exported(tmp_path / "from", _Deleting(tmp_path / "copy", tmp_path / "from"))
    assert (made.sessions, made.erased) == (others, 1)
    read = list(TrajectoryReader(tmp_path / "copy"))
    assert [one.session_id for one in read] == [name_of(n) for n in range(2, 2 + others)]
    assert imported(place_in(tmp_path / "copy"), tmp_path / "into").imported == others


def test_a_crash_of_the_gateway_before_an_import_doubles_nothing_after_it(tmp_path: Path) -> None:
    # Delivered, but the row that asks for it is there still: the import makes its line the last.
    write(tmp_path / "from", small("s"))
    exported(tmp_path / "from", place_in(tmp_path / "copy"))
    write(tmp_path / "into", line(whole(1)))
    store = MemoryStore()
    rows = store.batch()
    rows.put(Table.OUTBOX, sequence_row(name_of(1), whole(1).sequence), b"")
    store.write(rows)
    imported(place_in(tmp_path / "copy"), tmp_path / "into", store)
    assert list(store.scan(Table.OUTBOX, b"")) == []


def test_a_killed_import_is_gone_on_with(tmp_path: Path) -> None:
    write(tmp_path / "from", line(whole(1)), line(whole(2)))
    exported(tmp_path / "from", place_in(tmp_path / "copy"))
    write(tmp_path / "into", line(whole(1)))
    (path,) = (tmp_path / "into" / "trajectories").glob("*/*.jsonl")
    path.write_bytes(path.read_bytes() + line(whole(2))[:50])
    report = imported(place_in(tmp_path / "copy"), tmp_path / "into")
    assert (report.imported, report.there_already) == (1, 1)
    assert lines_in(tmp_path / "into") == [line(whole(1)), line(whole(2))]


def test_a_damaged_object_is_named_and_the_rest_comes_in(tmp_path: Path) -> None:
    for n in range(3):
        log = log_in(tmp_path / "from")
        log.append([line(whole(n))], AT_MS + n * 86_400_000)
        log.close()
    made = exported(tmp_path / "from", place_in(tmp_path / "copy"))
    spoilt, gone = (made.files[n].stored.name for n in (0, 1))
    (tmp_path / "copy" / gone).unlink()
    data = (tmp_path / "copy" / spoilt).read_bytes()
    (tmp_path / "copy" / spoilt).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    report = imported(place_in(tmp_path / "copy"), tmp_path / "into")
    assert report.damaged == [
        f"{spoilt}: its checksum is another one",
        f"{gone}: it is not there",
    ]
    assert report.imported == 1
    (tmp_path / "copy" / spoilt).write_bytes(data)
    assert imported(place_in(tmp_path / "copy"), tmp_path / "into").imported == 1


def test_an_export_killed_at_any_step_is_absent_and_the_next_one_is_whole(tmp_path: Path) -> None:
    write(tmp_path / "from", line(whole(1)))
    whole_one = 0
    for steps in range(10):
        folder = tmp_path / f"copy{steps}"
        frail = FrailStore(place_in(folder), steps=steps, halves=True)
        try:
            exported(tmp_path / "from", frail)
        except Killed:
            if MANIFEST in place_in(folder).names(""):  # only the mark of the beginning is left
                assert imported(place_in(folder), tmp_path / f"into{steps}").imported == 1
                continue
            with pytest.raises(ExportUnreadable, match="acp records export"):
                imported(place_in(folder), tmp_path / f"into{steps}")
            exported(tmp_path / "from", place_in(folder), Form.PARQUET)
            left = [one for one in place_in(folder).names("") if one.startswith("date=")]
            assert [one.rpartition(".")[2] for one in left] == ["parquet"]
            assert BEGUN not in place_in(folder).names("")
        else:
            whole_one += 1
    assert whole_one >= 1


def test_nothing_of_others_is_touched(tmp_path: Path) -> None:
    write(tmp_path / "from", line(whole(1)))
    theirs = tmp_path / "copy" / "date=2026-11-30" / "0001.parquet"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"theirs")
    with pytest.raises(PlaceTaken, match=r"0001\.parquet"):
        exported(tmp_path / "from", place_in(tmp_path / "copy"))
    assert theirs.read_bytes() == b"theirs"
    exported(tmp_path / "from", place_in(tmp_path / "own"))
    with pytest.raises(PlaceTaken, match="already"):
        exported(tmp_path / "from", place_in(tmp_path / "own"))


def test_what_this_version_cannot_read_is_carried_along_and_put_aside(tmp_path: Path) -> None:
    newer = small("newer", schema_version="2.0")
    write(tmp_path / "from", newer, small("bad", status="NO_SUCH"), b'{"x": 1}\n', small("good"))
    made = exported(tmp_path / "from", place_in(tmp_path / "copy"))
    assert (made.sessions, made.unreadable) == (3, 1)
    for _ in range(2):
        report = imported(place_in(tmp_path / "copy"), tmp_path / "into")
        assert report.quarantined == 2
        assert "0001.jsonl.zst:1: schema_version 2.0 is newer" in report.aside[0]
        assert lines_in(tmp_path / "into") == [small("good")]
    aside = (tmp_path / "into" / "records" / "quarantine.jsonl").read_bytes().splitlines()
    assert [msgspec.json.decode(one)["session_id"] for one in aside] == ["newer", "bad"]


def test_a_selection_goes_by_the_newest_line(tmp_path: Path) -> None:
    def opened(name: str, day: int, *, workflow: str, tenant: str) -> bytes:
        at = f"2026-11-{day:02d}T00:00:00Z"
        return small(name, opened_at=at, workflow=workflow, tenant=tenant)

    write(
        tmp_path / "from",
        opened("a", 1, workflow="desk@1.0", tenant="t"),
        opened("b", 2, workflow="desk@2.0", tenant="t"),
        opened("c", 3, workflow="other@1.0", tenant="u"),
    )
    ms = [parse_rfc3339(f"2026-11-{day:02d}T00:00:00Z") for day in range(1, 5)]
    for wanted, selection in (
        ("ab", Selection(workflow="desk")),
        ("b", Selection(workflow="desk@2.0")),
        ("c", Selection(tenant="u")),
        ("bc", Selection(since_ms=ms[1])),
        ("a", Selection(until_ms=ms[1])),
    ):
        folder = tmp_path / f"copy-{wanted}-{selection.workflow}"
        made = exported(tmp_path / "from", place_in(folder), selection=selection)
        assert "".join(one.session_id for file in made.files for one in file.sessions) == wanted
        stored = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=ExportManifest)
        assert stored == made


def test_a_place_behind_a_url_is_as_good_as_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "from", line(whole(1)))
    url = "memory://acp-copies/one"
    made = exported(tmp_path / "from", open_store(url, {}))
    assert imported(open_store(url, {}), tmp_path / "into").imported == made.sessions == 1
    with pytest.raises(PlaceTaken):
        exported(tmp_path / "from", open_store(url, {}))
    for name in open_store(url, {}).names(""):
        open_store(url, {}).delete(name)


def test_a_damaged_archived_file_is_told_and_the_rest_is_exported(tmp_path: Path) -> None:
    attic = Attic(tmp_path / "from")
    attic.write(whole(1))
    attic.write(whole(2))
    attic.archive()
    for path in (tmp_path / "from" / "archive").rglob("*.r1.*"):
        path.write_bytes(b"broken")
    made = exported(tmp_path / "from", place_in(tmp_path / "copy"))
    assert made.sessions == 1
    assert name_of(1) in made.damaged[0]
    shutil.rmtree(tmp_path / "from" / "archive")
    with pytest.raises(OSError, match="is it mounted"):
        exported(tmp_path / "from", place_in(tmp_path / "again"))


@pytest.mark.parametrize("name", ["../mine/%s", "/%s", "%s/../../x", "date=2026-11-30/../%s"])
def test_a_manifest_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    """A copy comes from strangers: a name with `..` had any file of this machine read in."""
    write(tmp_path / "mine", line(whole(1)))
    made = exported(tmp_path / "mine", place_in(tmp_path / "theirs"))
    stored = msgspec.structs.replace(made.files[0].stored, name=name % made.files[0].stored.name)
    (tmp_path / "theirs" / MANIFEST).write_bytes(
        msgspec.json.encode(
            msgspec.structs.replace(
                made, files=(msgspec.structs.replace(made.files[0], stored=stored),)
            )
        )
    )
    with pytest.raises(ExportUnreadable, match="not one of ours"):
        imported(place_in(tmp_path / "theirs"), tmp_path / "into")


def test_an_export_of_a_newer_version_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_bytes(b'{"format":2,"everything":"else"}')
    with pytest.raises(ExportUnreadable, match="newer version"):
        imported(place_in(tmp_path), tmp_path / "into")
