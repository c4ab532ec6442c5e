"""A seccomp filter: system calls that could lift another guard are refused with EPERM.

Without it any program could make a user namespace, be root there, and mount a scratch directory
without a size. Numbers are the kernel's, per architecture; elsewhere there is no filter and the
ledger says so.
"""

import ctypes
import errno
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from acp_spec.sdk.warden import syscalls

_LOAD, _EQUALS, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_OFFSET_NUMBER, _OFFSET_ARCHITECTURE, _OFFSET_FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _KILL = 0x7FFF0000, 0x80000000
_X32_BIT = 0x40000000

_NEW_NAMESPACES = (
    syscalls.CLONE_NEWNS
    | syscalls.CLONE_NEWCGROUP
    | syscalls.CLONE_NEWUTS
    | syscalls.CLONE_NEWIPC
    | syscalls.CLONE_NEWUSER
    | syscalls.CLONE_NEWPID
    | syscalls.CLONE_NEWNET
)

# Since Linux 5.x every new call has one number on all architectures.
_NEWER: Mapping[str, int] = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "mount_setattr": 442,
}  # fmt: skip


@dataclass(frozen=True)
class _Machine:
    audit: int
    clone: int
    socket: int
    refused: Mapping[str, int]


_CLONE3 = 435
_MACHINES: Mapping[str, _Machine] = {
    "x86_64": _Machine(
        audit=0xC000003E,
        clone=56,
        socket=41,
        refused={
            "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272,
            "setns": 308, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311,
            "keyctl": 250, "add_key": 248, "request_key": 249, "bpf": 321,
            "perf_event_open": 298, "userfaultfd": 323, "open_by_handle_at": 304,
            "init_module": 175, "finit_module": 313, "delete_module": 176, "kexec_load": 246,
            "kexec_file_load": 320, "reboot": 169, "swapon": 167, "swapoff": 168,
            "shmget": 29, "msgget": 68, "acct": 163, "quotactl": 179, "settimeofday": 164,
            "clock_settime": 227, "sethostname": 170, "setdomainname": 171, "iopl": 172,
            "ioperm": 173,
        },
    ),
    "aarch64": _Machine(
        audit=0xC00000B7,
        clone=220,
        socket=198,
        refused={
            "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "unshare": 97,
            "setns": 268, "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271,
            "keyctl": 219, "add_key": 217, "request_key": 218, "bpf": 280,
            "perf_event_open": 241, "userfaultfd": 282, "open_by_handle_at": 265,
            "init_module": 105, "finit_module": 273, "delete_module": 106, "kexec_load": 104,
            "kexec_file_load": 294, "reboot": 142, "swapon": 224, "swapoff": 225,
            "shmget": 194, "msgget": 186, "acct": 89, "quotactl": 60, "settimeofday": 170,
            "clock_settime": 112, "sethostname": 161, "setdomainname": 162,
        },
    ),
}  # fmt: skip


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("if_true", ctypes.c_ubyte),
        ("if_false", ctypes.c_ubyte),
        ("operand", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("first", ctypes.POINTER(_Instruction)))


def install(*, sockets: bool) -> None:
    """Filter this process and all it starts, for ever. Raises OSError where that cannot be."""
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        raise OSError(errno.ENOSYS, f"no filter is known for {platform.machine()}")
    lines = [_Instruction(*line) for line in _lines(machine, sockets=sockets)]
    array = (_Instruction * len(lines))(*lines)
    program = _Program(len(lines), array)
    syscalls.control(syscalls.PR_SET_SECCOMP, syscalls.SECCOMP_MODE_FILTER, pointer=program)


def _lines(machine: _Machine, *, sockets: bool) -> Iterator[tuple[int, int, int, int]]:
    refuse = (_RETURN, 0, 0, 0x00050000 | errno.EPERM)
    yield (_LOAD, 0, 0, _OFFSET_ARCHITECTURE)
    yield (_EQUALS, 1, 0, machine.audit)
    yield (_RETURN, 0, 0, _KILL)
    yield (_LOAD, 0, 0, _OFFSET_NUMBER)
    yield (_AT_LEAST, 0, 1, _X32_BIT)
    yield refuse
    numbers = [*machine.refused.values(), *_NEWER.values()]
    for number in [*numbers, *([] if sockets else [machine.socket])]:
        yield (_EQUALS, 0, 1, number)
        yield refuse
    # Its flags lie in memory, out of reach; told that it does not exist, libraries use clone.
    yield (_EQUALS, 0, 1, _CLONE3)
    yield (_RETURN, 0, 0, 0x00050000 | errno.ENOSYS)
    yield (_EQUALS, 0, 3, machine.clone)
    yield (_LOAD, 0, 0, _OFFSET_FIRST_ARGUMENT)
    yield (_ANY_BIT, 0, 1, _NEW_NAMESPACES)
    yield refuse
    yield (_RETURN, 0, 0, _ALLOW)
