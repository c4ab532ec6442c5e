"""`python -m reference_components.scratchpad` serves until SIGTERM."""

from acp_spec.sdk.sandbox import SandboxUnavailable
from reference_components.scratchpad.component import make

try:
    component = make()
except SandboxUnavailable as problem:
    raise SystemExit(f"scratchpad does not start: {problem}") from None
component.run()
