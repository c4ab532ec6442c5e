"""JSON Schema of actions: compiled offline, with linear-time patterns, kept by their text.

A `$ref` to the network or a pattern with look-around does not compile. What is wrong is one
sentence with the place as a JSON Pointer. No payload is re-encoded.
"""

import functools
from typing import Final

import jsonschema_rs
import msgspec

from acp_spec.model.payload import Payload

SCHEMA_BYTES_MAX: Final = 256 * 1024
"""A schema is written by people; compiling is slow per byte and holds the caller."""

# As many actions as a busy gateway has; another one is compiled again (35 us and up).
KEPT_MAX: Final = 4_096
_PATTERNS: Final = jsonschema_rs.RegexOptions(size_limit=1 << 20, dfa_size_limit=1 << 20)


def compile_schema(text: Payload) -> "jsonschema_rs.Validator | str":
    """The validator of a schema, or why there is none."""
    return _compiled(bytes(text))


@functools.lru_cache(maxsize=KEPT_MAX)
def _compiled(text: bytes) -> "jsonschema_rs.Validator | str":
    if len(text) > SCHEMA_BYTES_MAX:
        return f"the schema is over {SCHEMA_BYTES_MAX} bytes"
    try:
        return jsonschema_rs.validator_for(text.decode(), offline=True, pattern_options=_PATTERNS)
    except (ValueError, jsonschema_rs.ValidationError) as error:
        first = str(error).partition("\n")[0]
        if first.endswith('is not a "regex"'):
            first += " here: no lookaround, no back-references, and not too large"
        return first


def mismatch(schema: Payload, value: bytes) -> str:
    """What of `value` does not fit, with its place; empty when it fits or the schema is none."""
    validator = _compiled(bytes(schema))
    if isinstance(validator, str):
        return ""
    plain = msgspec.json.decode(value)
    if validator.is_valid(plain):
        return ""
    first = next(iter(validator.iter_errors(plain)))
    where = "".join(f"/{part}" for part in first.instance_path)
    return f"{where or '/'}: {first.message}"
