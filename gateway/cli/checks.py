"""What `acp doctor` looks at: each check is a function that says what it found and what to do.

Nothing here changes the machine, beyond one small file that is written and removed again.
"""

import enum
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import msgspec

from acp_spec.sdk.sandbox import capabilities
from gateway.config.settings import Settings

PYTHON_MIN: Final = (3, 11)
SYNCS: Final = 50
# Under this, sessions that write wait for the disk: group commits help only the busy ones.
SYNCS_PER_S_LOW: Final = 200
FREE_BYTES_LOW: Final = 1 << 30
TOOL_S: Final = 10.0

LIBRARIES: Final = (
    "msgspec", "uvicorn", "uvloop", "httptools", "grpcio", "rocksdict", "jiter",
    "common-expression-language", "jsonschema-rs", "pyreqwest",
)  # fmt: skip


class Mark(enum.Enum):
    """How much a finding matters."""

    GOOD = "ok"
    LESS = "less"
    BROKEN = "broken"


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One finding."""

    mark: Mark
    what: str
    found: str
    advice: str = ""


class Tool(msgspec.Struct, frozen=True):
    """A program that reference components of one language need."""

    program: str
    flag: str
    language: str
    package: str


TOOLS: Final = (
    Tool("cobc", "--version", "COBOL", "gnucobol"),
    Tool("go", "version", "Go", "golang-go"),
    Tool("javac", "--version", "Java", "default-jdk-headless"),
    Tool("node", "--version", "TypeScript", "nodejs"),
    Tool("npm", "--version", "TypeScript", "npm"),
)


def all_checks(data_dir: Path) -> Iterator[Check]:
    """Every check, the cheap ones first."""
    yield python()
    yield libraries()
    yield from ports()
    yield from (tool(one) for one in TOOLS)
    yield from sandbox()
    yield space(data_dir)
    yield syncs(data_dir)


def python() -> Check:
    found = ".".join(str(part) for part in sys.version_info[:3])
    if sys.version_info < PYTHON_MIN:
        advice = f"install Python {PYTHON_MIN[0]}.{PYTHON_MIN[1]} or newer, then `make setup`"
        return Check(mark=Mark.BROKEN, what="Python", found=found, advice=advice)
    return Check(mark=Mark.GOOD, what="Python", found=f"{found} at {sys.executable}")


def libraries() -> Check:
    missing = [name for name in LIBRARIES if not _is_installed(name)]
    if missing:
        advice = "run `make setup`, or install the package acp-decision-gateway again"
        found = f"missing: {', '.join(missing)}"
        return Check(mark=Mark.BROKEN, what="libraries", found=found, advice=advice)
    return Check(mark=Mark.GOOD, what="libraries", found=f"all {len(LIBRARIES)} are there")


def ports() -> Iterator[Check]:
    """Whether the default addresses are free: taken ones only mean another flag."""
    defaults = Settings()
    for flag, bind in (("--http", defaults.http.bind), ("--grpc", defaults.grpc.bind)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((bind.host, bind.port))
            except OSError as problem:
                advice = f"a gateway may run already; else start with {flag} {bind.host}:0"
                found = f"taken ({problem.strerror})"
                yield Check(mark=Mark.LESS, what=f"port {bind.port}", found=found, advice=advice)
            else:
                yield Check(mark=Mark.GOOD, what=f"port {bind.port}", found="free")


def tool(one: Tool) -> Check:
    path = shutil.which(one.program)
    what = f"{one.program} ({one.language})"
    advice = f"apt-get install {one.package}: components in {one.language} are left out without it"
    if path is None:
        return Check(mark=Mark.LESS, what=what, found="not installed", advice=advice)
    try:
        ran = subprocess.run(
            [path, one.flag], capture_output=True, text=True, timeout=TOOL_S, check=True
        )
    except (OSError, subprocess.SubprocessError) as problem:
        return Check(mark=Mark.LESS, what=what, found=f"does not run: {problem}", advice=advice)
    said = (ran.stdout or ran.stderr).strip().splitlines()
    return Check(mark=Mark.GOOD, what=what, found=said[0] if said else path)


def sandbox() -> Iterator[Check]:
    """What a program can be held by on this system: each guard, found out by running one."""
    for one in capabilities():
        what = f"sandbox {one.guard.value}"
        if one.held:
            yield Check(mark=Mark.GOOD, what=what, found=one.mechanism)
        else:
            yield Check(mark=Mark.LESS, what=what, found=f"not here: {one.why}", advice=one.advice)


def space(data_dir: Path) -> Check:
    free = shutil.disk_usage(_existing(data_dir)).free
    found = f"{free / (1 << 30):.1f} GiB free for {data_dir}"
    if free < FREE_BYTES_LOW:
        advice = "a session of four calls keeps about 15 KB: make room or choose --data-dir"
        return Check(mark=Mark.LESS, what="disk space", found=found, advice=advice)
    return Check(mark=Mark.GOOD, what="disk space", found=found)


def syncs(data_dir: Path) -> Check:
    """How often the disk can promise: each open, write and end waits for one shared sync."""
    try:
        rate = _syncs_per_s(_existing(data_dir))
    except OSError as problem:
        advice = f"make {data_dir} writable for this user, or choose --data-dir"
        return Check(mark=Mark.BROKEN, what="disk syncs", found=str(problem), advice=advice)
    found = f"{rate:.0f}/s"
    if rate < SYNCS_PER_S_LOW:
        advice = "slow: each session waits for several; a local SSD does thousands"
        return Check(mark=Mark.LESS, what="disk syncs", found=found, advice=advice)
    return Check(mark=Mark.GOOD, what="disk syncs", found=found)


def _syncs_per_s(folder: Path) -> float:
    with tempfile.TemporaryFile(dir=folder) as probe:
        begin = time.perf_counter()
        for _ in range(SYNCS):
            probe.write(b"x" * 4096)
            probe.flush()
            os.fdatasync(probe.fileno())
        return SYNCS / (time.perf_counter() - begin)


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    for candidate in (folder.absolute(), *folder.absolute().parents):
        if candidate.is_dir():
            return candidate
    return Path("/")


def _is_installed(name: str) -> bool:
    try:
        version(name)
    except PackageNotFoundError:
        return False
    return True
