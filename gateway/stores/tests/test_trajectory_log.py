"""The files of trajectories: whole lines or none, one file a day at least, nothing comes back."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from acp_spec.model.enums import SessionStatus
from acp_spec.model.ids import session_id
from acp_spec.model.payload import payload
from acp_spec.model.times import MS_PER_DAY
from acp_spec.model.trajectory import SCHEMA_VERSION, Trajectory
from gateway.stores.archive.marker import Left, mark
from gateway.stores.trajectory_log import (
    Erased,
    Line,
    TrajectoryLog,
    erased_by,
    head_of,
    line_of,
    log_files,
)

NOON = 1_700_049_600_000  # 2023-11-15T12:00Z
HOUR = 3_600_000


def _session(number: int, time_ms: int = NOON) -> str:
    return session_id(time_ms, 0, random_64=number)


def _line(number: int, sequence: int = 7, *, text: bytes = b'"x"') -> bytes:
    trajectory = Trajectory(
        schema_version=SCHEMA_VERSION,
        session_id=_session(number),
        lineage_id="l",
        status=SessionStatus.SUCCEEDED,
        sequence=sequence,
        output=payload(text),
    )
    return line_of(msgspec.json.encode(trajectory))


def _log(path: Path, *, rotate_bytes: int = 1 << 20) -> TrajectoryLog:
    return TrajectoryLog(path, rotate_bytes=rotate_bytes, rotate_ms=HOUR)


def _blanks(line: bytes) -> bytes:
    return b" " * (len(line) - 1) + b"\n"


def _names(path: Path) -> list[str]:
    return [str(file.relative_to(path)) for file in log_files(path)]


@contextmanager
def _files_no_bigger_than(size: int) -> Iterator[None]:
    """Stands for a full disk: no file may grow beyond `size` (Python ignores the signal)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_lines_stand_in_the_file_of_their_day_in_order(tmp_path: Path) -> None:
    log = _log(tmp_path)
    log.append([_line(1), _line(2)], NOON)
    log.append([_line(3)], NOON + 5)
    log.close()
    assert _names(tmp_path) == ["2023-11-15/0001.jsonl"]
    assert log_files(tmp_path)[0].read_bytes() == _line(1) + _line(2) + _line(3)


def test_a_payload_with_line_feeds_is_still_one_line(tmp_path: Path) -> None:
    line = _line(1, text=b'{\n "a": "x\\ny",\r\n "n": 0.10}')
    assert line.count(b"\n") == 1
    assert b'{  "a": "x\\ny",   "n": 0.10}' in line
    assert head_of(line) == Line(_session(1), 7)


def test_a_new_file_begins_when_big_when_old_at_midnight_and_at_a_start(tmp_path: Path) -> None:
    log = _log(tmp_path, rotate_bytes=len(_line(1)) * 2)
    for _ in range(3):
        log.append([_line(1)], NOON)
    assert _names(tmp_path) == ["2023-11-15/0001.jsonl", "2023-11-15/0002.jsonl"]
    log.append([_line(1)], NOON + HOUR)
    assert _names(tmp_path)[-1] == "2023-11-15/0003.jsonl"
    log.append([_line(1)], NOON + MS_PER_DAY)
    assert _names(tmp_path)[-1] == "2023-11-16/0001.jsonl"
    log.close()
    _log(tmp_path).append([_line(1)], NOON + MS_PER_DAY)
    assert _names(tmp_path)[-1] == "2023-11-16/0002.jsonl"


def test_a_clock_that_was_set_back_begins_no_file_before_the_last(tmp_path: Path) -> None:
    log = _log(tmp_path)
    log.append([_line(1)], NOON)
    log.append([_line(2)], NOON - 3 * MS_PER_DAY)
    log.close()
    log.append([_line(3)], NOON + MS_PER_DAY)
    named = [path.relative_to(tmp_path).as_posix() for path in log_files(tmp_path)]
    assert named == ["2023-11-15/0001.jsonl", "2023-11-15/0002.jsonl", "2023-11-16/0001.jsonl"]


def test_a_session_that_opened_while_the_clock_was_ahead_is_erased_all_the_same(
    tmp_path: Path,
) -> None:
    log = _log(tmp_path)
    log.append([_line(1)], NOON)
    assert log.erase(_session(1), NOON + 9 * MS_PER_DAY, now_ms=NOON) == 1


def test_the_thousandth_file_of_a_day_still_sorts_last(tmp_path: Path) -> None:
    folder = tmp_path / "2023-11-15"
    folder.mkdir()
    (folder / "9999.jsonl").write_bytes(b"")
    log = _log(tmp_path)
    log.append([_line(1)], NOON)
    log.close()
    assert _names(tmp_path)[-1] == "2023-11-15/10000.jsonl"


def test_a_batch_that_does_not_fit_leaves_nothing_and_may_be_tried_again(tmp_path: Path) -> None:
    log = _log(tmp_path)
    log.append([_line(1)], NOON)
    big = _line(2, text=b'"' + b"x" * 50_000 + b'"')
    with _files_no_bigger_than(20_000), pytest.raises(OSError, match="large"):
        log.append([_line(9), big], NOON)
    assert log_files(tmp_path)[0].read_bytes() == _line(1)
    log.append([_line(9), big], NOON)
    log.close()
    assert b"".join(file.read_bytes() for file in log_files(tmp_path)) == _line(1) + _line(9) + big


@pytest.mark.parametrize("torn", [b'{"session_id":"half', b"\0\0\0\0", b"", b'{"x":1}\n'])
def test_a_torn_end_is_cut_and_the_last_lines_are_named(tmp_path: Path, torn: bytes) -> None:
    log = _log(tmp_path)
    log.append([_line(1), _line(2, 8)], NOON)
    log.close()
    (file,) = log_files(tmp_path)
    file.write_bytes(file.read_bytes() + torn)
    assert _log(tmp_path).recover() == {Line(_session(1), 7), Line(_session(2), 8)}
    assert file.read_bytes() == _line(1) + _line(2, 8)


def test_nothing_there_is_nothing_to_recover(tmp_path: Path) -> None:
    assert _log(tmp_path / "not yet made").recover() == frozenset()


def test_an_erased_session_leaves_blanks_so_that_every_offset_stays_good(tmp_path: Path) -> None:
    log = _log(tmp_path)
    log.append([_line(1), _line(2), _line(1, 8)], NOON)
    log.append([_line(1, 9)], NOON + MS_PER_DAY)
    log.append([_line(3)], NOON + MS_PER_DAY)
    assert log.erase(_session(1), NOON, now_ms=NOON + MS_PER_DAY) == 3
    log.append([_line(4)], NOON + MS_PER_DAY)
    log.close()
    one, two, told, four = (file.read_bytes() for file in log_files(tmp_path))
    assert one == _blanks(_line(1)) + _line(2) + _blanks(_line(1, 8))
    assert two.startswith(_blanks(_line(1, 9)) + _line(3))
    assert (two + told + four).endswith(_line(4))


def test_a_tombstone_tells_every_reader_in_order_which_session_was_erased(tmp_path: Path) -> None:
    log = _log(tmp_path)
    log.append([_line(1), _line(1, 9)], NOON)
    log.append([_line(2)], NOON)
    log.erase(_session(1), NOON, now_ms=NOON + 5)
    log.append([_line(3)], NOON)
    log.close()
    lines = [line for file in log_files(tmp_path) for line in file.open("rb")]
    (at,) = (number for number, line in enumerate(lines) if erased_by(line))
    assert erased_by(lines[at]) == Erased(_session(1), 9)
    assert head_of(lines[at]) is None
    assert lines.index(_line(2)) < at < lines.index(_line(3))


def test_a_crash_between_tombstone_and_blanks_is_made_good_by_erasing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = _log(tmp_path)
    log.append([_line(1)], NOON)

    def die(path: Path, session: str) -> None:
        raise OSError("killed")

    with monkeypatch.context() as during:
        during.setattr("gateway.stores.trajectory_log._blank", die)
        with pytest.raises(OSError, match="killed"):
            log.erase(_session(1), NOON, now_ms=NOON)
    again = _log(tmp_path)
    assert again.erase(_session(1), NOON, now_ms=NOON) == 1
    assert _line(1) not in b"".join(file.read_bytes() for file in log_files(tmp_path))
    assert again.erase(_session(1), NOON, now_ms=NOON) == 0


def test_the_last_lines_are_named_although_a_deletion_wrote_a_newer_file(tmp_path: Path) -> None:
    log = _log(tmp_path)
    log.append([_line(1), _line(2)], NOON)
    log.close()
    again = _log(tmp_path)
    again.erase(_session(1), NOON, now_ms=NOON)
    again.close()
    assert _log(tmp_path).recover() == {Line(_session(2), 7)}


def test_blanks_and_tombstones_at_the_end_are_no_torn_end(tmp_path: Path) -> None:
    log = _log(tmp_path)
    log.append([_line(2), _line(1)], NOON)
    log.erase(_session(1), NOON, now_ms=NOON)
    before = [file.read_bytes() for file in log_files(tmp_path)]
    _log(tmp_path).recover()
    assert [file.read_bytes() for file in log_files(tmp_path)] == before


def test_erasing_leaves_files_alone_that_are_older_than_the_session(tmp_path: Path) -> None:
    log = _log(tmp_path)
    log.append([_line(1)], NOON)
    assert log.erase(_session(1), NOON + MS_PER_DAY, now_ms=NOON + MS_PER_DAY) == 0
    (file,) = log_files(tmp_path)
    assert file.read_bytes() == _line(1)


def test_a_rewriting_that_was_killed_leaves_no_copy(tmp_path: Path) -> None:
    log = _log(tmp_path)
    log.append([_line(1)], NOON)
    log.close()
    beside = log_files(tmp_path)[0].with_suffix(".rewriting")
    beside.write_bytes(_line(2))
    _log(tmp_path).recover()
    assert not beside.exists()


def test_a_file_that_left_for_the_archive_is_never_written_again(tmp_path: Path) -> None:
    """Also by a clock that was set back: places in the log are ordered by the names of files."""
    log = _log(tmp_path)
    log.append([_line(1)], NOON)
    log.close()
    (path,) = log_files(tmp_path)
    mark(tmp_path, Left(url="x", gateway_id="g", through=f"{path.parent.name}/0007.jsonl"))
    path.unlink()
    for now_ms in (NOON, NOON - 3 * MS_PER_DAY, NOON + MS_PER_DAY):
        log.append([_line(2)], now_ms)
        log.close()
    names = [f"{one.parent.name}/{one.name}" for one in log_files(tmp_path)]
    assert names == ["2023-11-15/0008.jsonl", "2023-11-15/0009.jsonl", "2023-11-16/0001.jsonl"]


def test_readers_are_told_of_a_deleted_session_that_lies_in_the_archive_only(
    tmp_path: Path,
) -> None:
    log = _log(tmp_path)
    mark(tmp_path, Left(url="x", gateway_id="g", through="2023-11-15/0001.jsonl"))
    assert log.erase(_session(1), NOON, now_ms=NOON) == 0
    (path,) = log_files(tmp_path)
    told = erased_by(path.read_bytes())
    assert told is not None
    assert told.session_id == _session(1)
    later = _session(2, NOON + 2 * MS_PER_DAY)
    log.erase(later, NOON + 2 * MS_PER_DAY, now_ms=NOON + 2 * MS_PER_DAY)
    assert log_files(tmp_path) == [path], "one that is younger than all that left"
