"""How far the feed has come, on disk: two slots written in turn, each with a checksum.

The boundaries of a batch are synced before anything of it is inserted, so that a crash finds the
same batch again. A torn slot is told by its checksum; the other one then holds what was before.
"""

import os
import zlib
from pathlib import Path
from typing import Final, Self

import msgspec

from gateway.stores.records.log_tail import Batch, Place

POSITION_FILE: Final = "position"
_SLOT: Final = 512
_HEAD: Final = 8


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """`at`: everything before it is in the store. `batch`: what may be in it in part."""

    number: int = 0
    at: Place = Place()
    batch: Batch | None = None


class PositionFile:
    """The one writer of a feed's position. Raises OSError when the disk does not take it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.progress: Progress = _newest(self._descriptor) or Progress()

    def begin(self, batch: Batch) -> None:
        """On disk from here on: this batch, with these boundaries, comes next."""
        self._write(self.progress.at, batch, sync=True)

    def done(self, after: Place) -> None:
        """The store has all before this place. A crash that forgets it repeats the batch."""
        self._write(after, None, sync=False)

    def rewind(self) -> None:
        """Begin at the log's first line again; what is known already changes nothing."""
        self._write(Place(), None, sync=True)

    def close(self) -> None:
        """Let the file go."""
        os.close(self._descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _write(self, at: Place, batch: Batch | None, *, sync: bool) -> None:
        progress = Progress(number=self.progress.number + 1, at=at, batch=batch)
        text = msgspec.json.encode(progress)
        head = len(text).to_bytes(4, "big") + zlib.crc32(text).to_bytes(4, "big")
        assert len(text) + _HEAD <= _SLOT, "names of log files are short"
        os.pwrite(self._descriptor, (head + text).ljust(_SLOT, b"\0"), progress.number % 2 * _SLOT)
        if sync:
            os.fdatasync(self._descriptor)
        self.progress = progress


def progress_in(state_directory: Path) -> Progress | None:
    """How far the feed of this directory has come, for whoever only looks; None: never used."""
    try:
        descriptor = os.open(state_directory / POSITION_FILE, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return _newest(descriptor) or Progress()
    finally:
        os.close(descriptor)


def _newest(descriptor: int) -> Progress | None:
    found = [slot for index in range(2) if (slot := _slot(descriptor, index)) is not None]
    return max(found, key=lambda one: one.number, default=None)


def _slot(descriptor: int, index: int) -> Progress | None:
    slot = os.pread(descriptor, _SLOT, index * _SLOT)
    size = int.from_bytes(slot[:4], "big")
    text = slot[_HEAD : _HEAD + size]
    if not text or zlib.crc32(text) != int.from_bytes(slot[4:_HEAD], "big"):
        return None
    return msgspec.json.decode(text, type=Progress)
