"""Reading the log on: every whole line once, in order, whatever is written meanwhile."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.stores.records import log_tail
from gateway.stores.records.log_tail import Batch, Place, bytes_after, lines_of, next_batch
from gateway.stores.records.tests.sessions import AT_MS, line, name_of, new_log, whole
from gateway.stores.trajectory_log import log_files

DAY_MS = 86_400_000


def _read_on(folder: Path, place: Place) -> tuple[list[bytes], Place]:
    lines: list[bytes] = []
    while (batch := next_batch(folder, place)) is not None:
        lines += lines_of(folder, batch)
        place = batch.after
    return lines, place


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.booleans()), max_size=12))
def test_every_line_is_read_once_and_in_order_while_files_rotate(
    tmp_path_factory: pytest.TempPathFactory, story: list[tuple[int, bool, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    log, place, written, read = new_log(folder, rotate_bytes=6_000), Place(), list[bytes](), []
    for at, (count, ends_file, reads) in enumerate(story):
        lines = [line(whole(len(written) + n)) for n in range(count)]
        log.append(lines, AT_MS + at * DAY_MS // 3)
        written += lines
        if ends_file:
            log.close()
        if reads:
            found, place = _read_on(folder, place)
            read += found
    found, place = _read_on(folder, place)
    log.close()
    assert read + found == written
    assert bytes_after(folder, place) == 0


def test_half_a_line_waits_for_its_end(tmp_path: Path) -> None:
    (tmp_path / "2026-01-01").mkdir()
    file = tmp_path / "2026-01-01" / "0001.jsonl"
    file.write_bytes(b"one\ntw")
    batch = next_batch(tmp_path, Place())
    assert batch == Batch("2026-01-01/0001.jsonl", 0, 4)
    assert next_batch(tmp_path, batch.after) is None
    file.write_bytes(b"one\ntwo\n")
    assert next_batch(tmp_path, batch.after) == Batch("2026-01-01/0001.jsonl", 4, 8)


def test_a_line_longer_than_a_batch_is_a_batch_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_tail, "BATCH_BYTES_MAX", 8)
    (tmp_path / "2026-01-01").mkdir()
    (tmp_path / "2026-01-01" / "0001.jsonl").write_bytes(b"x" * 20 + b"\nab\n")
    lines, _ = _read_on(tmp_path, Place())
    assert lines == [b"x" * 20 + b"\n", b"ab\n"]


def test_a_file_that_was_archived_before_it_was_read_is_passed_over(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.append([line(whole(1))], AT_MS)
    log.close()
    place = Place(log_files(tmp_path)[0].relative_to(tmp_path).as_posix(), 10)
    log.append([line(whole(2))], AT_MS)
    log.close()
    log_files(tmp_path)[0].unlink()
    assert _read_on(tmp_path, place)[0] == [line(whole(2))]


def test_an_erased_line_is_blanks_within_the_same_boundaries(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.append([line(whole(1)), line(whole(2))], AT_MS)
    batch = next_batch(tmp_path, Place())
    assert batch is not None
    log.erase(name_of(1), AT_MS, now_ms=AT_MS)
    first, second = lines_of(tmp_path, batch)
    assert first.isspace()
    assert second == line(whole(2))
