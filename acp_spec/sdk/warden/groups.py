"""Control groups (v2): where one may be made, what it then counts and holds, and its end.

Also without the memory controller a group is worth having: it knows every process of a run, counts
their CPU time exactly, and ends all of them at once.
"""

import contextlib
import errno
import os
import time
from collections.abc import Iterator

from acp_spec.sdk.warden.order import CGROUP_FIND, CGROUP_NONE, Bounds

_NAME = "acp-sandbox-"
_WANTED = ("memory", "pids")
_SERVICES = (".service", ".scope")
_REMOVE_TRIES = 40
_REMOVE_WAIT_S = 0.025


class Group:
    """One run's group. `controllers` are those that hold something here."""

    def __init__(self, path: str, bounds: Bounds) -> None:
        self.path = path
        self.controllers = frozenset(_words(path, "cgroup.controllers")) & set(_WANTED)
        if "memory" in self.controllers:
            _write(path, "memory.max", value=str(bounds.memory_bytes))
            for name, value in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
                with contextlib.suppress(OSError):  # kernels without swap accounting
                    _write(path, name, value=value)
        if "pids" in self.controllers:
            _write(path, "pids.max", value=str(bounds.processes))
        self.can_kill = os.path.exists(os.path.join(path, "cgroup.kill"))
        self.entrance = os.open(os.path.join(path, "cgroup.procs"), os.O_WRONLY | os.O_CLOEXEC)

    def processes(self) -> list[int]:
        return [int(word) for word in _words(self.path, "cgroup.procs")]

    def cpu_ms(self) -> int:
        return _entry(self.path, "cpu.stat", key="usage_usec") // 1000

    def memory_bytes(self) -> int:
        return int((_words(self.path, "memory.current") or ["0"])[0])

    def memory_peak_bytes(self) -> int:
        return int((_words(self.path, "memory.peak") or ["0"])[0])

    def was_out_of_memory(self) -> bool:
        return (
            "memory" in self.controllers and _entry(self.path, "memory.events", key="oom_kill") > 0
        )

    def was_refused_a_process(self) -> bool:
        if "pids" not in self.controllers:
            return False
        return _entry(self.path, "pids.events", key="max") > 0

    def kill(self) -> None:
        if self.can_kill:
            with contextlib.suppress(OSError):
                _write(self.path, "cgroup.kill", value="1")

    def remove(self) -> None:
        """Remove it; a process that is still dying holds it for some milliseconds."""
        with contextlib.suppress(OSError):
            os.close(self.entrance)
        for _ in range(_REMOVE_TRIES):
            try:
                os.rmdir(self.path)
            except OSError as problem:
                if problem.errno != errno.EBUSY:
                    return
                time.sleep(_REMOVE_WAIT_S)
            else:
                return


def make(where: str, bounds: Bounds) -> tuple[Group | None, str]:
    """A group below the first place that allows one, best one with the memory controller.

    Returns the group, or None with the reason.
    """
    if where == CGROUP_NONE:
        return None, "control groups are switched off (ACP_SANDBOX_CGROUP=off)"
    made: Group | None = None
    why = "no control group file system (v2) is mounted"
    for parent in _parents() if where == CGROUP_FIND else [where]:
        _sweep(parent)
        try:
            group = _made_below(parent, bounds)
        except OSError as problem:
            why = f"no group can be made below {parent}: {problem.strerror}"
            continue
        if "memory" in group.controllers:
            if made is not None:
                made.remove()
            return group, ""
        if made is None:
            made = group
        else:
            group.remove()
    return made, "" if made is not None else why


def _made_below(parent: str, bounds: Bounds) -> Group:
    present = set(_words(parent, "cgroup.controllers"))
    on = set(_words(parent, "cgroup.subtree_control"))
    for name in _WANTED:
        if name in present - on:
            with contextlib.suppress(OSError):  # refused while the parent holds processes itself
                _write(parent, "cgroup.subtree_control", value=f"+{name}")
    path = os.path.join(parent, f"{_NAME}{os.getpid()}")
    os.mkdir(path)
    try:
        return Group(path, bounds)
    except OSError:
        with contextlib.suppress(OSError):
            os.rmdir(path)
        raise


def _parents() -> Iterator[str]:
    """Our own group; and, where a service was delegated and we stand in a part of it, the whole."""
    own = own_group()
    if not own:
        return
    yield own
    above = os.path.dirname(own)
    if above.endswith(_SERVICES):
        yield above


def own_group() -> str:
    """The directory of this process's own group in the v2 hierarchy, or an empty text."""
    name = next((line[3:] for line in _lines("/proc/self/cgroup") if line.startswith("0::")), None)
    if name is None:
        return ""
    for line in _lines("/proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        if after.split(" ", 1)[0] != "cgroup2":
            continue
        root, point = before.split(" ")[3:5]
        inside = os.path.relpath(name, root) if name.startswith(root) else None
        if inside is not None:
            return os.path.normpath(os.path.join(point, inside))
    return ""


def _sweep(parent: str) -> None:
    """Remove the empty groups of wardens that were killed."""
    with contextlib.suppress(OSError):
        for name in os.listdir(parent):
            number = name.removeprefix(_NAME)
            if name.startswith(_NAME) and number.isdigit() and not _lives(int(number)):
                with contextlib.suppress(OSError):
                    os.rmdir(os.path.join(parent, name))


def _lives(pid: int) -> bool:
    return os.path.exists(f"/proc/{pid}")


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except OSError:
        return []


def _words(folder: str, name: str) -> list[str]:
    return " ".join(_lines(os.path.join(folder, name))).split()


def _entry(folder: str, name: str, *, key: str) -> int:
    for line in _lines(os.path.join(folder, name)):
        found, _, value = line.partition(" ")
        if found == key:
            return int(value)
    return 0


def _write(folder: str, name: str, *, value: str) -> None:
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(value)
