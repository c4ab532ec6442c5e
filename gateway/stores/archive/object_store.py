"""Where archived files lie: a directory, or whatever fsspec reaches. Names are relative, with `/`.

What is put is there whole or not at all. Every failure of a store is an OSError, FileNotFoundError
where there is no such object: callers try again later and lose nothing. Blocks.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Protocol, cast

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

PART: Final = ".part"
"""Ending of what is still being written; nobody reads it, and the next sweep takes it away."""

S3: Final = ("s3", "s3a")
S3_LIMITS: Final[Mapping[str, object]] = {
    "connect_timeout": 10,
    "read_timeout": 60,
    "retries": {"max_attempts": 3, "mode": "standard"},
}
"""A store that hangs is given up and asked again at the next pass, not waited for all night."""

EXTRA: Final = "pip install 'acp-decision-gateway[records]'"


class StoreUnreachable(OSError):
    """The store says no, or nothing: its own words are the message."""


class ExtraMissing(StoreUnreachable):
    """A library that this needs is not installed; the message says how to get it."""


class ObjectStore(Protocol):
    """What the archive needs of a store."""

    def put(self, name: str, source: Path) -> None:
        """A file's bytes under this name, replacing what was there."""

    def fetch(self, name: str, target: IO[bytes]) -> None:
        """Write the object's bytes into an open file."""

    def names(self, prefix: str) -> list[str]:
        """Every object below `prefix`, sorted."""

    def delete(self, name: str) -> None:
        """Gone when it returns, also if it was never there."""


class DirectoryStore:
    """A directory: no library needed, and every put is synced."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def put(self, name: str, source: Path) -> None:
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + PART)
        try:
            with source.open("rb") as given, part.open("wb") as kept:
                shutil.copyfileobj(given, kept, 1 << 20)
                kept.flush()
                os.fsync(kept.fileno())
            part.replace(path)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        sync_directory(path.parent)

    def fetch(self, name: str, target: IO[bytes]) -> None:
        with (self._root / name).open("rb") as kept:
            shutil.copyfileobj(kept, target, 1 << 20)

    def names(self, prefix: str) -> list[str]:
        base = self._root / prefix
        return sorted(
            path.relative_to(self._root).as_posix() for path in base.rglob("*") if path.is_file()
        )

    def delete(self, name: str) -> None:
        path = self._root / name
        path.unlink(missing_ok=True)
        if path.parent.is_dir():
            sync_directory(path.parent)
            with contextlib.suppress(OSError):  # others are in it still
                path.parent.rmdir()


class RemoteStore:
    """Anything fsspec knows by its URL. One put is one request, or an upload in parts that appears
    when it is complete: what is below must keep that promise (S3, GCS and Azure do).
    """

    def __init__(self, url: str, options: Mapping[str, str]) -> None:
        self._files, self._root = _opened(url, options)

    def put(self, name: str, source: Path) -> None:
        with _translated(name):
            self._files.put_file(str(source), self._path(name))

    def fetch(self, name: str, target: IO[bytes]) -> None:
        with (
            _translated(name),
            cast("IO[bytes]", self._files.open(self._path(name), "rb")) as kept,
        ):
            shutil.copyfileobj(kept, target, 1 << 20)

    def names(self, prefix: str) -> list[str]:
        with _translated(prefix):
            self._files.invalidate_cache()
            try:
                found = self._files.find(self._path(prefix))
            except FileNotFoundError:
                return []
        start = len(self._root) + 1
        return sorted(str(one)[start:] for one in found)

    def delete(self, name: str) -> None:
        with _translated(name), contextlib.suppress(FileNotFoundError):
            self._files.rm_file(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"


def open_store(url: str, options: Mapping[str, str]) -> ObjectStore:
    """The store of a URL or of a directory's path. Raises ExtraMissing, OSError."""
    if "://" not in url:
        return DirectoryStore(Path(url))
    if url.startswith("file://"):
        return DirectoryStore(Path(url.removeprefix("file://")))
    return RemoteStore(url, options)


def is_directory(url: str) -> bool:
    """Whether it is a directory of this machine: then anybody reads it without a library."""
    return "://" not in url or url.startswith("file://")


def look_at(url: str) -> None:
    """What can be seen of a place without asking anybody far away. Raises StoreUnreachable."""
    if is_directory(url):
        path = Path(url.removeprefix("file://"))
        there = next(one for one in (path, *path.absolute().parents) if one.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            raise StoreUnreachable(f"archive.url: {there} is no folder that can be written to")
        return
    try:
        from fsspec import available_protocols
    except ImportError:
        return  # told where it is needed, with how to get it
    kind = url.partition("://")[0].partition("::")[0]
    if kind not in available_protocols():
        raise StoreUnreachable(f"archive.url: no kind of store is known by the name {kind!r}")


def sync_directory(folder: Path) -> None:
    """Names that were made or taken away in it survive a power cut from here on."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _opened(url: str, options: Mapping[str, str]) -> "tuple[AbstractFileSystem, str]":
    try:
        from fsspec.core import url_to_fs
    except ImportError as problem:
        raise ExtraMissing(f"archive.url {url} needs fsspec: {EXTRA}") from problem
    scheme = url.partition("://")[0]
    extra: dict[str, object] = {"use_listings_cache": False, "skip_instance_cache": True}
    if scheme in S3:
        extra["config_kwargs"] = dict(S3_LIMITS)
    with _translated(url):
        try:
            files, root = url_to_fs(url, **extra, **options)
        except (ImportError, ValueError) as problem:
            raise ExtraMissing(f"archive.url {url}: {problem}") from problem
    return files, str(root).rstrip("/")


@contextlib.contextmanager
def _translated(what: str) -> Iterator[None]:
    """Libraries behind fsspec raise what they like; from here on it is an OSError that names it."""
    try:
        yield
    except (FileNotFoundError, ExtraMissing):
        raise
    except Exception as problem:
        said = str(problem) or type(problem).__name__
        raise StoreUnreachable(f"the archive's store, {what}: {said}") from problem
