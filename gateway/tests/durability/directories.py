"""Data directories in trouble: gateways that are started on them, or refuse to start, and why."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

START_S_MAX = 60.0
ACP = Path(sys.executable).parent / "acp"


class Refusal(NamedTuple):
    """A start that did not come about: the exit code, and what a person reads."""

    exit_code: int
    said: str


def refusal(data_dir: Path, **environ: str) -> Refusal:
    """Start a gateway that must not get ready."""
    flags = ("--data-dir", str(data_dir), "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0")
    ended = subprocess.run(
        [str(ACP), "serve", *flags],
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=START_S_MAX,
        check=False,
    )
    assert ended.stdout == "", "it must not say that it is ready"
    return Refusal(ended.returncode, ended.stderr)


def limited_acp(folder: Path, *, file_kib: int) -> Path:
    """A program that is `acp` with a limit to the size of its files."""
    program = folder / "limited-acp"
    text = f'#!/bin/bash\nulimit -f {file_kib}\nexec {shlex.quote(str(ACP))} "$@"\n'
    program.write_text(text, encoding="ascii")
    program.chmod(0o700)
    return program


def newest_log(data_dir: Path) -> Path:
    """The store's log that was written last."""
    logs = sorted((data_dir / "store").glob("*.log"), key=lambda path: path.name)
    return logs[-1]


def cut(path: Path, *, count: int) -> None:
    """Take the last `count` bytes away, as a write that was torn."""
    data = path.read_bytes()
    path.write_bytes(data[:-count])


def damage(path: Path, *, at: float, count: int = 64) -> None:
    """Invert `count` bytes at that share of the file."""
    data = bytearray(path.read_bytes())
    start = int(len(data) * at)
    for index in range(start, min(start + count, len(data))):
        data[index] ^= 0xFF
    path.write_bytes(bytes(data))


def mounted(folder: Path, *, mib: int) -> bool:
    """Whether a disk of this size could be mounted there (it takes rights that few have)."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def unmount(folder: Path) -> None:
    subprocess.run(["umount", str(folder)], check=True)
