"""The trainer's one door: trajectories from a data directory, or from any folder that holds them.

Reads JSON lines (`*.jsonl`, `*.jsonl.zst`) while a gateway may still write; older forms are brought
up (`forms`). Of a data directory also what left for an archive on this machine. What cannot be used
is counted and located, never silently gone. A session that waits for a person's review is left out
and counted too. Imports no engine and no runtime, never writes.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from acp_spec.model.grounding import Review
from acp_spec.model.trajectory import SCHEMA_VERSION, Trajectory
from gateway.stores.archive.manifest import file_of, is_named
from gateway.stores.archive.marker import Left, left
from gateway.stores.archive.object_store import is_directory
from gateway.stores.forms import UnreadableRecord, is_newer, newer_than_known, read_record
from gateway.stores.trajectory_log import FOLDER

PLACES_MAX = 100
"""Places kept of lines that were not used; beyond that they are only counted."""

SUFFIXES = (".jsonl", ".jsonl.zst")


class Head(msgspec.Struct):
    """The little that decides whether a line is wanted."""

    session_id: str
    sequence: int = 0
    schema_version: str = SCHEMA_VERSION
    erased_at: str = ""


@dataclass
class ReadCounts:
    """What one pass found. `lines` = all others together. `erased`: tombstones of sessions."""

    lines: int = 0
    read: int = 0
    superseded: int = 0
    torn: int = 0
    malformed: int = 0
    quarantined: int = 0
    unreviewed: int = 0
    """Sessions that the hallucination guard put up for review, and nobody has judged yet."""
    erased: int = 0
    elsewhere: str = ""
    """Where files lie that left this data directory and cannot be read here; empty: nowhere."""
    expired_before: str = ""
    """Retention took the days before this one; empty: none."""
    places: list[str] = field(default_factory=list)
    """`file:line: why`, for those torn, malformed or quarantined."""


class FolderUnreadable(Exception):
    """There is nothing to read at this path."""


@dataclass(frozen=True)
class _Line:
    path: Path
    number: int
    data: bytes

    @property
    def is_whole(self) -> bool:
        return self.data.endswith(b"\n")


class TrajectoryReader:
    """Iterates trajectories in the order in which they were written.

    `newest_only`: of a session that stands there several times (its end, then late feedback) only
    the highest sequence, once. That takes a first pass over the files and ~250 bytes a session.
    `reviewed_only`: without those whose answer a person must look at first (R16); once reviewed
    they come with the review's score as their `grounding.label`. Training never switches it off.
    """

    def __init__(self, path: Path, *, newest_only: bool = True, reviewed_only: bool = True) -> None:
        self._path = path
        self._newest_only = newest_only
        self._reviewed_only = reviewed_only
        self.counts = ReadCounts()

    def __iter__(self) -> Iterator[Trajectory]:
        self.counts = ReadCounts()
        files = trajectory_files(self._path)
        told = left_of(self._path)
        self.counts.expired_before = told.expired_before
        if told.through and not is_directory(told.url):
            self.counts.elsewhere = told.url
        newest = _newest(files) if self._newest_only else None
        for path in files:
            for line in _lines(path):
                self.counts.lines += 1
                trajectory = self._used(line, newest)
                if trajectory is not None:
                    self.counts.read += 1
                    yield trajectory

    def _used(self, line: _Line, newest: "dict[str, _Place] | None") -> Trajectory | None:
        """The line's trajectory, or None after counting why it is not used."""
        head = _head_of(line.data)
        if head is None:
            self._reject("malformed" if line.is_whole else "torn", line, why="no trajectory")
            return None
        if head.erased_at:
            self.counts.erased += 1
            return None
        if is_newer(head.schema_version):
            self._reject("quarantined", line, why=newer_than_known(head.schema_version))
            return None
        if newest is not None and newest.get(head.session_id) != _place(head, line):
            self.counts.superseded += 1
            return None
        try:
            trajectory = read_record(line.data)
        except UnreadableRecord as error:
            known = head.schema_version == SCHEMA_VERSION
            self._reject("malformed" if known else "quarantined", line, why=str(error))
            return None
        if self._reviewed_only and _waits_for_review(trajectory):
            self.counts.unreviewed += 1
            return None
        return trajectory

    def _reject(self, kind: str, line: _Line, *, why: str) -> None:
        setattr(self.counts, kind, getattr(self.counts, kind) + 1)
        if len(self.counts.places) < PLACES_MAX:
            self.counts.places.append(f"{line.path}:{line.number}: {kind}: {why}")


_Place = tuple[int, str, int]
"""Sequence, file, line: the highest is the newest, and no two lines share one."""

_head_decoder = msgspec.json.Decoder(Head)


def _waits_for_review(trajectory: Trajectory) -> bool:
    found = trajectory.grounding
    return found is not None and found.review is Review.WAITING


def trajectory_files(path: Path) -> list[Path]:
    """Files of trajectories at `path`: a file, a data directory, or any folder, in order.

    Of a data directory those that left for an archive on this machine come first. Raises
    FolderUnreadable, also where that archive should be and is not.
    """
    if path.is_file():
        return [path]
    root = path / FOLDER if (path / FOLDER).is_dir() else path
    if not root.is_dir():
        raise FolderUnreadable(f"{path} is no file and no folder: give a data directory")
    hot = _files_below(root)
    names = {one.relative_to(root).as_posix() for one in hot}
    return [one for one in _archived(left_of(path)) if file_of(one.as_posix()) not in names] + hot


def left_of(path: Path) -> Left:
    """What has left the log of a data directory; nothing, for any other folder."""
    return left(path / FOLDER) if path.is_dir() else Left()


def _archived(told: Left) -> list[Path]:
    if not told.through or not is_directory(told.url):
        return []
    root = Path(told.url.removeprefix("file://")) / told.gateway_id
    if not root.is_dir():
        raise FolderUnreadable(f"files of this data directory left for {root}, and it is not there")
    return _files_below(root)


def _files_below(root: Path) -> list[Path]:
    found = [one for one in root.rglob("*.jsonl*") if one.name.endswith(SUFFIXES) and one.is_file()]
    named = [one for one in found if is_named(one)]
    return sorted(named, key=lambda one: (str(one.parent), len(one.name), one.name))


def _newest(files: list[Path]) -> dict[str, _Place]:
    """Per session the place of its newest line that this version may read."""
    newest: dict[str, _Place] = {}
    for path in files:
        for line in _lines(path):
            head = _head_of(line.data)
            if head is None or head.erased_at or is_newer(head.schema_version):
                continue
            place = _place(head, line)
            if place > newest.get(head.session_id, (-1, "", 0)):
                newest[head.session_id] = place
    return newest


def _place(head: Head, line: _Line) -> _Place:
    return head.sequence, str(line.path), line.number


def _head_of(data: bytes) -> Head | None:
    try:
        return _head_decoder.decode(data)
    except msgspec.DecodeError:
        return None


def _lines(path: Path) -> Iterator[_Line]:
    """The lines that are not blank, numbered from 1."""
    lines = _unpacked(path) if path.suffix == ".zst" else _plain(path)
    for number, data in enumerate(lines, 1):
        if data.strip():
            yield _Line(path, number, data)


def _plain(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def _unpacked(path: Path) -> Iterator[bytes]:
    """A cut archive ends in a torn line; what stands behind damage counts as one."""
    try:
        import zstandard
    except ImportError as error:
        raise FolderUnreadable(f"{path}: reading .zst needs `pip install zstandard`") from error
    with path.open("rb") as packed:
        stream = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        try:
            yield from io.BufferedReader(stream)
        except zstandard.ZstdError:
            yield b"damaged archive"
