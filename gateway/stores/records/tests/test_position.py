"""The feed's position: what was begun before a crash is found again with the same boundaries."""

from pathlib import Path

import pytest

from gateway.stores.records.log_tail import Batch, Place
from gateway.stores.records.position import PositionFile

ONE, TWO = Batch("2026-01-01/0001.jsonl", 0, 40), Batch("2026-01-01/0001.jsonl", 40, 90)


def test_a_batch_that_was_begun_is_found_again_and_one_that_is_done_is_not(tmp_path: Path) -> None:
    path = tmp_path / "feed" / "position"
    with PositionFile(path) as position:
        position.begin(ONE)
    with PositionFile(path) as again:
        assert again.progress.batch == ONE
        again.done(ONE.after)
    with PositionFile(path) as last:
        assert last.progress.batch is None
        assert last.progress.at == Place(ONE.file, ONE.end)


@pytest.mark.parametrize("damage", [b"", b"\0" * 512, b"\xff" * 512])
def test_a_torn_slot_leaves_what_stood_before_it(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "position"
    with PositionFile(path) as position:
        position.begin(ONE)
        position.done(ONE.after)
        position.begin(TWO)
        torn = position.progress.number % 2
    data = bytearray(path.read_bytes())
    data[torn * 512 : torn * 512 + len(damage)] = damage or b"\0"
    data[torn * 512 + 20] ^= 1
    path.write_bytes(data)
    with PositionFile(path) as again:
        assert again.progress.at == ONE.after
        assert again.progress.batch is None


def test_rewinding_begins_at_the_first_line(tmp_path: Path) -> None:
    with PositionFile(tmp_path / "position") as position:
        position.done(TWO.after)
        position.rewind()
        assert position.progress.at == Place()
