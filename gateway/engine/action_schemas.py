"""What a card's schemas say about a call: arguments before it is sent, output before it counts.

Arguments that break `input_schema` are never sent (EXE-006); output that breaks `output_schema` is
a CONTRACT_VIOLATION of the component, whatever it did (EXE-005). What they declare as secret goes
along with the call, so that whoever shows its record masks it, also when the card is long gone.
"""

from acp_spec.bindings.errors import error
from acp_spec.codec.json_text import path_to_pointer
from acp_spec.codec.schema_check import mismatch
from acp_spec.codec.secret_schema import declared_secrets
from acp_spec.model.card import Action
from acp_spec.model.enums import Boundary, SideEffect
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.payload import is_absent


def arguments_problem(action: Action | None, arguments: bytes) -> AcpError | None:
    """Why these arguments may not be sent; None when they may."""
    if action is None or is_absent(action.input_schema):
        return None
    fault = mismatch(action.input_schema, arguments or b"null")
    if not fault:
        return None
    message = f"arguments of {action.name} do not fit its input_schema: {fault}"
    return error(
        Reason.CONTRACT_VIOLATION,
        message,
        side_effect=SideEffect.NONE,
        boundary=Boundary.GATEWAY,
    )


def output_problem(action: Action | None, output: bytes, *, did: SideEffect) -> AcpError | None:
    """Why this output does not count; `did` is what the call did all the same."""
    if action is None or is_absent(action.output_schema):
        return None
    fault = mismatch(action.output_schema, output or b"null")
    if not fault:
        return None
    message = f"the output of {action.name} does not fit its output_schema: {fault}"
    return error(Reason.CONTRACT_VIOLATION, message, side_effect=did, boundary=Boundary.COMPONENT)


def secret_paths(action: Action | None) -> tuple[str, ...]:
    """Where the card's schemas declare secrets: JSON Pointers into `{arguments, output}`."""
    if action is None:
        return ()
    schemas = (("arguments", action.input_schema), ("output", action.output_schema))
    return tuple(
        path_to_pointer((payload, *path))
        for payload, schema in schemas
        for path in sorted(declared_secrets(bytes(schema)))
    )
