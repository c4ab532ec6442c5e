"""How one run ended: what the program wrote, which limit it met, what it used."""

from collections.abc import Mapping
from dataclasses import dataclass

from acp_spec.model.sandbox import Guard


class SandboxUnavailable(Exception):
    """The program was not started: this system cannot hold what is demanded, or has no program.

    Nothing was done. The message says which guard is missing and why.
    """


class SandboxLost(Exception):
    """The sandbox's own process died, or its room did: nobody knows what the program has done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One run of a program that did begin.

    `limit`: the guard that ended it. `stopped`: somebody else did (a cancel, the caller's
    deadline). Neither: it ended by itself, with `exit_code` or by a `signal`. `errors` is the end
    of what it wrote to standard error.
    """

    output: bytes = b""
    errors: bytes = b""
    exit_code: int | None = None
    signal: int | None = None
    limit: Guard | None = None
    stopped: bool = False
    held: Mapping[Guard, str]
    missing: Mapping[Guard, str]
    memory_peak_bytes: int = 0
    processes_peak: int = 0
    cpu_ms: int = 0
    wall_ms: int = 0

    @property
    def succeeded(self) -> bool:
        return self.exit_code == 0 and self.limit is None and not self.stopped
