"""JSON Schema of actions: compiled once, offline, with patterns that run in linear time.

A `$ref` to the network or a pattern with look-around is refused when the component is declared, not
when a call arrives. Messages name the place in the arguments as a JSON Pointer.
"""

from collections.abc import Callable

import jsonschema_rs

from acp_spec.codec.schema_check import (
    CHECKS_MAX,
    MESSAGE_CHARACTERS_MAX,
    TOLD_WORK_MAX,
    checks_of,
)
from acp_spec.model.payload import Payload, is_absent
from acp_spec.sdk.values import read

Validator = Callable[[object], str | None]
"""Takes a value, returns what is wrong with it for a person, or None."""

_PATTERNS = jsonschema_rs.RegexOptions(size_limit=1 << 20, dfa_size_limit=1 << 20)


def compile_schema(schema: Payload, what: str) -> Validator | None:
    """The check for `schema`, or None when there is none. Raises ValueError for a bad schema."""
    if is_absent(schema):
        return None
    stated = read(schema)
    if not isinstance(stated, dict | bool):
        raise ValueError(f"the {what} must be an object or a boolean")
    try:
        checks = checks_of(bytes(schema))
        if checks > CHECKS_MAX:
            raise ValueError(f"it makes over {CHECKS_MAX} checks of one value")
        compiled = jsonschema_rs.validator_for(stated, offline=True, pattern_options=_PATTERNS)
    except (ValueError, jsonschema_rs.ValidationError) as error:
        raise ValueError(f"the {what} cannot be used: {error}") from error

    def check(value: object) -> str | None:
        if compiled.is_valid(value):
            return None
        if _size(value, most=TOLD_WORK_MAX) * checks > TOLD_WORK_MAX:
            return "the value does not fit, and is too large to say where"
        try:
            compiled.validate(value)
        except jsonschema_rs.ValidationError as first:
            place = "".join(f"/{part}" for part in first.instance_path)
            return f"{first.message[:MESSAGE_CHARACTERS_MAX]} (at {place or 'the top'})"
        return None

    return check


def _size(value: object, *, most: int) -> int:
    """How many values there are, counted up to `most`."""
    count, waiting = 0, [value]
    while waiting and count < most:
        one = waiting.pop()
        count += 1
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return count
