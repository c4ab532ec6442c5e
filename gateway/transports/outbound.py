"""What every call to a component carries beside its body, and what a connection may use.

The body is authoritative; headers and metadata are copies, so a value that could break them is left
out. A credential is a name here; its value exists only in the bytes that are sent.
"""

from collections.abc import Callable
from dataclasses import dataclass

from acp_spec.bindings.fields import (
    ACP_VERSION,
    AUTHORIZATION,
    BAGGAGE,
    IDEMPOTENCY_KEY,
    MAX_RESPONSE_BYTES,
    TRACEPARENT,
    TRACESTATE,
    VERSION,
)
from acp_spec.codec.json import encode
from acp_spec.model.context import Context
from gateway.config.credentials import CredentialUnavailable

Credentials = Callable[[str], str]
"""`credentials(name)` gives the secret's value; raises CredentialUnavailable."""

Fields = list[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions:
    """What a connection may use. `max_request_bytes` is the card's (0: it states none)."""

    max_response_bytes: int = MAX_RESPONSE_BYTES
    max_request_bytes: int = 0
    connect_timeout_ms: int = 1_000
    connections_max: int = 256
    auth: str = ""


def no_credentials(name: str) -> str:
    """Credentials of a gateway that has none."""
    raise CredentialUnavailable(f"no credential {name!r}: name it in outbound.credentials")


def authorization(name: str, credentials: Credentials) -> Fields:
    """The Authorization field of a named credential; no name, no field.

    A secret that already begins with a scheme (`Basic ...`) is sent as it is, else as a bearer.
    """
    if not name:
        return []
    try:
        value = credentials(name)
    except KeyError:
        raise CredentialUnavailable(
            f"there is no credential {name!r}: name it in outbound.credentials"
        ) from None
    if not is_field_value(value):
        raise CredentialUnavailable(f"credential {name!r} holds characters no header may have")
    return [(AUTHORIZATION, value if " " in value else f"Bearer {value}")]


def call_fields(context: Context) -> Fields:
    """The fields of one call, without authorization and time."""
    fields = [(IDEMPOTENCY_KEY, context.call_id)]
    if context.traceparent:
        fields.append((TRACEPARENT, context.traceparent))
    if context.tracestate:
        fields.append((TRACESTATE, context.tracestate))
    if context.baggage:
        fields.append((BAGGAGE, context.baggage))
    if is_field_value("".join([value for _, value in fields])):
        return fields
    return [(name, value) for name, value in fields if is_field_value(value)]


VERSION_FIELD = (ACP_VERSION, VERSION)


def is_field_value(value: str) -> bool:
    """Whether a header or metadata entry may hold it: printable ASCII, no line end."""
    return value.isascii() and value.isprintable()


def with_context(context: Context, body: bytes) -> bytes:
    """The request: `body`'s object with `context` as its first member, all other bytes as given."""
    rest = body.lstrip()[1:]
    comma = b"" if rest[:1] != b'"' and rest.lstrip()[:1] == b"}" else b","
    return b'{"context":%b%b%b' % (encode(context), comma, rest)
