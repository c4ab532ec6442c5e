"""What this system can hold a program by: found out by running one, not by looking for files."""

from functools import cache

import msgspec

from acp_spec.model.sandbox import Guard
from acp_spec.sdk.sandbox.limits import Limits, Program
from acp_spec.sdk.sandbox.outcome import SandboxLost, SandboxUnavailable
from acp_spec.sdk.sandbox.supervising import run

_NOTHING = Program(command=("/bin/true",))
_ANY_ADDRESS_SPACE = 1 << 46
_PROBE_MS = 10_000

ADVICE: dict[Guard, str] = {
    Guard.MEMORY_EXACT: "delegate a control group with the memory controller to the component:"
    " under systemd Delegate=yes with DelegateSubgroup=main, else name one in ACP_SANDBOX_CGROUP",
    Guard.NETWORK: "allow user namespaces (or run as root), or a kernel with seccomp filters",
    Guard.READ_ONLY_FILES: "allow mount namespaces: run as root with CAP_SYS_ADMIN, or allow user"
    " namespaces",
    Guard.SCRATCH_SIZE: "comes with READ_ONLY_FILES",
    Guard.OWN_USER: "run as root, or allow user namespaces",
    Guard.SYSTEM_CALLS: "a kernel with seccomp filters, on x86-64 or 64-bit ARM",
}


class Capability(msgspec.Struct, frozen=True, kw_only=True):
    """One guard on this system: by which mechanism it holds, or why it does not."""

    guard: Guard
    held: bool
    mechanism: str = ""
    why: str = ""

    @property
    def advice(self) -> str:
        return "" if self.held else ADVICE.get(self.guard, "run on Linux")


@cache
def capabilities() -> tuple[Capability, ...]:
    """Every guard, in their order. Asked once per process; the answer stands until its end."""
    everything = frozenset(Guard)
    limits = Limits(waived=everything, wall_ms=_PROBE_MS, address_space_bytes=_ANY_ADDRESS_SPACE)
    try:
        outcome = run(_NOTHING, limits=limits)
    except (SandboxLost, SandboxUnavailable) as problem:
        return tuple(Capability(guard=guard, held=False, why=str(problem)) for guard in Guard)
    return tuple(
        Capability(
            guard=guard,
            held=guard in outcome.held,
            mechanism=outcome.held.get(guard, ""),
            why="" if guard in outcome.held else outcome.missing.get(guard, "not offered here"),
        )
        for guard in Guard
    )


def demand(limits: Limits, *, who: str) -> None:
    """Raise SandboxUnavailable, naming every guard that is demanded and cannot be held here."""
    found = {one.guard: one for one in capabilities()}
    lacking = [
        found[guard] for guard in Guard if guard in limits.demanded and not found[guard].held
    ]
    if lacking:
        reasons = "; ".join(f"{one.guard.value}: {one.why} ({one.advice})" for one in lacking)
        raise SandboxUnavailable(f"{who} demands what this system cannot hold. {reasons}")
