"""What a process did, as the kernel saw it: `strace` of a real gateway, read back in order.

Only four kinds of acts count here: what came in by a socket, what was written to the store's log,
when a sync of that log began and returned, and what went out by a socket.
"""

import enum
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

TRACED = "read,recvfrom,recvmsg,write,writev,sendto,sendmsg,fdatasync,fsync"
SHOWN_BYTES = 200
_LINE = re.compile(r"^(\d+) +(?:<\.\.\. (\w+) resumed>|(\w+)\()(.*)$")
_PLACE = re.compile(r"^\d+<([^>]*)>")


class Kind(enum.Enum):
    CAME = "came"
    LOGGED = "logged"
    SYNCED = "synced"
    WENT = "went"


@dataclass(frozen=True, slots=True)
class Act:
    """One system call: where in the trace it began and returned, and the bytes it showed."""

    kind: Kind
    began: int
    returned: int
    text: str


class Promise(NamedTuple):
    """What the gateway was asked (bytes that came), and what told that it is done (that went)."""

    name: str
    asked: str
    told: str


def traced_acp(strace: Path, folder: Path) -> tuple[Path, Path]:
    """A program that is `acp` under strace, and where its trace goes. Its pid is acp's own."""
    trace, program = folder / "trace", folder / "traced-acp"
    acp = Path(sys.executable).parent / "acp"
    command = [
        *(str(strace), "-D", "-f", "-y", "-s", str(SHOWN_BYTES), "-e", f"trace={TRACED}"),
        *("-o", str(trace), str(acp)),
    ]
    program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="ascii")
    program.chmod(0o700)
    return program, trace


def read_acts(trace: str) -> list[Act]:
    """The acts in the order in which they returned."""
    acts: list[Act] = []
    begun: dict[str, tuple[int, str, str]] = {}
    for number, line in enumerate(trace.splitlines()):
        found = _LINE.match(line)
        if found is None:
            continue
        thread, resumed, name, rest = found.groups()
        if resumed:
            began, name, head = begun.pop(thread, (number, resumed, ""))
            rest = head + rest
        elif rest.endswith("<unfinished ...>"):
            begun[thread] = (number, name, rest.removesuffix("<unfinished ...>"))
            continue
        else:
            began = number
        kind = _kind(name, rest)
        if kind is not None:
            acts.append(Act(kind, began, number, rest))
    return acts


def _kind(name: str, rest: str) -> Kind | None:
    place = _PLACE.match(rest)
    if place is None or re.search(r"= -1 ", rest):
        return None
    is_socket = place[1].startswith(("socket:", "TCP"))
    is_log = "/store/" in place[1] and place[1].endswith(".log")
    if name in ("fdatasync", "fsync"):
        return Kind.SYNCED if is_log else None
    if name in ("write", "writev", "sendto", "sendmsg"):
        if is_log:
            return Kind.LOGGED
        return Kind.WENT if is_socket else None
    return Kind.CAME if is_socket else None


def kept_in_order(acts: Sequence[Act], promises: Sequence[Promise]) -> dict[str, bool]:
    """For each promise, in the order in which they were asked for: was it on disk when told?"""
    kept: dict[str, bool] = {}
    at = 0
    for promise in promises:
        asked = _next(acts, at, kind=Kind.CAME, text=promise.asked)
        told = _next(acts, asked, kind=Kind.WENT, text=promise.told)
        kept[promise.name] = _is_synced(acts[asked + 1 : told], before=acts[told].began)
        at = told
    return kept


def _next(acts: Sequence[Act], start: int, *, kind: Kind, text: str) -> int:
    for index in range(start, len(acts)):
        if acts[index].kind is kind and text in acts[index].text:
            return index
    raise AssertionError(f"in the trace nothing {kind.value} with {text!r}")


def _is_synced(acts: Sequence[Act], *, before: int) -> bool:
    """A sync began behind a write of the log, and returned before the telling began."""
    logged = [act.returned for act in acts if act.kind is Kind.LOGGED]
    return bool(logged) and any(
        act.kind is Kind.SYNCED and act.began > logged[0] and act.returned < before for act in acts
    )
