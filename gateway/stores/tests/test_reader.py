"""The trainer's door: what is whole and known comes through, all else is counted and located."""

import ast
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.payload import payload
from acp_spec.model.trajectory import SCHEMA_VERSION
from gateway.stores import reader as reader_module
from gateway.stores.reader import FolderUnreadable, TrajectoryReader
from gateway.stores.trajectory_log import TrajectoryLog, line_of

EXACT = b'{"n":9007199254740993,"d":0.10}'


def _line(session: str, sequence: int = 1, **changes: object) -> bytes:
    fields = {
        "schema_version": SCHEMA_VERSION,
        "session_id": session,
        "lineage_id": "l",
        "status": "SUCCEEDED",
        "sequence": sequence,
        "output": payload(EXACT),
    }
    return line_of(msgspec.json.encode({**fields, **changes}))


def _write(folder: Path, name: str, *lines: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(lines))
    return path


def _read(
    path: Path, *, newest_only: bool = True
) -> tuple[list[tuple[str, int]], TrajectoryReader]:
    reader = TrajectoryReader(path, newest_only=newest_only)
    return [(one.session_id, one.sequence) for one in reader], reader


def test_what_the_outbox_wrote_is_read_from_the_data_directory(tmp_path: Path) -> None:
    log = TrajectoryLog(tmp_path / "trajectories", rotate_bytes=200, rotate_ms=1000)
    for number in range(5):
        log.append([_line(f"s{number}")], 1_700_000_000_000)
    log.close()
    _write(tmp_path, "journal/not-a-trajectory.jsonl", b"{}\n")
    found, reader = _read(tmp_path)
    assert found == [(f"s{number}", 1) for number in range(5)]
    assert (reader.counts.lines, reader.counts.read) == (5, 5)
    (first, *_) = TrajectoryReader(tmp_path)
    assert bytes(first.output) == EXACT


def test_a_single_file_and_any_folder_can_be_read(tmp_path: Path) -> None:
    one = _write(tmp_path, "deep/er/run.jsonl", _line("a"), b"\n", _line("b")[:-1])
    _write(tmp_path, "deep/notes.txt", b"not read")
    assert _read(one)[0] == _read(tmp_path)[0] == [("a", 1), ("b", 1)]


def test_of_a_session_only_its_newest_line_counts_once(tmp_path: Path) -> None:
    _write(tmp_path, "1.jsonl", _line("a", 5), _line("b", 9), _line("a", 7))
    _write(tmp_path, "2.jsonl", _line("b", 3), _line("a", 7))
    found, reader = _read(tmp_path)
    assert found == [("b", 9), ("a", 7)]
    assert reader.counts.superseded == 3
    assert len(_read(tmp_path, newest_only=False)[0]) == 5


def test_a_torn_tail_is_skipped_and_counted_with_its_place(tmp_path: Path) -> None:
    path = _write(tmp_path, "1.jsonl", _line("a"), _line("b")[:40])
    found, reader = _read(tmp_path)
    assert found == [("a", 1)]
    assert (reader.counts.torn, reader.counts.malformed) == (1, 0)
    assert reader.counts.places == [f"{path}:2: torn: no trajectory"]


def test_a_line_that_is_no_trajectory_is_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    wrong = _line("b", status="EXPLODED")
    _write(tmp_path, "1.jsonl", b"what\n", b"[1]\n", wrong, _line("a"))
    found, reader = _read(tmp_path)
    assert found == [("a", 1)]
    assert reader.counts.malformed == 3


@pytest.mark.parametrize("version", ["2.0", "10", "", "next"])
def test_an_unknown_newer_version_is_quarantined(tmp_path: Path, version: str) -> None:
    _write(tmp_path, "1.jsonl", _line("a", 1), _line("a", 2, schema_version=version))
    found, reader = _read(tmp_path)
    assert found == [("a", 1)], "the older line, which can be read, stands in"
    assert reader.counts.quarantined == 1
    assert "schema_version" in reader.counts.places[0]


def test_a_newer_minor_version_is_read_if_it_only_adds(tmp_path: Path) -> None:
    adds = _line("a", schema_version="1.7", invented="field")
    changes = _line("b", schema_version="1.7", status="INVENTED")
    _write(tmp_path, "1.jsonl", adds, changes)
    found, reader = _read(tmp_path)
    assert found == [("a", 1)]
    assert (reader.counts.quarantined, reader.counts.malformed) == (1, 0)


def test_a_session_that_waits_for_review_stays_out_until_it_is_reviewed(tmp_path: Path) -> None:
    waiting = {"review": "WAITING", "review_reasons": ["claim 0: no"], "penalties": 1}
    _write(tmp_path, "1.jsonl", _line("a", 1, grounding=waiting), _line("b", 1, grounding=None))
    found, reader = _read(tmp_path)
    assert found == [("b", 1)]
    assert (reader.counts.unreviewed, reader.counts.read, reader.counts.places) == (1, 1, [])
    everything = TrajectoryReader(tmp_path, reviewed_only=False)
    assert len(list(everything)) == 2
    assert everything.counts.unreviewed == 0

    done = {**waiting, "review": "DONE", "label": 0.25}
    _write(tmp_path, "2.jsonl", _line("a", 2, grounding=done))
    found, reader = _read(tmp_path)
    assert found == [("b", 1), ("a", 2)]
    assert reader.counts.unreviewed == 0
    (_, reviewed) = TrajectoryReader(tmp_path)
    assert reviewed.grounding is not None
    assert reviewed.grounding.label == 0.25


def test_packed_files_are_read_and_a_cut_one_up_to_the_cut(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    lines = [_line(f"s{number:05d}") for number in range(3000)]
    packed = zstandard.compress(b"".join(lines))
    _write(tmp_path / "whole", "1.jsonl.zst", packed)
    _write(tmp_path / "cut", "1.jsonl.zst", packed[: len(packed) // 2])
    _write(tmp_path / "damaged", "1.jsonl.zst", packed, b"junk")
    assert len(_read(tmp_path / "whole")[0]) == 3000
    found, reader = _read(tmp_path / "cut")
    assert 0 < len(found) < 3000
    assert reader.counts.torn <= 1
    found, reader = _read(tmp_path / "damaged")
    assert reader.counts.torn == 1


def test_nothing_to_read_says_so(tmp_path: Path) -> None:
    with pytest.raises(FolderUnreadable, match="give a data directory"):
        list(TrajectoryReader(tmp_path / "nowhere"))
    assert list(TrajectoryReader(tmp_path)) == []


def test_an_erased_session_is_blanks_and_a_tombstone_that_is_no_fault(tmp_path: Path) -> None:
    log = TrajectoryLog(tmp_path, rotate_bytes=1 << 20, rotate_ms=3_600_000)
    log.append([_line("a", 1), _line("b", 1)], 0)
    log.erase("a", 0, now_ms=0)
    log.close()
    found, reader = _read(tmp_path)
    assert found == [("b", 1)]
    assert (reader.counts.erased, reader.counts.read, reader.counts.lines) == (1, 1, 2)
    assert not reader.counts.places


def test_places_are_bounded(tmp_path: Path) -> None:
    _write(tmp_path, "1.jsonl", *[b"what\n"] * 500)
    _, reader = _read(tmp_path)
    assert reader.counts.malformed == 500
    assert len(reader.counts.places) == reader_module.PLACES_MAX


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4)), max_size=12), st.data())
def test_however_lines_are_spread_the_newest_of_each_session_is_found(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, int]], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("spread")
    cut = data.draw(st.integers(0, len(rows)))
    _write(folder, "1.jsonl", *(_line(*row) for row in rows[:cut]))
    _write(folder, "2.jsonl", *(_line(*row) for row in rows[cut:]))
    wanted = {session: max(n for s, n in rows if s == session) for session, _ in rows}
    found, reader = _read(folder)
    assert dict(found) == wanted
    assert len(found) == len(wanted)
    assert reader.counts.superseded == len(rows) - len(wanted)


def test_the_door_is_thin() -> None:
    """What a trainer imports with it: the spec, and how files are named."""
    tree = ast.parse(Path(reader_module.__file__).read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {name for name in imported if name and name.startswith("gateway")}
    assert ours == {
        "gateway.stores.archive.manifest",
        "gateway.stores.archive.marker",
        "gateway.stores.archive.object_store",
        "gateway.stores.forms",
        "gateway.stores.trajectory_log",
    }
