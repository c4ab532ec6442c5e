"""An action served by a program: its arguments on standard input, its output from standard output.

    offer_program(component, Program(command=("python3", f"{HERE}/count.py"), reads=(HERE,)),
                  action="text.count", effect=Effect.READ)

Bytes pass as they are. Exit code 0 and one JSON document is a success; a limit is SANDBOX_LIMIT
naming it. What the program wrote to standard error goes to the component's log, never to a caller.
"""

import logging
from typing import Unpack

from acp_spec.bindings.fields import MAX_RESPONSE_BYTES
from acp_spec.model.enums import Effect, SideEffect
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.sandbox import Guard
from acp_spec.sdk.call import Call
from acp_spec.sdk.component import ActionOptions, Component
from acp_spec.sdk.sandbox.capability import demand
from acp_spec.sdk.sandbox.limits import Limits, Program
from acp_spec.sdk.sandbox.outcome import Outcome, SandboxLost, SandboxUnavailable
from acp_spec.sdk.sandbox.supervising import run
from acp_spec.sdk.values import JsonText

log = logging.getLogger(__name__)

_LOGGED_CHARS = 2_000


def offer_program(
    component: Component,
    program: Program,
    *,
    action: str,
    limits: Limits | None = None,
    **options: Unpack[ActionOptions],
) -> None:
    """Offer `action`, served by `program`; the card says how it is held.

    Raises SandboxUnavailable, here and not at the first call, when this system cannot hold what
    `limits` demands.
    """
    held_to = limits or Limits(output_bytes=MAX_RESPONSE_BYTES)
    demand(held_to, who=f"action {action}")
    served = ProgramAction(program, held_to, effect=options.get("effect", Effect.WRITE))
    options["sandbox"] = held_to.on_the_card()
    options.setdefault("description", f"Runs {program.command[0].rpartition('/')[2]} in a sandbox.")
    component.action(action, **options)(served.call)


class ProgramAction:
    """The handler: one run per call, in a thread of the component's pool."""

    def __init__(self, program: Program, limits: Limits, *, effect: Effect) -> None:
        self._program = program
        self._limits = limits
        self._effect = effect

    def call(self, arguments: object, call: Call) -> JsonText:
        """Run it for this call. The caller's deadline and its cancel end the run too."""
        try:
            outcome = run(
                self._for_call(call),
                bytes(call.arguments_text) or b"null",
                limits=self._limits,
                stop=call.cancelled.is_set,
            )
        except SandboxUnavailable as problem:
            raise call.fail(
                Reason.SANDBOX_LIMIT, f"Not started: {problem}", side_effect=SideEffect.NONE
            ) from None
        except SandboxLost as problem:
            log.error("%s in call %s: %s", call.action, call.context.call_id, problem)
            message = "The program's sandbox was lost; nobody knows what the program has done."
            raise call.fail(Reason.INTERNAL, message) from None
        if outcome.succeeded:
            return JsonText(outcome.output.strip())
        raise self._failure(outcome, call)

    def _for_call(self, call: Call) -> Program:
        context = call.context
        named = {
            "ACP_ACTION": call.action,
            "ACP_CALL_ID": context.call_id,
            "ACP_ATTEMPT": str(context.attempt),
            "ACP_SESSION_ID": context.session_id,
            "ACP_TIMEOUT_MS": str(call.time_left_ms()),
        }
        environment = {**named, **self._program.environment}
        return Program(
            command=self._program.command, reads=self._program.reads, environment=environment
        )

    def _failure(self, outcome: Outcome, call: Call) -> AcpFailure:
        errors = outcome.errors.decode(errors="replace")[-_LOGGED_CHARS:]
        log.warning(
            "%s in call %s: exit code %s, signal %s, limit %s; standard error ends with: %s",
            call.action, call.context.call_id, outcome.exit_code, outcome.signal,
            outcome.limit.value if outcome.limit else "none", errors,
        )  # fmt: skip
        if outcome.limit is not None:
            return call.fail(
                Reason.SANDBOX_LIMIT,
                _told(outcome.limit, self._limits),
                details=_details(outcome, self._limits),
            )
        if outcome.stopped:
            return call.fail(Reason.CANCELLED, "The program was stopped: nobody waits any more.")
        how = (
            f"ended by signal {outcome.signal}"
            if outcome.signal is not None
            else f"ended with exit code {outcome.exit_code}"
        )
        return call.fail(Reason.INTERNAL, f"The program {how}; the component's log has its words.")


_FIELD_OF: dict[Guard, tuple[str, str]] = {
    Guard.MEMORY: ("memory_bytes", "bytes of memory"),
    Guard.CPU_TIME: ("cpu_ms", "ms of CPU time"),
    Guard.WALL_CLOCK: ("wall_ms", "ms of time"),
    Guard.PROCESSES: ("processes", "processes and threads"),
    Guard.OUTPUT_SIZE: ("output_bytes", "bytes of output"),
    Guard.OPEN_FILES: ("open_files", "open files in one process"),
    Guard.FILE_SIZE: ("file_bytes", "bytes in one file"),
    Guard.SCRATCH_SIZE: ("scratch_bytes", "bytes of scratch files"),
}


def _allowed(limit: Guard, limits: Limits) -> tuple[int, str]:
    field, unit = _FIELD_OF[limit]
    return getattr(limits, field), unit


def _told(limit: Guard, limits: Limits) -> str:
    number, unit = _allowed(limit, limits)
    return f"The program needed more than {number} {unit} ({limit.value}) and was ended."


def _details(outcome: Outcome, limits: Limits) -> dict[str, object]:
    assert outcome.limit is not None
    return {
        "limit": outcome.limit.value,
        "allowed": _allowed(outcome.limit, limits)[0],
        "memory_peak_bytes": outcome.memory_peak_bytes,
        "cpu_ms": outcome.cpu_ms,
        "wall_ms": outcome.wall_ms,
        "processes_peak": outcome.processes_peak,
    }
