"""Linux calls that Python 3.11 has no name for. Each raises OSError; none decides anything."""

import ctypes
import os
import platform

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MNT_DETACH = 0x2

PR_SET_PDEATHSIG = 1
PR_CAPBSET_READ = 23
PR_CAPBSET_DROP = 24
PR_SET_SECCOMP = 22
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2

_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MOUNT_SETATTR = 442  # one number on every architecture
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CAPABILITIES_MAX = 64

_libc = ctypes.CDLL(None, use_errno=True)


class _MountAttributes(ctypes.Structure):
    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    _checked(_libc.unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str, target: str, *, kind: str = "", flags: int = 0, options: str = "") -> None:
    done = _libc.mount(
        ctypes.c_char_p(source.encode()),
        ctypes.c_char_p(target.encode()),
        ctypes.c_char_p(kind.encode() or None),
        ctypes.c_ulong(flags),
        ctypes.c_char_p(options.encode() or None),
    )
    _checked(done, f"mount {target}")


def unmount(target: str) -> None:
    _checked(_libc.umount2(ctypes.c_char_p(target.encode()), MNT_DETACH), f"umount {target}")


def set_mounts_read_only(target: str, *, devices: bool) -> None:
    """`target` and every mount below it, in one call (Linux 5.12)."""
    flags = MS_RDONLY | MS_NOSUID | (0 if devices else MS_NODEV)  # the same bits as MOUNT_ATTR_*
    wanted = _MountAttributes(attr_set=flags)
    done = _libc.syscall(
        ctypes.c_long(_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        ctypes.c_char_p(target.encode()),
        ctypes.c_uint(_AT_RECURSIVE),
        ctypes.byref(wanted),
        ctypes.c_size_t(ctypes.sizeof(wanted)),
    )
    _checked(done, f"mount_setattr {target}")


def make_current_directory_the_root() -> None:
    """pivot_root(".", "."), then let the old root go."""
    number = _PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(38, f"pivot_root: no number is known for {platform.machine()}")
    here = ctypes.c_char_p(b".")
    _checked(_libc.syscall(ctypes.c_long(number), here, here), "pivot_root")
    unmount(".")
    os.chdir("/")


def control(option: int, argument: int = 0, *, pointer: object = None) -> int:
    """prctl with one number, and a pointer where the option takes one."""
    third = ctypes.byref(pointer) if isinstance(pointer, ctypes.Structure) else ctypes.c_ulong(0)
    zero = ctypes.c_ulong(0)
    done = _libc.prctl(ctypes.c_int(option), ctypes.c_ulong(argument), third, zero, zero)
    return _checked(done, f"prctl {option}")


def drop_capabilities() -> None:
    """Empty the bounding set: no program that is started can ever have one again."""
    for capability in range(_CAPABILITIES_MAX):
        try:
            present = control(PR_CAPBSET_READ, capability)
        except OSError:
            return  # beyond the last one this kernel knows
        if present:
            control(PR_CAPBSET_DROP, capability)
