"""What a message that cannot be read becomes: one error for a caller, another for a peer.

A wrong request is the caller's fault and nothing was done; a wrong response is the peer's, and what
it did is unknown. The text says where in the message and what is wrong there.
"""

import enum
from typing import Final

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.codec.scan import PayloadProblem, PayloadRefused
from acp_spec.codec.shapes import Kind, shape_of
from acp_spec.model.enums import Boundary, SideEffect
from acp_spec.model.errors import AcpFailure, Reason


class Direction(enum.Enum):
    """Which way a message goes; the value names it in error texts."""

    REQUEST = "request"
    RESPONSE = "response"


_AT: Final = " - at `"


def wrong(direction: Direction, text: str) -> AcpFailure:
    """The failure for a message that breaks its contract; `text` says what and where."""
    if direction is Direction.REQUEST:
        return AcpFailure(error(Reason.INVALID_REQUEST, f"invalid request: {text}"))
    return AcpFailure(
        error(
            Reason.CONTRACT_VIOLATION,
            f"the component's response breaks the contract: {text}",
            side_effect=SideEffect.UNKNOWN,
            boundary=Boundary.COMPONENT,
        )
    )


def refused(direction: Direction, problem: PayloadRefused, *, path: str = "") -> AcpFailure:
    """The failure for text that the scanner refused; too many bytes is a reason of its own."""
    where = f"{path}: " if path else ""
    if problem.problem is not PayloadProblem.TOO_LARGE:
        return wrong(direction, f"{where}{problem}")
    if direction is Direction.REQUEST:
        return AcpFailure(error(Reason.PAYLOAD_TOO_LARGE, f"{where}{problem}"))
    return AcpFailure(
        error(
            Reason.PAYLOAD_TOO_LARGE,
            f"the component's response: {where}{problem}",
            side_effect=SideEffect.UNKNOWN,
            boundary=Boundary.COMPONENT,
        )
    )


def explain(struct: type[msgspec.Struct], said: msgspec.ValidationError) -> str:
    """msgspec's sentence with the place first, and with the known values of an enum."""
    what, _, path = str(said).partition(_AT)
    path = path.rstrip("`") or "$"
    known = _known_values(struct, path) if what.startswith("Invalid enum value") else ""
    return f"{path}: {what}{known}"


def _known_values(struct: type[msgspec.Struct], path: str) -> str:
    """`; known: A, B` for the enum that stands at this path of the type."""
    current = struct
    names = path.replace("[...]", "").removeprefix("$").strip(".").split(".")
    for name in names:
        field = next((f for f in shape_of(current).fields if f.wire == name), None)
        if field is None:
            return ""
        if field.kind is Kind.ENUM and issubclass(field.type, enum.Enum):
            return f"; known: {', '.join(member.name for member in field.type)}"
        if field.kind is not Kind.STRUCT:
            return ""
        current = field.type
    return ""
