"""The room a program runs in: namespaces, and a file system of its own that shows little.

Each step is tried, and the ledger says what holds; the last child refuses to begin where something
demanded does not. Runs in the warden's child, before the program's own process is there.
"""

import contextlib
import os
import signal
from dataclasses import dataclass

from acp_spec.sdk.warden import syscalls, tree
from acp_spec.sdk.warden.order import SCRATCH, Ledger, Order

_PLACES = ("/mnt", "/media", "/srv", "/var/tmp", "/run", "/tmp")
"""Where the new root is put together: any directory that hides nothing the program may read."""

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt")
_DEVICES = ("null", "zero", "full", "random", "urandom")
_ROOT_OPTIONS = "size=1m,nr_inodes=4096,mode=0755"
_SCRATCH_FILES_MAX = 65_536
INSIDE_USER = 1000
"""The number of the component's user inside a user namespace: not 0, so that exec drops all."""


@dataclass(frozen=True)
class Person:
    """Who the program will be. `mapped`: in a user namespace the ids are there already."""

    user: int
    group: int
    mapped: bool = False


class RoomBroken(Exception):
    """The room is half made: nothing may run in it."""


def person_of(ledger: Ledger, *, number: int) -> Person:
    """Decide who the program is; makes the user namespace where there is no other way."""
    if os.geteuid() == 0:
        ledger.hold("OWN_USER", f"user id {number}, which owns nothing")
        return Person(number, number)
    user, group = os.geteuid(), os.getegid()
    try:
        syscalls.unshare(syscalls.CLONE_NEWUSER)
    except OSError as problem:
        ledger.lack("OWN_USER", f"not root, and no user namespace ({problem.strerror})")
        return Person(user, group)
    _put("/proc/self/setgroups", "deny")
    _put("/proc/self/uid_map", f"{INSIDE_USER} {user} 1")
    _put("/proc/self/gid_map", f"{INSIDE_USER} {group} 1")
    ledger.hold("OWN_USER", "user namespace: the component's user outside, without its rights")
    return Person(INSIDE_USER, INSIDE_USER, mapped=True)


def separate(ledger: Ledger, *, network: bool) -> None:
    """Leave the namespaces that can be left; the next child begins a process namespace."""
    for flag in (syscalls.CLONE_NEWIPC, syscalls.CLONE_NEWUTS, syscalls.CLONE_NEWCGROUP):
        with contextlib.suppress(OSError):  # no guard stands on these alone
            syscalls.unshare(flag)
    if not network:
        _leave(ledger, "NETWORK", flag=syscalls.CLONE_NEWNET, mechanism="network namespace")
    _leave(ledger, "WHOLE_TREE", flag=syscalls.CLONE_NEWPID, mechanism="process namespace")
    # The killed warden takes its children along; set after all that would clear it.
    syscalls.control(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)


def _leave(ledger: Ledger, guard: str, *, flag: int, mechanism: str) -> None:
    try:
        syscalls.unshare(flag)
    except OSError as problem:
        ledger.lack(guard, f"no {mechanism} ({problem.strerror})")
    else:
        ledger.hold(guard, mechanism)


def furnish(order: Order, ledger: Ledger, *, person: Person) -> bool:
    """Give this process, and all it starts, a file system that is read only but for scratch.

    False where there can be none. Raises RoomBroken when it cannot be finished.
    """
    try:
        syscalls.unshare(syscalls.CLONE_NEWNS)
        syscalls.mount("none", "/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)
        sources = [*_SYSTEM, *order.reads]
        place = _place(sources)
        syscalls.mount("tmpfs", place, kind="tmpfs", options=_ROOT_OPTIONS)
    except OSError as problem:
        why = f"no mount namespace ({problem.strerror})"
        ledger.lack("READ_ONLY_FILES", why)
        ledger.lack("SCRATCH_SIZE", why)
        return False
    try:
        _fill(place, order, person=person)
        os.chdir(place)
        syscalls.make_current_directory_the_root()
        flags = syscalls.MS_REMOUNT | syscalls.MS_BIND | syscalls.MS_RDONLY
        syscalls.mount("none", "/", flags=flags | syscalls.MS_NOSUID | syscalls.MS_NODEV)
    except OSError as problem:
        raise RoomBroken(f"the file system cannot be made: {problem}") from problem
    ledger.hold("READ_ONLY_FILES", "mount namespace")
    ledger.hold("SCRATCH_SIZE", "tmpfs with a size")
    return True


def _place(sources: list[str]) -> str:
    for candidate in _PLACES:
        hides = any(source == candidate or source.startswith(candidate + "/") for source in sources)
        if os.path.isdir(candidate) and not hides:
            return candidate
    raise OSError(2, "no free directory to put the new root together in")


def _fill(place: str, order: Order, *, person: Person) -> None:
    closed = syscalls.MS_NOSUID | syscalls.MS_NODEV
    # First, so that what a program may read can also lie below the system's own /tmp.
    os.makedirs(f"{place}{SCRATCH}", exist_ok=True)
    size = f"size={order.bounds.scratch_bytes},nr_inodes={_SCRATCH_FILES_MAX},mode=0700"
    options = f"{size},uid={person.user},gid={person.group}"
    syscalls.mount("tmpfs", f"{place}{SCRATCH}", kind="tmpfs", flags=closed, options=options)
    for path in dict.fromkeys([*_SYSTEM, *order.reads]):
        _show(place, path)
    if order.network:
        _show_resolver(place)
    os.makedirs(f"{place}/dev", exist_ok=True)
    for name in _DEVICES:
        _bind(f"/dev/{name}", f"{place}/dev/{name}", devices=True)
    os.symlink("/proc/self/fd", f"{place}/dev/fd")
    os.symlink(SCRATCH, f"{place}/dev/shm")
    os.makedirs(f"{place}/proc", exist_ok=True)
    with contextlib.suppress(OSError):  # where /proc is masked (containers) there is none at all
        flags = closed | syscalls.MS_NOEXEC
        syscalls.mount("proc", f"{place}/proc", kind="proc", flags=flags)


def _show(place: str, path: str) -> None:
    """Bind a place of the system's, read only, where it is; a link stays a link."""
    target = f"{place}{path}"
    if os.path.lexists(target) or not os.path.lexists(path):
        return
    if os.path.islink(path) and path in _SYSTEM:
        os.symlink(os.readlink(path), target)
        return
    _bind(path, target, devices=False)


def _show_resolver(place: str) -> None:
    """The names of hosts, where /etc/resolv.conf only points elsewhere."""
    real = os.path.realpath("/etc/resolv.conf")
    if not real.startswith("/etc/"):
        _show(place, real)


def _bind(source: str, target: str, *, devices: bool) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "a", encoding="utf-8"):
            pass
    syscalls.mount(source, target, flags=syscalls.MS_BIND | syscalls.MS_REC)
    syscalls.set_mounts_read_only(target, devices=devices)


def evidence(order: Order, *, own_proc: bool) -> str:
    """What a program that failed had reached: too many of it, a file's size, the scratch's."""
    bounds = order.bounds
    if own_proc:
        left = tree.descendants(os.getpid())
        if tree.use(left, memory_limit_bytes=bounds.memory_bytes).processes >= bounds.processes:
            return "PROCESSES"
    if _has_file_of(bounds.file_bytes):
        return "FILE_SIZE"
    free = os.statvfs(".")
    own = free.f_blocks * free.f_frsize <= bounds.scratch_bytes
    return "SCRATCH_SIZE" if own and 0 in (free.f_bfree, free.f_ffree) else ""


def _has_file_of(size: int) -> bool:
    device = os.lstat(".").st_dev
    for folder, _, names in os.walk("."):
        for name in names:
            with contextlib.suppress(OSError):
                found = os.lstat(os.path.join(folder, name))
                if found.st_dev == device and found.st_size >= size:
                    return True
    return False


def _put(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
