"""Names that travel beside the body: HTTP headers, gRPC metadata, media types, versions.

gRPC metadata keys are the lower-case header names. The body is authoritative; only
`idempotency-key` and `acp-version` are compared with it.
"""

import enum
from typing import Final

from acp_spec.model.enums import SAFEST
from acp_spec.model.errors import Code

VERSION: Final = "1.0"
"""What this code speaks; an absent `acp-version` means this too."""

SUPPORTED_VERSIONS: Final = ("1.0",)

ACP_VERSION: Final = "acp-version"
ACP_TIMEOUT_MS: Final = "acp-timeout-ms"
IDEMPOTENCY_KEY: Final = "idempotency-key"
TRACEPARENT: Final = "traceparent"
TRACESTATE: Final = "tracestate"
BAGGAGE: Final = "baggage"
AUTHORIZATION: Final = "authorization"
ACP_ERROR_TRAILER: Final = "acp-error-bin"
CONTENT_TYPE: Final = "content-type"
PREFER: Final = "prefer"
RETRY_AFTER: Final = "retry-after"
LAST_EVENT_ID: Final = "last-event-id"

TRACE_FIELDS: Final = (TRACEPARENT, TRACESTATE, BAGGAGE)

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
EVENT_STREAM: Final = "text/event-stream"
YAML_TYPES: Final = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml")
WRITE_TYPES: Final = (JSON, *YAML_TYPES)
"""Content types a write to the gateway may have; anything else is 415."""

MAX_RESPONSE_BYTES: Final = 4 * 1024 * 1024
"""Default limit of one message, both ways, where no card or setting says another."""

ERROR_TRAILER_BYTES: Final = 4 * 1024
"""gRPC peers cut header blocks around 8 KiB, so that the error keeps half of that."""

SETTLED_CALL_BYTES: Final = 64 * 1024
"""An item of `calls[]` over this is cut, with `truncated`."""

MAX_VIA: Final = 8

READS_AS: Final[dict[type[enum.Enum], enum.Enum]] = {**SAFEST, Code: Code.UNKNOWN}
"""What an unknown enum value in a *response* reads as; not listed = CONTRACT_VIOLATION."""


def major_of(version: str) -> str:
    """The part of a version that must be known: `2.3` -> `2`."""
    return version.partition(".")[0]


def is_supported(version: str) -> bool:
    """Whether a peer's `acp-version` can be answered: minor versions only add."""
    return not version or major_of(version) in {major_of(known) for known in SUPPORTED_VERSIONS}
