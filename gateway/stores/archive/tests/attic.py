"""A trajectory log with an archive behind it, for tests; and a store that dies when told to."""

import contextlib
import gzip
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pyarrow.parquet
import zstandard

from acp_spec.model.trajectory import Trajectory
from gateway.stores.archive.archiving import Archiving
from gateway.stores.archive.cold_tier import ColdTier
from gateway.stores.archive.marker import MARKER
from gateway.stores.archive.object_store import DirectoryStore, ObjectStore
from gateway.stores.archive.order import ArchiveOrder, Said, Trouble
from gateway.stores.records.tests.sessions import AT_MS, line, new_log
from gateway.stores.trajectory_log import log_files

GATEWAY = "0011223344556677"
DAY_MS = 86_400_000


class Killed(BaseException):
    """The process is no more: nothing after this line runs."""


@dataclass
class FrailStore:
    """The store below, until its `steps` are used up: then the process dies before or in a step."""

    store: ObjectStore
    steps: int | None = None
    halves: bool = False
    """A directory that was cut off in the middle of a put, as a crash leaves it."""

    def put(self, name: str, source: Path) -> None:
        if self._is_over():
            if self.halves:
                half = source.with_suffix(".half")
                half.write_bytes(source.read_bytes()[: source.stat().st_size // 2])
                self.store.put(name + ".part", half)
                half.unlink()
            raise Killed
        self.store.put(name, source)

    def fetch(self, name: str, target: IO[bytes]) -> None:
        if self._is_over():
            raise Killed
        self.store.fetch(name, target)

    def names(self, prefix: str) -> list[str]:
        return self.store.names(prefix)

    def delete(self, name: str) -> None:
        if self._is_over():
            raise Killed
        self.store.delete(name)

    def _is_over(self) -> bool:
        if self.steps is None:
            return False
        self.steps -= 1
        return self.steps < 0


@dataclass
class Attic:
    """One gateway's log and archive below a folder."""

    folder: Path
    store: FrailStore | None = None
    rotate_bytes: int = 1 << 30
    gateway_id: str = GATEWAY
    told: list[Said] = field(default_factory=list[Said])

    def __post_init__(self) -> None:
        self.log_dir.mkdir(parents=True, exist_ok=True)
        self.log = new_log(self.log_dir, rotate_bytes=self.rotate_bytes)
        self.store = self.store or FrailStore(DirectoryStore(self.archive_dir))

    @property
    def log_dir(self) -> Path:
        return self.folder / "trajectories"

    @property
    def archive_dir(self) -> Path:
        return self.folder / "archive"

    @property
    def cold(self) -> ColdTier:
        assert self.store is not None
        return ColdTier(self.store, self.gateway_id, work=self.folder / "work")

    def write(self, *sessions: Trajectory, at_ms: int = AT_MS) -> None:
        """A file of its own with these sessions."""
        self.log.append([line(one) for one in sessions], at_ms)
        self.log.close()

    def archive(
        self,
        *,
        now_ms: int = AT_MS,
        hot_days: int = 0,
        keep_days: int = 0,
        erase: tuple[str, ...] = (),
        check: bool = False,
        agrees: bool = True,
    ) -> list[Said]:
        """One pass; what it told. Raises Killed where the store dies."""
        order = ArchiveOrder(
            log_dir=str(self.log_dir),
            records_dir=str(self.folder / "records"),
            work_dir=str(self.folder / "work"),
            url=str(self.archive_dir),
            gateway_id=self.gateway_id,
            now_ms=now_ms,
            hot_days=hot_days,
            keep_days=keep_days,
            erase=erase,
            check=check,
        )
        told: list[Said] = []
        Archiving(order, self.cold, tell=told.append, agree=lambda: agrees).run()
        self.told += told
        return told

    def hot_names(self) -> list[str]:
        return [path.relative_to(self.log_dir).as_posix() for path in log_files(self.log_dir)]

    def cold_lines(self) -> list[bytes]:
        """Every line of the archive, in order, erased ones left out."""
        found: list[bytes] = []
        for manifest in self.cold.manifests():
            with tempfile.NamedTemporaryFile() as target:
                self.cold.raw(manifest, Path(target.name))
                found += [one for one in target.read().splitlines(True) if not one.isspace()]
        return found

    def lines(self) -> list[bytes]:
        """Every line of both tiers; a file that is in both counts once."""
        archived = set(self.cold.files())
        hot = [
            one
            for name in self.hot_names()
            if name not in archived
            for one in (self.log_dir / name).read_bytes().splitlines(True)
        ]
        return [*self.cold_lines(), *(one for one in hot if not one.isspace())]

    def troubles(self) -> list[str]:
        return [one.what for one in self.told if isinstance(one, Trouble)]


def places_with(folder: Path, secret: bytes) -> Iterator[Path]:
    """Every file below `folder` that holds `secret`, as it is, unpacked, or in a Parquet column."""
    for where, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # gone while it was looked at
                if name != MARKER and _holds(Path(where, name), secret):
                    yield Path(where, name)


def _holds(path: Path, secret: bytes) -> bool:
    data = path.read_bytes()
    if secret in data:
        return True
    if data[:4] == b"\x28\xb5\x2f\xfd":
        return secret in zstandard.ZstdDecompressor().decompressobj().decompress(data)
    if data[:2] == b"\x1f\x8b":
        return secret in gzip.decompress(data)
    if data[:4] == b"PAR1":
        return any(secret in cell for cell in _cells(path))
    return False


def _cells(path: Path) -> Iterator[bytes]:
    with pyarrow.parquet.ParquetFile(path) as table:
        yield str(table.metadata.to_dict()).encode()  # statistics hold values too
        for row in table.read().to_pylist():
            yield re.sub(r"\\\\", r"\\", str(row)).encode()
