"""JSON Schema of actions: compiled offline, with linear-time patterns, kept by their text.

A `$ref` to the network or a pattern with look-around does not compile, nor does a schema that
unfolds into too many checks: a validator cannot be stopped once it runs. What is wrong is one
sentence with the place as a JSON Pointer. No payload is re-encoded.
"""

import functools
from dataclasses import dataclass
from typing import Final

import jsonschema_rs
import msgspec

from acp_spec.codec.scan import MAX_NESTING
from acp_spec.codec.schema_cost import Endless, checks_of_one_value
from acp_spec.model.payload import Payload

SCHEMA_BYTES_MAX: Final = 256 * 1024
"""A schema is written by people; compiling is slow per byte and holds the caller."""

CHECKS_MAX: Final = 10_000
"""Checks of one value. Schemas that people write make tens; a kilobyte of references to references
makes millions.
"""

# Values times checks, each about 20 ns: a second at most, for what nobody sends by mistake.
WORK_MAX: Final = 50_000_000
# Up to here it is told where a value does not fit: the validator notes every fault, each 50 us.
TOLD_WORK_MAX: Final = 20_000
MESSAGE_CHARACTERS_MAX: Final = 300
# As many actions as a busy gateway has; another one is compiled again (35 us and up).
KEPT_MAX: Final = 4_096
_PATTERNS: Final = jsonschema_rs.RegexOptions(size_limit=1 << 20, dfa_size_limit=1 << 20)


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A validator, and how many checks it can make of one value."""

    validator: jsonschema_rs.Validator
    checks: int


def compile_schema(text: Payload) -> "jsonschema_rs.Validator | str":
    """The validator of a schema, or why there is none."""
    compiled = _compiled(bytes(text))
    return compiled if isinstance(compiled, str) else compiled.validator


@functools.lru_cache(maxsize=KEPT_MAX)
def _compiled(text: bytes) -> _Compiled | str:
    if len(text) > SCHEMA_BYTES_MAX:
        return f"the schema is over {SCHEMA_BYTES_MAX} bytes"
    try:
        checks = checks_of(text)
        if checks > CHECKS_MAX:
            return f"with its references followed it makes over {CHECKS_MAX} checks of one value"
        validator = jsonschema_rs.validator_for(
            text.decode(), offline=True, pattern_options=_PATTERNS
        )
    except (ValueError, jsonschema_rs.ValidationError) as error:
        first = str(error).partition("\n")[0]
        if first.endswith('is not a "regex"'):
            first += " here: no lookaround, no back-references, and not too large"
        return _cut(first)
    return _Compiled(validator, checks)


def checks_of(text: bytes) -> int:
    """How many checks a schema can make of one value. Raises ValueError when it has no end."""
    try:
        return checks_of_one_value(msgspec.json.decode(text), levels=MAX_NESTING, most=CHECKS_MAX)
    except (Endless, msgspec.DecodeError) as problem:
        raise ValueError(str(problem)) from None


def mismatch(schema: Payload, value: bytes) -> str:
    """What of `value` does not fit, with its place; empty when it fits or the schema is none."""
    compiled = _compiled(bytes(schema))
    if isinstance(compiled, str):
        return ""
    # Commas and brackets inside texts count as well: an overestimate that costs nothing.
    values = 1 + value.count(b",") + value.count(b"[") + value.count(b"{")
    if values * compiled.checks > WORK_MAX:
        return f"it has some {values} values, too many to be checked against this schema"
    try:
        plain = msgspec.json.decode(value)
    except msgspec.DecodeError as problem:  # JSON has numbers that no validator can hold
        return f"it cannot be checked: {problem}"
    if compiled.validator.is_valid(plain):
        return ""
    return first_fault(compiled.validator, plain, work=values * compiled.checks)


def first_fault(validator: jsonschema_rs.Validator, value: object, *, work: int) -> str:
    """The place and the fault of a value that does not fit; of much work only that it does not."""
    if work > TOLD_WORK_MAX:
        return "it does not fit, and is too large to say where"
    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as first:
        where = "".join(f"/{part}" for part in first.instance_path)
        return _cut(f"{where or '/'}: {first.message}")
    return ""


def _cut(text: str) -> str:
    if len(text) <= MESSAGE_CHARACTERS_MAX:
        return text
    return text[:MESSAGE_CHARACTERS_MAX] + "..."
