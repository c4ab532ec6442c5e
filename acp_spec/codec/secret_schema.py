"""What a JSON Schema calls secret: `writeOnly: true`, `format: password` or `x-acp-secret: true`.

Whoever keeps or shows a payload for people masks what stands there. Local references are followed.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Final

import msgspec

KeyPath = tuple[str, ...]
"""Keys from the root to a value, levels of arrays left out; `*` is any key."""

ANY_KEY: Final = "*"
SCHEMA_DEPTH_MAX: Final = 32
PATHS_MAX: Final = 256
"""A schema that names itself in many places has paths without end."""

SCHEMAS_KEPT: Final = 4_096
"""Every call asks what its card's schemas declare, and they are always the same."""

_WORDS: Final = (b"writeOnly", b"password", b"x-acp-secret", b"\\u")
"""A schema without any of them is not even read: most have none."""

Schema = dict[str, object]


def declared_secrets(schema: bytes) -> frozenset[KeyPath]:
    """The paths of a schema's secrets; what is no schema declares none."""
    if not any(word in schema for word in _WORDS):
        return frozenset()
    return _declared_by(schema)


@lru_cache(SCHEMAS_KEPT)
def _declared_by(schema: bytes) -> frozenset[KeyPath]:
    try:
        root: object = msgspec.json.decode(schema)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return frozenset()
    if not isinstance(root, dict):
        return frozenset()
    return frozenset(islice(_declared(root, root, keys=()), PATHS_MAX))


def _declared(node: object, root: Schema, *, keys: KeyPath, seen: int = 0) -> Iterator[KeyPath]:
    if not isinstance(node, dict) or seen > SCHEMA_DEPTH_MAX:
        return
    if (
        node.get("writeOnly") is True
        or node.get("x-acp-secret") is True
        or node.get("format") == "password"
    ):
        yield keys
        return
    for below, part in _parts(node, root):
        yield from _declared(part, root, keys=(*keys, *below), seen=seen + 1)


def _parts(node: Schema, root: Schema) -> Iterator[tuple[KeyPath, object]]:
    """The schemas inside one, each with the key that leads there; none where it is the same."""
    for name in ("properties", "patternProperties"):
        properties = node.get(name)
        if isinstance(properties, dict):
            for key, part in properties.items():
                yield (str(key) if name == "properties" else ANY_KEY,), part
    yield (ANY_KEY,), node.get("additionalProperties")
    for name in ("items", "contains", "if", "then", "else"):
        yield (), node.get(name)
    for name in ("allOf", "anyOf", "oneOf", "prefixItems"):
        parts = node.get(name)
        for part in parts if isinstance(parts, list) else ():
            yield (), part
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        yield (), _at(root, reference)


def _at(root: Schema, reference: str) -> object:
    found: object = root
    for part in reference.removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    return found


def path_of(pointer: str) -> tuple[str, KeyPath]:
    """The payload and the path of a JSON Pointer that records carry: `/arguments/card/pin`."""
    payload, *path = (
        part.replace("~1", "/").replace("~0", "~") for part in pointer.removeprefix("/").split("/")
    )
    return payload, tuple(path)
