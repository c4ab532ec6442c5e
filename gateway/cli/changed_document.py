"""A document of parameters with single fields changed, as `acp governance set` writes it."""

import msgspec

from acp_spec.bindings.errors import invalid_request


def changed_document(
    parameters: msgspec.Struct, changes: list[str], *, expected_version: int, note: str
) -> bytes:
    """The whole change as JSON text. Raises AcpFailure for what is no NAME=VALUE."""
    document: dict[str, object] = msgspec.to_builtins(parameters)
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals or not name:
            raise invalid_request(f"{change!r}: write NAME=VALUE, such as breaker.open_ms=2000")
        try:
            _set(document, name.split("."), value=msgspec.json.decode(value))
        except msgspec.DecodeError:
            raise invalid_request(f"{change!r}: the value must be JSON (text in quotes)") from None
    body = {"expected_version": expected_version, "parameters": document, "note": note}
    return msgspec.json.encode(body)


def _set(document: dict[str, object], path: list[str], *, value: object) -> None:
    """Set one leaf; objects on the way are made. None takes it out, so that its default holds."""
    place = document
    for name in path[:-1]:
        inner = place.get(name)
        if not isinstance(inner, dict):
            inner = place[name] = {}
        place = inner
    if value is None:
        place.pop(path[-1], None)
    else:
        place[path[-1]] = value
