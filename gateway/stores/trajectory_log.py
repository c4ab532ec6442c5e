"""Trajectories as JSON lines: `<directory>/YYYY-MM-DD/NNNN.jsonl`, rotated by size, age and day.

One writer. A batch of lines is on disk when `append` returns, or the file is cut back and it
raises, so a batch may be tried again. A file that was closed never changes, except by `erase`:
that puts blanks where lines stood, so that every reader's offset stays good, and tells of it by a
tombstone at the end of the log. Old files may leave for the archive, oldest first and never the
newest one (`gateway.stores.archive`). Everything here blocks: call it from a worker thread.
"""

import contextlib
import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from acp_spec.model.times import MS_PER_DAY, rfc3339
from acp_spec.model.trajectory import SCHEMA_VERSION
from gateway.stores.archive.marker import left
from gateway.stores.archive.object_store import sync_directory

FOLDER = "trajectories"
"""Name of the folder of trajectories inside a data directory."""

BATCH_LINES_MAX = 256
"""Lines of one `append` at most; so many last lines may be in doubt after a crash."""

_DAY_CHARACTERS = len("YYYY-MM-DD")
_FILE_NUMBER = 4
_BESIDE = ".rewriting"


class Line(NamedTuple):
    """What a line is: one session as it stood at one sequence."""

    session_id: str
    sequence: int


class Erased(NamedTuple):
    """What a tombstone tells: this session was erased, and the highest sequence that was there."""

    session_id: str
    sequence: int


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    """A line that tells every reader: this session was erased, forget all you have of it."""

    schema_version: str
    session_id: str
    sequence: int
    erased_at: str


class _Head(msgspec.Struct):
    session_id: str
    sequence: int = 0
    erased_at: str = ""


_head = msgspec.json.Decoder(_Head)


def said_by(line: bytes) -> Line | Erased | None:
    """What a line tells, read once; None when it is neither trajectory nor tombstone."""
    head = _read(line)
    if head is None:
        return None
    return (Erased if head.erased_at else Line)(head.session_id, head.sequence)


def head_of(line: bytes) -> Line | None:
    """Which session and sequence a line is about; None when the line is no trajectory."""
    said = said_by(line)
    return said if isinstance(said, Line) else None


def erased_by(line: bytes) -> Erased | None:
    """What the line tells if it is a tombstone; else None."""
    said = said_by(line)
    return said if isinstance(said, Erased) else None


def is_blank(line: bytes) -> bool:
    """Where an erased session's line stood: blanks of the same length."""
    return line.isspace()


def blanked(lines: Iterable[bytes], session_ids: frozenset[str]) -> Iterator[bytes]:
    """The lines, with blanks of equal length where these sessions stand: offsets stay good."""
    for line in lines:
        head = head_of(line)
        gone = head is not None and head.session_id in session_ids
        yield b" " * (len(line) - 1) + b"\n" if gone else line


def _read(line: bytes) -> _Head | None:
    try:
        return _head.decode(line)
    except msgspec.DecodeError:
        return None


def line_of(text: bytes) -> bytes:
    """JSON text as one line: a line feed outside strings is white space, inside it is escaped."""
    return text.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"


def log_files(directory: Path) -> list[Path]:
    """The plain files of a log in the order in which they were written."""
    return sorted(
        directory.glob("*/*.jsonl"), key=lambda path: (path.parent.name, len(path.name), path.name)
    )


class TrajectoryLog:
    """The writer. Begins a new file at every start, every day, and when a file is big or old."""

    def __init__(self, directory: Path, *, rotate_bytes: int, rotate_ms: int) -> None:
        self._directory = directory
        self._rotate_bytes = rotate_bytes
        self._rotate_ms = rotate_ms
        self._file: BinaryIO | None = None
        self._path: Path | None = None
        self._size = 0
        self._opened_ms = 0
        self._to_cut: tuple[Path, int] | None = None

    def recover(self) -> frozenset[Line]:
        """Cut a torn last line; tell which lines stand last, as they may be asked for again.

        A deletion may have told of itself in a newer file already: the last lines stand before it.
        """
        for half_done in self._directory.glob(f"*/*{_BESIDE}"):
            half_done.unlink()
        for path in reversed(log_files(self._directory)):
            _cut(path, _size_of_whole_lines(path))
            tail: deque[bytes] = deque(_lines(path), maxlen=BATCH_LINES_MAX)
            last = frozenset(line for line in map(head_of, tail) if line is not None)
            if last:
                return last
        return frozenset()

    def append(self, lines: Sequence[bytes], now_ms: int) -> None:
        """Put whole lines on disk, all of them. Raises OSError; then none of them is there."""
        assert len(lines) <= BATCH_LINES_MAX, "recovery looks at no more last lines than that"
        self._finish_cut()
        file = self._current(now_ms)
        try:
            for line in lines:
                file.write(line)
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            # After a failed fsync the kernel may call lost pages clean: this file is done.
            self._to_cut = self._abandon()
            self._finish_cut()
            raise
        self._size += sum(map(len, lines))

    def erase(self, session_id: str, since_ms: int = 0, *, now_ms: int) -> int:
        """Blank this session's lines in the files of `since_ms` and later; how many went.

        The tombstone goes first: after a crash in between, the lines are found and told of again.
        It is also written for a session that may lie in the archive only.
        """
        self.close()
        needle = session_id.encode()
        # The session may have opened while the clock was ahead: its lines are no later than now.
        first_day = _day(min(since_ms, now_ms))
        files = [
            path
            for path in log_files(self._directory)
            if path.parent.name >= first_day and _contains(path, needle)
        ]
        lines = [line for path in files for line in _sequences_of(path, session_id)]
        if not lines and left(self._directory).day < first_day:
            return 0
        self.append([_tombstone(session_id, max(lines, default=0), now_ms=now_ms)], now_ms)
        self.close()
        for path in files:
            _blank(path, session_id)
        return len(lines)

    def entomb(self, session_ids: Sequence[str], now_ms: int) -> None:
        """Tell every reader that these sessions are gone; their lines have left the log before."""
        for start in range(0, len(session_ids), BATCH_LINES_MAX):
            some = session_ids[start : start + BATCH_LINES_MAX]
            self.append([_tombstone(one, 0, now_ms=now_ms) for one in some], now_ms)

    def close(self) -> None:
        """Close the current file; the next append begins another."""
        file, self._file, self._path = self._file, None, None
        if file is not None:
            file.close()

    def _current(self, now_ms: int) -> BinaryIO:
        if self._file is not None and self._is_full(now_ms):
            self.close()
        if self._file is None:
            self._path = _next_path(self._directory, now_ms)
            self._file = self._path.open("xb")
            self._size, self._opened_ms = 0, now_ms
            try:
                sync_directory(self._path.parent)
            except OSError:
                self.close()
                raise
        return self._file

    def _is_full(self, now_ms: int) -> bool:
        return (
            self._size >= self._rotate_bytes
            or now_ms - self._opened_ms >= self._rotate_ms
            or now_ms // MS_PER_DAY != self._opened_ms // MS_PER_DAY
        )

    def _abandon(self) -> tuple[Path, int]:
        assert self._file is not None
        assert self._path is not None
        file, path, size = self._file, self._path, self._size
        self._file = self._path = None
        with contextlib.suppress(OSError):  # what was buffered is cut off anyway
            file.close()
        return path, size

    def _finish_cut(self) -> None:
        """Lines that were not acknowledged must not be found later: first that, then new ones."""
        if self._to_cut is not None:
            _cut(*self._to_cut)
            self._to_cut = None


def _tombstone(session_id: str, sequence: int, *, now_ms: int) -> bytes:
    told = Tombstone(
        schema_version=SCHEMA_VERSION,
        session_id=session_id,
        sequence=sequence,
        erased_at=rfc3339(now_ms),
    )
    return line_of(msgspec.json.encode(told))


def _day(time_ms: int) -> str:
    return rfc3339(time_ms)[:_DAY_CHARACTERS]


def _newest_day(directory: Path) -> str:
    """Readers go by the order of names: a clock set back begins no file before the last one."""
    return max((path.name for path in directory.glob("????-??-??")), default="")


def _next_path(directory: Path, now_ms: int) -> Path:
    """Beyond every file there ever was, also those that left: readers go by the order of names."""
    gone = left(directory)
    folder = directory / max(_day(now_ms), _newest_day(directory), gone.day)
    if not folder.is_dir():
        folder.mkdir(parents=True)
        sync_directory(directory)
    numbers = [int(path.stem) for path in folder.glob("*.jsonl*") if path.stem.isdigit()]
    if folder.name == gone.day:
        numbers.append(int(Path(gone.through).stem))
    return folder / f"{max(numbers, default=0) + 1:0{_FILE_NUMBER}}.jsonl"


def _lines(path: Path) -> Iterator[bytes]:
    """None of a file that has just left for the archive: what is in it is erased there."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        yield from file


def _size_of_whole_lines(path: Path) -> int:
    """Bytes up to the end of the last line of ours: a trajectory, a tombstone or blanks."""
    size = good = 0
    for line in _lines(path):
        size += len(line)
        if line.endswith(b"\n") and (is_blank(line) or _read(line) is not None):
            good = size
    return good


def _cut(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)
        os.fsync(file.fileno())


def _contains(path: Path, needle: bytes) -> bool:
    return any(needle in line for line in _lines(path))


def _sequences_of(path: Path, session_id: str) -> list[int]:
    heads = map(head_of, _lines(path))
    return [head.sequence for head in heads if head is not None and head.session_id == session_id]


def _blank(path: Path, session_id: str) -> None:
    """Through a file beside it, so that a reader and a crash see the old or the new one."""
    if not path.is_file():
        return
    beside = path.with_suffix(_BESIDE)
    with beside.open("wb") as kept:
        kept.writelines(blanked(_lines(path), frozenset((session_id,))))
        kept.flush()
        os.fsync(kept.fileno())
    beside.replace(path)
    sync_directory(path.parent)
