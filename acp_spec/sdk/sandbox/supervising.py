"""Running one program: starts the warden, carries the bytes, and reads the warden's report.

Blocks its thread until the whole tree has ended. Safe in a process with many threads: nothing is
forked here but by `subprocess`, and the warden is a process of its own.
"""

import contextlib
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Final

from acp_spec.model.sandbox import Guard
from acp_spec.sdk.sandbox.limits import Limits, Program
from acp_spec.sdk.sandbox.outcome import Outcome, SandboxLost, SandboxUnavailable
from acp_spec.sdk.warden.order import CGROUP_FIND, SCRATCH, Bounds, Order, Report

CGROUP_VARIABLE: Final = "ACP_SANDBOX_CGROUP"
"""A directory of the v2 hierarchy below which groups may be made, or `off`; default: look."""

_ROOT: Final = str(Path(__file__).parents[3])
_BOOT: Final = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from acp_spec.sdk.warden.watch import main; main()"
)
_PIECE_BYTES: Final = 65_536
_ERRORS_KEPT_BYTES: Final = 8_192
_POLL_S: Final = 0.05
_END_GRACE_S: Final = 15.0
"""The warden needs at most five seconds to end a tree; then it is killed itself."""


def never() -> bool:
    return False


def run(
    program: Program,
    stdin: bytes = b"",
    *,
    limits: Limits | None = None,
    stop: Callable[[], bool] = never,
) -> Outcome:
    """Run `program` within `limits` and return how it ended; `stop` is asked every 50 ms.

    Raises SandboxUnavailable when it could not begin: nothing was done then; SandboxLost when
    nobody knows.
    """
    _check_system()
    held_to = limits or Limits()
    with tempfile.TemporaryDirectory(prefix="acp-sandbox-", ignore_cleanup_errors=True) as scratch:
        order = _order(program, held_to, scratch=scratch)
        with _started(order) as warden:
            carried = _Carriage(warden, stdin, limits=held_to)
            carried.until_end(stop)
            return carried.outcome()


def _check_system() -> None:
    if sys.platform != "linux":
        raise SandboxUnavailable(f"the sandbox is made of Linux; this is {sys.platform}")


def _order(program: Program, limits: Limits, *, scratch: str) -> Order:
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": SCRATCH,
        "TMPDIR": SCRATCH,
        "LANG": "C.UTF-8",
        **program.environment,
    }
    return Order(
        argv=list(program.command),
        environment=environment,
        reads=[os.path.normpath(path) for path in program.reads],
        bounds=Bounds(
            memory_bytes=limits.memory_bytes,
            cpu_ms=limits.cpu_ms,
            wall_ms=limits.wall_ms,
            processes=limits.processes,
            open_files=limits.open_files,
            file_bytes=limits.file_bytes,
            scratch_bytes=limits.scratch_bytes,
            address_space_bytes=limits.address_space_bytes,
        ),
        network=limits.network,
        demanded=sorted(guard.value for guard in limits.demanded),
        scratch=scratch,
        cgroup=os.environ.get(CGROUP_VARIABLE, CGROUP_FIND),
    )


class _Warden:
    """The process, its end of the control pipe, and where its report comes from."""

    def __init__(self, process: subprocess.Popen[bytes], *, control: int, report: int) -> None:
        self.process = process
        self.control = control
        self.report = report

    def ask_to_end(self) -> None:
        if self.control >= 0:
            os.close(self.control)
            self.control = -1


@contextlib.contextmanager
def _started(order: Order) -> Iterator[_Warden]:
    listens, control = os.pipe()
    report, tells = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _BOOT, _ROOT, str(listens), str(tells)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(listens, tells),
            env={},
            start_new_session=True,
        )
    except BaseException:
        os.close(control)
        os.close(report)
        raise
    finally:
        os.close(listens)
        os.close(tells)
    warden = _Warden(process, control=control, report=report)
    try:
        with contextlib.suppress(BrokenPipeError):  # it died at once; its report will be missing
            os.write(control, order.to_json().encode() + b"\n")
        yield warden
    finally:
        warden.ask_to_end()
        _reap(process)
        os.close(report)
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()


def _reap(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_END_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class _Carriage:
    """Bytes in, bytes out, until the warden's report ends."""

    def __init__(self, warden: _Warden, stdin: bytes, *, limits: Limits) -> None:
        self._warden = warden
        self._stdin = memoryview(stdin)
        self._limits = limits
        self._output = bytearray()
        self._errors = bytearray()
        self._errors_bytes = 0
        self._report = bytearray()
        self._too_much = False
        self._selector = selectors.DefaultSelector()

    def until_end(self, stop: Callable[[], bool]) -> None:
        process = self._warden.process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        # The warden reports last, when nothing of the tree is left.
        self._watch(process.stdout, self._read_output)
        self._watch(process.stderr, self._read_errors)
        self._selector.register(self._warden.report, selectors.EVENT_READ, self._read_report)
        os.set_blocking(process.stdin.fileno(), False)
        self._selector.register(process.stdin, selectors.EVENT_WRITE, self._write_input)
        give_up_s = time.monotonic() + self._limits.wall_ms / 1000 + _END_GRACE_S
        while self._selector.get_map():
            for key, _ in self._selector.select(_POLL_S):
                key.data(key.fileobj)
            if self._too_much or stop():
                self._warden.ask_to_end()
            if time.monotonic() > give_up_s:
                self._warden.ask_to_end()
                break
        self._selector.close()

    def _watch(self, pipe: IO[bytes], act: Callable[[IO[bytes]], None]) -> None:
        self._selector.register(pipe, selectors.EVENT_READ, act)

    def _write_input(self, pipe: IO[bytes]) -> None:
        try:
            written = os.write(pipe.fileno(), self._stdin[:_PIECE_BYTES]) if self._stdin else 0
        except BlockingIOError:
            return
        except BrokenPipeError:  # a program need not read all of it
            written = len(self._stdin)
        self._stdin = self._stdin[written:]
        if not self._stdin:
            self._selector.unregister(pipe)
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def _read_output(self, pipe: IO[bytes]) -> None:
        data = self._read(pipe, pipe.fileno())
        self._output += data[: self._limits.output_bytes + 1 - len(self._output)]
        self._too_much |= len(self._output) > self._limits.output_bytes

    def _read_errors(self, pipe: IO[bytes]) -> None:
        data = self._read(pipe, pipe.fileno())
        self._errors_bytes += len(data)
        self._errors = (self._errors + data)[-_ERRORS_KEPT_BYTES:]
        self._too_much |= self._errors_bytes > self._limits.output_bytes

    def _read_report(self, descriptor: int) -> None:
        self._report += self._read(descriptor, descriptor)

    def _read(self, registered: IO[bytes] | int, descriptor: int) -> bytes:
        data = os.read(descriptor, _PIECE_BYTES)
        if not data:
            self._selector.unregister(registered)
        return data

    def outcome(self) -> Outcome:
        if not self._report:
            words = bytes(self._errors).decode(errors="replace").strip()
            raise SandboxLost(f"the sandbox's own process failed: {words or 'no words'}")
        report = Report.from_json(self._report.decode())
        if report.problem:
            raise (SandboxLost if report.lost else SandboxUnavailable)(report.problem)
        limit = Guard.OUTPUT_SIZE if self._too_much else None
        if report.limit:
            limit = Guard(report.limit)
        return Outcome(
            output=bytes(self._output[: self._limits.output_bytes]),
            errors=bytes(self._errors),
            exit_code=report.exit_code,
            signal=report.signal,
            limit=limit,
            stopped=report.stopped and limit is None,
            held=_guards(report.held),
            missing=_guards(report.missing),
            memory_peak_bytes=report.memory_peak_bytes,
            processes_peak=report.processes_peak,
            cpu_ms=report.cpu_ms,
            wall_ms=report.wall_ms,
        )


def _guards(told: Mapping[str, str]) -> dict[Guard, str]:
    return {Guard(name): how for name, how in told.items()}
