"""The warden: starts one program in its room, samples its tree, ends all of it, and reports.

    python -I -S -c "... main()" ROOT CONTROL_FD REPORT_FD

The order is the first line of the control pipe: it may hold secrets, which a command line shows to
everybody. Standard input, output and error are the program's own. The warden ends the run when a
limit is reached, when its control pipe says so, or when that pipe ends: the component is dead.
"""

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable

from acp_spec.sdk.warden import groups, program, room, syscalls, tree
from acp_spec.sdk.warden.order import SAMPLED, SCRATCH, Ledger, Order, Report

USER_FIRST = 0x70000000
"""Plus the warden's process id: a user id of which no two runs at once have the same."""
_GROWN_SHARE = 4
_GROWN_FASTER = 10
_END_S = 5.0
_END_POLL_S = 0.005
_STATUS_BYTES_MAX = 65_536


def main() -> None:
    control, told = int(sys.argv[2]), int(sys.argv[3])
    order = Order.from_json(_first_line(control))
    for descriptor in (control, told):
        os.set_inheritable(descriptor, False)
    with contextlib.suppress(OSError):
        syscalls.control(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    group, why = groups.make(order.cgroup, order.bounds)
    ledger = Ledger()
    _enter_watching(ledger, group, why=why)
    watch = Watch(order, group, control=control)
    try:
        watch.start(ledger)
        report = watch.until_end()
    finally:
        watch.end_all()
        if group is not None:
            group.remove()
        _empty(order.scratch)
    os.write(told, report.to_json().encode())


def _empty(scratch: str) -> None:
    """The component removes it too, where it still lives."""
    try:
        os.rmdir(scratch)
    except OSError:
        import shutil  # rarely needed, and dear to import

        shutil.rmtree(scratch, ignore_errors=True)


def _first_line(descriptor: int) -> str:
    data = b""
    while not data.endswith(b"\n"):
        piece = os.read(descriptor, _STATUS_BYTES_MAX)
        if not piece:
            sys.exit(1)  # the component died before it had said what it wants
        data += piece
    return data.decode()


def _enter_watching(ledger: Ledger, group: groups.Group | None, *, why: str) -> None:
    """What this process itself holds, whatever the room is like."""
    for guard in ("CPU_TIME", "MEMORY", "PROCESSES"):
        ledger.hold(guard, SAMPLED)
    ledger.hold("WALL_CLOCK", "clock")
    ledger.hold("OUTPUT_SIZE", "counted as it is read")
    ledger.hold("WHOLE_TREE", "sub-reaper")
    if group is not None:
        ledger.hold("CPU_TIME", "control group's count, sampled")
        if group.can_kill:
            ledger.hold("WHOLE_TREE", "control group")
        if "pids" in group.controllers:
            ledger.hold("PROCESSES", "control group")
        if "memory" in group.controllers:
            ledger.hold("MEMORY", "control group")
            ledger.hold("MEMORY_EXACT", "control group")
            return
        why = f"{os.path.dirname(group.path)} gives its groups no memory controller"
    ledger.lack("MEMORY_EXACT", why)


class Watch:
    """One run, from the fork to the last process's end."""

    def __init__(self, order: Order, group: groups.Group | None, *, control: int) -> None:
        self._order = order
        self._group = group
        self._control = control
        self._report = Report()
        self._stage = self._init = 0
        self._status = b""
        self._reader = -1
        self._ended: int | None = None
        self._evidence = ""
        self._began_s = time.monotonic()

    def start(self, ledger: Ledger) -> None:
        """Fork the stage; it leaves the namespaces, so that this process stays in its own."""
        self._reader, told = os.pipe()
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        self._stage = os.fork()
        if self._stage == 0:
            # The program's words and the warden's descriptors must not meet.
            os.close(self._control)
            entrance = self._group.entrance if self._group is not None else -1
            _in_child(
                lambda: _stage(self._order, ledger, entrance=entrance, told=told, nothing=nothing),
                told=told,
            )
        os.close(told)
        os.set_blocking(self._reader, False)
        _silence(nothing)

    def until_end(self) -> Report:
        """Sample until the program ends, a limit is reached, or the run is to stop."""
        poll = select.poll()
        poll.register(self._reader, select.POLLIN | select.POLLHUP)
        poll.register(self._control, select.POLLIN | select.POLLHUP)
        while self._ended is None and not self._report.limit and not self._report.problem:
            for descriptor, _ in poll.poll(self._pause_ms()):
                if descriptor == self._control:
                    self._report.stopped = True
                    return self._finished()
                if not self._read_status():
                    return self._finished()
            if self._ended is None:
                self._look()
        return self._finished()

    def _pause_ms(self) -> int:
        """Look more often at a tree that has grown: a fork bomb doubles every few milliseconds."""
        grown = self._report.processes_peak * _GROWN_SHARE > self._order.bounds.processes
        return self._order.sample_ms // _GROWN_FASTER if grown else self._order.sample_ms

    def _read_status(self) -> bool:
        """What stage, init and program say, a JSON document a line; False when all are gone."""
        data = os.read(self._reader, _STATUS_BYTES_MAX)
        self._status += data
        *lines, self._status = self._status.split(b"\n")
        for line in lines:
            self._hear(json.loads(line))
        return bool(data)

    def _hear(self, said: dict[str, object]) -> None:
        report = self._report
        match said:
            case {"init": int(pid)}:
                self._init = pid
            case {"held": dict(held), "missing": dict(missing)}:
                report.held, report.missing = held, missing
                report.problem = _lacking(self._order, held, missing=missing)
            case {"problem": str(problem)}:
                report.problem = report.problem or problem
            case {"ended": int(status), "evidence": str(evidence)}:
                self._ended, self._evidence = status, evidence
            case _:
                raise AssertionError(f"nobody of ours says {said}")

    def _look(self) -> None:
        """One sample. The first limit that is over names the end of the run."""
        bounds, report = self._order.bounds, self._report
        report.wall_ms = round((time.monotonic() - self._began_s) * 1000)
        members = self._members()
        used = tree.use(members, memory_limit_bytes=bounds.memory_bytes)
        cpu_ms, memory = used.cpu_ms, used.memory_bytes
        if self._group is not None:
            cpu_ms = self._group.cpu_ms()
            if "memory" in self._group.controllers:
                memory = self._group.memory_bytes()
        elif self._init:
            cpu_ms += tree.children_cpu_ms(self._init)
        report.cpu_ms = max(report.cpu_ms, cpu_ms)
        report.memory_peak_bytes = max(report.memory_peak_bytes, memory)
        report.processes_peak = max(report.processes_peak, used.processes)
        tests: tuple[tuple[str, Callable[[], bool]], ...] = (
            ("MEMORY", lambda: self._is_over_memory(memory)),
            ("PROCESSES", lambda: self._has_too_many(used.processes)),
            ("CPU_TIME", lambda: report.cpu_ms >= bounds.cpu_ms),
            ("OPEN_FILES", lambda: tree.has_more_open(members, bounds.open_files)),
            ("WALL_CLOCK", lambda: report.wall_ms >= bounds.wall_ms),
        )
        report.limit = next((name for name, is_over in tests if is_over()), "")

    def _is_over_memory(self, memory: int) -> bool:
        if self._group is not None and "memory" in self._group.controllers:
            return self._group.was_out_of_memory()
        return memory > self._order.bounds.memory_bytes

    def _has_too_many(self, processes: int) -> bool:
        refused = self._group is not None and self._group.was_refused_a_process()
        return refused or processes > self._order.bounds.processes

    def _members(self) -> list[int]:
        if self._group is not None:
            return self._group.processes()
        return tree.descendants(self._init) if self._init else []

    def _finished(self) -> Report:
        report, status = self._report, self._ended
        report.wall_ms = round((time.monotonic() - self._began_s) * 1000)
        if self._group is not None:
            report.cpu_ms = max(report.cpu_ms, self._group.cpu_ms())
            peak = self._group.memory_peak_bytes()
            report.memory_peak_bytes = max(report.memory_peak_bytes, peak)
        if status is None:
            if not (report.limit or report.problem or report.stopped):
                report.problem = "the room was lost before the program ended"
                report.lost = True
            return report
        if os.WIFSIGNALED(status):
            report.signal = os.WTERMSIG(status)
        else:
            report.exit_code = os.WEXITSTATUS(status)
        if status and not report.limit and not report.problem:
            report.limit = self._limit_that_ended()
        return report

    def _limit_that_ended(self) -> str:
        """A program that failed by itself, but had met a limit that the kernel holds."""
        if self._is_over_memory(0):
            return "MEMORY"
        if self._has_too_many(0):
            return "PROCESSES"
        by_signal = {signal.SIGXCPU: "CPU_TIME", signal.SIGXFSZ: "FILE_SIZE"}
        if self._report.signal in by_signal:
            return by_signal[signal.Signals(self._report.signal)]
        return self._evidence

    def end_all(self) -> None:
        """Kill until nothing is left; what forks meanwhile is found in the next round."""
        deadline = time.monotonic() + _END_S
        while time.monotonic() < deadline:
            if self._group is not None:
                self._group.kill()
            left = tree.descendants(os.getpid())
            for pid in left:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            if not _reaped() and not left:
                return
            time.sleep(_END_POLL_S)


def _lacking(order: Order, held: dict[str, str], *, missing: dict[str, str]) -> str:
    """Why the program did not begin, when something demanded does not hold."""
    lacking = [guard for guard in order.demanded if guard not in held]
    if not lacking:
        return ""
    why = "; ".join(f"{guard}: {missing.get(guard, 'not held')}" for guard in lacking)
    return f"this system cannot hold what is demanded: {why}"


def _reaped() -> bool:
    """Take what has ended; False when there is no child at all any more."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _stage(order: Order, ledger: Ledger, *, entrance: int, told: int, nothing: int) -> None:
    person = room.person_of(ledger, number=USER_FIRST + os.getppid())
    room.separate(ledger, network=order.network)
    init = os.fork()
    if init == 0:
        os.environ.clear()
        _in_child(
            lambda: _init(order, ledger, person=person, entrance=entrance, told=told), told=told
        )
    _silence(nothing)
    _say(told, {"init": init})
    os.close(told)
    os.waitpid(init, 0)


def _init(order: Order, ledger: Ledger, *, person: room.Person, entrance: int, told: int) -> None:
    """Process number one of the room: starts the program, reaps, and says how it ended."""
    with contextlib.suppress(OSError):
        syscalls.control(syscalls.PR_SET_CHILD_SUBREAPER, 1)
        syscalls.control(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    nothing = os.open(os.devnull, os.O_RDWR)
    furnished = room.furnish(order, ledger, person=person)
    if not furnished and person.user != os.geteuid():
        os.chown(order.scratch, person.user, person.group)
    os.chdir(SCRATCH if furnished else order.scratch)
    child = os.fork()
    if child == 0:
        program.become(order, ledger, person=person, entrance=entrance, told=told)
    _silence(nothing)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            own_proc = furnished or os.getpid() != 1
            evidence = room.evidence(order, own_proc=own_proc) if status else ""
            _say(told, {"ended": status, "evidence": evidence})
            return


def _in_child(work: Callable[[], None], *, told: int) -> None:
    """A forked child never returns into its parent's code; what goes wrong in it is told."""
    code = 1
    try:
        work()
        code = 0
    except (OSError, room.RoomBroken) as problem:
        _say(told, {"problem": f"the sandbox cannot be made: {problem}"})
    finally:
        os._exit(code)


def _say(told: int, what: dict[str, object]) -> None:
    with contextlib.suppress(OSError):
        os.write(told, json.dumps(what).encode() + b"\n")


def _silence(nothing: int) -> None:
    """Let go of the program's pipes: they end when the program's own copies do."""
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)
