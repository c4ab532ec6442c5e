"""Reading the trajectory log on: whole lines from a place, a batch at a time. Blocks; no state.

Files are left only when nothing more can come to them: a newer one is there, and the end has been
reached after it was seen. Half a line at the end of a file that is left was cut by a crash.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from gateway.stores.archive.manifest import order_of
from gateway.stores.trajectory_log import log_files

BATCH_LINES_MAX: Final = 512
BATCH_BYTES_MAX: Final = 4 << 20
"""Read at once; a single longer line is a batch of its own."""


class Place(msgspec.Struct, frozen=True):
    """Where reading goes on: everything before it has been dealt with."""

    file: str = ""
    offset: int = 0

    @property
    def order(self) -> tuple[tuple[str, int, str], int]:
        """Smaller for what was written earlier."""
        return order_of(self.file), self.offset


class Batch(msgspec.Struct, frozen=True):
    """Lines of one file, from `start` up to `end`: boundaries that stay what they are."""

    file: str
    start: int
    end: int

    @property
    def after(self) -> Place:
        return Place(self.file, self.end)


def next_batch(directory: Path, place: Place) -> Batch | None:
    """The boundaries of what comes after `place`; None while there is nothing."""
    for file, offset in _from(directory, place):
        end = _end(directory / file, offset)
        if end > offset:
            return Batch(file, offset, end)
    return None


def lines_of(directory: Path, batch: Batch) -> list[bytes]:
    """The batch's lines as they stand now: an erased one is blanks. Empty if the file is gone."""
    try:
        with (directory / batch.file).open("rb") as file:
            file.seek(batch.start)
            return file.read(batch.end - batch.start).splitlines(keepends=True)
    except FileNotFoundError:
        return []


def bytes_after(directory: Path, place: Place) -> int:
    """How much of the log is still to be read."""
    waiting = 0
    for path in log_files(directory):
        name = _name(directory, path)
        if order_of(name) >= order_of(place.file):
            waiting += path.stat().st_size - (place.offset if name == place.file else 0)
    return max(0, waiting)


def end_of(directory: Path) -> Place:
    """Behind all that is there now."""
    files = log_files(directory)
    return Place(_name(directory, files[-1]), files[-1].stat().st_size) if files else Place()


def _from(directory: Path, place: Place) -> Iterator[tuple[str, int]]:
    """The file of the place, looked at again after a newer one was seen; then the newer ones."""
    if place.file and (directory / place.file).is_file():
        yield place.file, place.offset
    newer = [
        name
        for name in (_name(directory, path) for path in log_files(directory))
        if order_of(name) > order_of(place.file)
    ]
    if newer and place.file and (directory / place.file).is_file():
        yield place.file, place.offset
    yield from ((name, 0) for name in newer)


def _end(path: Path, offset: int) -> int:
    """The end of the last whole line that a batch takes from there."""
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read(BATCH_BYTES_MAX)
        if b"\n" not in data and len(data) == BATCH_BYTES_MAX:
            data += file.readline()
    end = 0
    for _ in range(BATCH_LINES_MAX):
        found = data.find(b"\n", end)
        if found < 0:
            break
        end = found + 1
    return offset + end


def _name(directory: Path, path: Path) -> str:
    return path.relative_to(directory).as_posix()
