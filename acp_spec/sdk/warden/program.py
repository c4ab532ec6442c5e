"""The last child: takes on the limits, lets go of every right, and becomes the program."""

import contextlib
import json
import os
import resource
import signal
import sys

from acp_spec.sdk.warden import call_filter, syscalls
from acp_spec.sdk.warden.order import SAMPLED, SCRATCH, Bounds, Ledger, Order
from acp_spec.sdk.warden.room import Person

NOT_BEGUN = 126
_OOM_FIRST = "1000"
_PROCESSES_SEEN = 64
_DESCRIPTORS_MAX = 1 << 20


def become(order: Order, ledger: Ledger, *, person: Person, entrance: int, told: int) -> None:
    """Never returns: the program, or an exit with the reason written to `told`."""
    try:
        os.setsid()
        _join(entrance)
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write(_OOM_FIRST)
        _limit(order.bounds, ledger, spare=_spare(person))
        _let_go(ledger, person=person)
        _filter(order, ledger)
        os.closerange(3, told)
        os.closerange(told + 1, _DESCRIPTORS_MAX)
        ledger.hold("NO_INHERITED_FILES", "all closed but the three pipes")
        ledger.hold("CLEAN_ENVIRONMENT", "made from nothing")
        os.set_inheritable(told, False)
        _tell(told, {"held": ledger.held, "missing": ledger.missing})
        lacking = [guard for guard in order.demanded if guard not in ledger.held]
        if not lacking:
            _reset_signals()
            os.chdir(SCRATCH if "READ_ONLY_FILES" in ledger.held else order.scratch)
            os.execvpe(order.argv[0], order.argv, order.environment)
    except OSError as problem:
        _tell(told, {"problem": f"{order.argv[0]} cannot be started: {problem.strerror}"})
    finally:
        os._exit(NOT_BEGUN)


def _join(entrance: int) -> None:
    if entrance >= 0:
        os.write(entrance, b"0")


def _spare(person: Person) -> int | None:
    """What the kernel counts of ours as the program's; None where it counts others too."""
    if person.mapped:
        return 2  # stage and init live in the same user namespace
    return 0 if os.geteuid() == 0 else None


def _limit(bounds: Bounds, ledger: Ledger, *, spare: int | None) -> None:
    """A little more than allowed of what is counted, so that the excess is seen."""
    cpu_s = bounds.cpu_ms // 1000 + 2
    _set(resource.RLIMIT_CPU, cpu_s, hard=cpu_s + 1)
    _set(resource.RLIMIT_NOFILE, bounds.open_files + 1)
    _set(resource.RLIMIT_FSIZE, bounds.file_bytes)
    _set(resource.RLIMIT_CORE, 1)  # 0 would still feed a core to a program that collects them
    _set(resource.RLIMIT_MSGQUEUE, 0)
    if spare is not None:
        # A fork refused leaves no trace: room to be seen in, before the kernel says no.
        _set(resource.RLIMIT_NPROC, 2 * bounds.processes + _PROCESSES_SEEN + spare)
        if ledger.held["PROCESSES"] == SAMPLED:
            ledger.hold("PROCESSES", "sampled over the whole tree; rlimit of its user above that")
    if bounds.address_space_bytes:
        _set(resource.RLIMIT_AS, bounds.address_space_bytes)
        ledger.hold("ADDRESS_SPACE", "rlimit")
    ledger.hold("OPEN_FILES", "rlimit per process")
    ledger.hold("FILE_SIZE", "rlimit per file")


def _set(what: int, soft: int, *, hard: int = -1) -> None:
    ceiling = resource.getrlimit(what)[1]
    wanted = soft if hard < 0 else hard
    if ceiling != resource.RLIM_INFINITY:
        soft, wanted = min(soft, ceiling), min(wanted, ceiling)
    resource.setrlimit(what, (soft, wanted))


def _let_go(ledger: Ledger, *, person: Person) -> None:
    with contextlib.suppress(OSError):  # without the right to drop rights there are none to drop
        syscalls.drop_capabilities()
    if os.geteuid() == 0 and not person.mapped:
        os.setgroups([])
        os.setresgid(person.group, person.group, person.group)
        os.setresuid(person.user, person.user, person.user)
    syscalls.control(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    ledger.hold("NO_NEW_PRIVILEGES", "no_new_privs, no capabilities")


def _filter(order: Order, ledger: Ledger) -> None:
    by_filter = not order.network and "NETWORK" not in ledger.held
    try:
        call_filter.install(sockets=not by_filter)
    except OSError as problem:
        ledger.lack("SYSTEM_CALLS", f"no seccomp filter ({problem.strerror})")
        return
    ledger.hold("SYSTEM_CALLS", "seccomp filter")
    if by_filter:
        ledger.hold("NETWORK", "seccomp filter: no sockets at all")


def _reset_signals() -> None:
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def _tell(told: int, what: dict[str, object]) -> None:
    with contextlib.suppress(OSError):
        os.write(told, json.dumps(what).encode() + b"\n")
    sys.stdout = sys.stderr = None  # nothing of ours may reach the program's pipes
