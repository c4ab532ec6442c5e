"""Run a program that is not trusted, within limits, and serve an action by one.

What holds, by which mechanism, and what none of it protects from: docs/sandbox.md. Needs Linux;
what a system cannot give is refused, not left out.
"""

from acp_spec.model.sandbox import Guard
from acp_spec.sdk.sandbox.capability import Capability, capabilities
from acp_spec.sdk.sandbox.limits import ALWAYS, Limits, Program
from acp_spec.sdk.sandbox.outcome import Outcome, SandboxLost, SandboxUnavailable
from acp_spec.sdk.sandbox.serving_programs import offer_program
from acp_spec.sdk.sandbox.supervising import run

__all__ = [
    "ALWAYS",
    "Capability",
    "Guard",
    "Limits",
    "Outcome",
    "Program",
    "SandboxLost",
    "SandboxUnavailable",
    "capabilities",
    "offer_program",
    "run",
]
