"""The enums and codes that a component's card declares: by action, by pointer into its output.

Reads JSON Schema as far as drift needs it: `enum` and `const` below `properties` and `items`.
"""

import json
from collections.abc import Iterator

from acp_spec.model.card import Card
from gateway.insight.fields import code_of
from gateway.insight.samples import Json
from gateway.insight.taking import escaped

DEPTH_MAX = 32
"""Levels of a schema that are followed."""


def declared(card: Card) -> dict[tuple[str, str], dict[str, tuple[str, ...]]]:
    """Per (component, action) the declared values of each output field that has some."""
    found = {}
    for action in card.actions:
        text = bytes(action.output_schema)
        if text:
            found[card.name, action.name] = dict(_enums(json.loads(text), at="", depth=0))
    return found


def _enums(schema: Json, *, at: str, depth: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    if not isinstance(schema, dict) or depth > DEPTH_MAX:
        return
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list):
        codes = (code_of(one) for one in values if not isinstance(one, dict | list))
        yield at or "/", tuple(codes)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for name, below in properties.items():
            yield from _enums(below, at=f"{at}/{escaped(name)}", depth=depth + 1)
    yield from _enums(schema.get("items"), at=f"{at}/*", depth=depth + 1)
