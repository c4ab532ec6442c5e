"""Looking at a tree of processes through /proc: who is in it, what it uses.

A process may end between two reads: then it counts as nothing.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICK_MS = 1000 / os.sysconf("SC_CLK_TCK")
_KERNEL_TELLS_CHILDREN = os.path.exists(f"/proc/self/task/{os.getpid()}/children")


@dataclass(frozen=True)
class Use:
    """What a tree used at one moment. `processes` counts threads too, as the kernel does."""

    memory_bytes: int = 0
    cpu_ms: int = 0
    processes: int = 0


def descendants(root: int) -> list[int]:
    """Every process below `root`, without it. Any thread of a process may have children."""
    children_of = _told_children if _KERNEL_TELLS_CHILDREN else _all_children().get
    found: list[int] = []
    waiting = [root]
    while waiting:
        children = children_of(waiting.pop()) or []
        found += children
        waiting += children
    return found


def _all_children() -> dict[int, list[int]]:
    """Children by parent, from every process there is: for kernels that tell no children."""
    found: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = _stat(int(name))
            if len(fields) > 1:
                found.setdefault(int(fields[1]), []).append(int(name))
    return found


def _told_children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += [int(word) for word in _read(f"/proc/{pid}/task/{thread}/children").split()]
    return found


def use(pids: Iterable[int], *, memory_limit_bytes: int) -> Use:
    """The sum over these processes. Shared pages are told apart only when that decides."""
    members = list(pids)
    in_files = _memory_files_bytes(members)
    memory = in_files + sum(_resident_bytes(pid) for pid in members)
    if memory > memory_limit_bytes:
        memory = _exact_bytes(members, in_files=in_files)
    cpu_ms = processes = 0
    for pid in members:
        own_ms, threads = _cpu_ms_and_threads(pid)
        cpu_ms += own_ms
        processes += threads
    return Use(memory_bytes=memory, cpu_ms=cpu_ms, processes=processes)


def children_cpu_ms(pid: int) -> int:
    """CPU time of what this process has waited for, and all they had waited for."""
    fields = _stat(pid)
    return round((int(fields[13]) + int(fields[14])) * _TICK_MS) if fields else 0


def has_more_open(pids: Iterable[int], files_max: int) -> bool:
    """Whether one process has more open files than `files_max`."""
    for pid in pids:
        with contextlib.suppress(OSError):
            if len(os.listdir(f"/proc/{pid}/fd")) > files_max:
                return True
    return False


def _resident_bytes(pid: int) -> int:
    words = _read(f"/proc/{pid}/statm").split()
    return int(words[1]) * _PAGE if len(words) > 1 else 0


def _exact_bytes(pids: Iterable[int], *, in_files: int) -> int:
    """Pages shared by n processes count 1/n in each; those of a memory file count once, mapped
    or not. Where a kernel does not tell, each resident page counts."""
    own = mapped = 0
    for pid in pids:
        told = dict(_entries(f"/proc/{pid}/smaps_rollup"))
        whole = told.get("Pss", 0) or _resident_bytes(pid)
        own += whole - told.get("Pss_Shmem", 0)
        mapped += told.get("Pss_Shmem", 0)
    return own + max(mapped, in_files)


def _entries(path: str) -> Iterator[tuple[str, int]]:
    for line in _read(path).splitlines():
        name, _, value = line.partition(":")
        if value.endswith("kB"):
            yield name, int(value.split()[0]) * 1024


def _memory_files_bytes(pids: Iterable[int]) -> int:
    """Memory in files that lie nowhere (memfd): it is nobody's resident memory until mapped."""
    sizes: dict[tuple[int, int], int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):
                path = f"/proc/{pid}/fd/{name}"
                if os.readlink(path).startswith("/memfd:"):
                    found = os.stat(path)
                    sizes[found.st_dev, found.st_ino] = found.st_blocks * 512
    return sum(sizes.values())


def _cpu_ms_and_threads(pid: int) -> tuple[int, int]:
    """Own time and that of children waited for; threads, one for a process that has ended."""
    fields = _stat(pid)
    if not fields:
        return 0, 0
    return round(sum(int(fields[n]) for n in range(11, 15)) * _TICK_MS), int(fields[17]) or 1


def _stat(pid: int) -> list[str]:
    """/proc/pid/stat from its third field on: the name before may hold blanks and brackets."""
    return _read(f"/proc/{pid}/stat").rpartition(")")[2].split()


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
