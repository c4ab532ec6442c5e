"""Builds a component outside the package, once per state of its sources.

The sources are copied to `<build_dir>/<name>-<digest>` and built there: an installed, read-only
package works and a checkout stays clean. A build that is there is whole: it was renamed into place.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath

from reference_components.recipe import ComponentSpec

BUILD_TIMEOUT_S = 600  # a cold `npm ci` or Go build on two slow cores takes about one minute
DIGEST_LENGTH = 16
LOG_TAIL_CHARS = 2000
# Never part of a component's sources: tests, and what a build inside the checkout may have left.
IGNORED = frozenset({"tests", "__pycache__", "node_modules", "dist", ".build"})


class BuildError(Exception):
    """A component that could not be built; the message ends with the compiler's last words."""


def default_build_dir() -> Path:
    """`.build` in a checkout; the user's cache when the package is installed or read-only."""
    package = Path(str(files("reference_components")))
    in_checkout = (package.parent / "pyproject.toml").is_file()
    if in_checkout and os.access(package, os.W_OK):
        return package / ".build"
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "acp-reference-components"


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace `{name}` for the names in `values`; other braces stay as they are."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


class Builder:
    """Builds into `build_dir`; safe when several processes build the same component at once."""

    def __init__(self, build_dir: Path) -> None:
        self._build_dir = build_dir

    def is_built(self, spec: ComponentSpec) -> bool:
        """True when `build` would only return the folder."""
        return not spec.build or self._place(spec, dict(_sources(spec))).is_dir()

    def build(self, spec: ComponentSpec) -> Path:
        """The folder of the built component; raises BuildError."""
        self._build_dir.mkdir(parents=True, exist_ok=True)
        if not spec.build:
            return self._build_dir
        sources = dict(_sources(spec))
        place = self._place(spec, sources)
        with self._locked(spec.name):
            if not place.is_dir():
                self._build_into(spec, place, sources=sources)
        return place

    def _place(self, spec: ComponentSpec, sources: Mapping[PurePosixPath, bytes]) -> Path:
        digest = hashlib.sha256()
        for path in sorted(sources):
            digest.update(f"{path}\0{len(sources[path])}\0".encode())
            digest.update(sources[path])
        return self._build_dir / f"{spec.name}-{digest.hexdigest()[:DIGEST_LENGTH]}"

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        with (self._build_dir / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _build_into(
        self, spec: ComponentSpec, place: Path, *, sources: Mapping[PurePosixPath, bytes]
    ) -> None:
        with tempfile.TemporaryDirectory(
            prefix=f"{spec.name}.", dir=self._build_dir, ignore_cleanup_errors=True
        ) as scratch:
            workshop = Path(scratch) / "work"
            for path, content in sources.items():
                target = workshop / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
            for command in spec.build:
                self._run(spec, command, workshop=workshop)
            workshop.rename(place)
        self._forget_older(spec.name, place)

    def _run(self, spec: ComponentSpec, command: tuple[str, ...], *, workshop: Path) -> None:
        values = {"build": str(workshop), "cache": str(self._build_dir.resolve() / "cache")}
        environment = {name: fill(value, values) for name, value in spec.build_env.items()}
        try:
            done = subprocess.run(
                [fill(part, values) for part in command],
                cwd=workshop,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=BUILD_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise BuildError(f"{spec.name}: `{' '.join(command)}`: {problem}") from problem
        if done.returncode != 0:
            words = done.stdout.decode(errors="replace")[-LOG_TAIL_CHARS:]
            raise BuildError(f"{spec.name}: `{' '.join(command)}` failed:\n{words}")

    def _forget_older(self, name: str, newest: Path) -> None:
        """Keep the build before this one too: a process may still be running from it."""
        builds = [path for path in self._build_dir.glob(f"{name}-*") if path != newest]
        builds.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for old in builds[1:]:
            shutil.rmtree(old, ignore_errors=True)


def _sources(spec: ComponentSpec) -> Iterator[tuple[PurePosixPath, bytes]]:
    """All files of the component's folder, then of its `sources`, each below that folder's name.

    A source is `folder` beside the component, or `package:path` of another package.
    """
    root = files("reference_components")
    yield from _walk(root / spec.folder, PurePosixPath())
    for source in spec.sources:
        package, colon, path = source.rpartition(":")
        origin = (files(package) if colon else root).joinpath(*path.split("/"))
        yield from _walk(origin, PurePosixPath(origin.name))


def _walk(node: Traversable, path: PurePosixPath) -> Iterator[tuple[PurePosixPath, bytes]]:
    if node.is_file():
        yield path, node.read_bytes()
        return
    for child in sorted(node.iterdir(), key=lambda child: child.name):
        if child.name not in IGNORED and not child.name.endswith(".pyc"):
            yield from _walk(child, path / child.name)
