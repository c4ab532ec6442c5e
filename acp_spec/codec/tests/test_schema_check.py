"""Schemas that fit, schemas that would hold the gateway, and values that would."""

import json
from collections.abc import Callable
from typing import Any, Final

import pytest

from acp_spec.codec.schema_check import (
    CHECKS_MAX,
    MESSAGE_CHARACTERS_MAX,
    checks_of,
    compile_schema,
    mismatch,
)
from acp_spec.model.payload import Payload, payload

# Processor time of one check; a held gateway would be seconds and minutes.
QUICK_S: Final = 0.5


def schema(stated: object) -> Payload:
    return payload(json.dumps(stated).encode())


def chain(operator: str, length: int, leaf: object) -> dict[str, Any]:
    """Each definition asks the one before twice: 2^length checks of the leaf."""
    named: dict[str, Any] = {"a0": leaf}
    for number in range(1, length):
        before = {"$ref": f"#/$defs/a{number - 1}"}
        named[f"a{number}"] = {operator: [before, before]}
    return {"$defs": named, "$ref": f"#/$defs/a{length - 1}"}


BOMBS: Final[dict[str, Any]] = {
    **{
        f"{name} of {name}": chain(name, 40, {"type": "string"})
        for name in ("anyOf", "allOf", "oneOf")
    },
    "not and if": {
        "$defs": {
            f"a{n}": {"if": {"$ref": f"#/$defs/a{n + 1}"}, "then": {"$ref": f"#/$defs/a{n + 1}"}}
            for n in range(40)
        }
        | {"a40": {"type": "string"}},
        "$ref": "#/$defs/a0",
    },
    "two ways into one part": {
        "anyOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]
    },
    "a name and a pattern": {
        "properties": {"a": {"$ref": "#"}},
        "patternProperties": {"a": {"$ref": "#"}},
    },
    "items and contains": {"items": {"$ref": "#"}, "contains": {"$ref": "#"}},
    "anchors": {
        "$defs": {
            f"a{n}": {
                "$anchor": f"a{n}",
                "allOf": [{"$ref": f"#a{n + 1}"}, {"$ref": f"#a{n + 1}"}],
            }
            for n in range(40)
        }
        | {"a40": {"$anchor": "a40", "type": "string"}},
        "$ref": "#a0",
    },
    "ids": {
        "$id": "http://x.test/root",
        "$defs": {
            f"a{n}": {
                "$id": f"http://x.test/a{n}",
                "allOf": [{"$ref": f"a{n + 1}"}, {"$ref": f"http://x.test/a{n + 1}"}],
            }
            for n in range(40)
        }
        | {"a40": {"$id": "http://x.test/a40", "type": "string"}},
        "$ref": "a0",
    },
    "a long list in a long list": {
        "$defs": {f"a{n}": {"required": [f"k{m}" for m in range(200)]} for n in range(100)},
        "allOf": [{"$ref": f"#/$defs/a{n}"} for n in range(100)],
    },
}
ENDLESS: Final = (
    {"$ref": "#"},
    {"allOf": [{"$ref": "#"}]},
    {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"not": {"$ref": "#/$defs/a"}}}},
)
# Three kinds that hold each other under the same names: one of them at each place.
MUTUAL: Final = {
    "$defs": {
        kind: {
            "properties": {"a": {"$ref": f"#/$defs/{first}"}, "b": {"$ref": f"#/$defs/{second}"}}
        }
        for kind, first, second in (("x", "y", "z"), ("y", "x", "z"), ("z", "x", "y"))
    },
    "$ref": "#/$defs/x",
}
# What people write, with the most checks that one value can meet.
GOOD: Final[list[tuple[Any, int]]] = [
    (True, 1),
    ({}, 1),
    ({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, 3),
    ({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}, 4),
    ({"items": {"$ref": "#"}}, 2),
    ({"$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}}}}}, 1),
    ({"properties": {f"p{n}": {"$ref": "#"} for n in range(300)}}, 302),
    (MUTUAL, 4),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 3),
    ({"$defs": {f"d{n}": {"type": "string"} for n in range(500)}, "$ref": "#/$defs/d7"}, 2),
    ({"enum": list(range(50))}, 51),
]  # fmt: skip


@pytest.mark.parametrize("name", sorted(BOMBS))
def test_a_schema_that_unfolds_without_measure_is_refused_and_not_run(
    name: str, in_cpu_s: Callable[..., object]
) -> None:
    """Eight hundred bytes of them held the gateway for minutes, at the registration already."""
    told = in_cpu_s(QUICK_S, compile_schema, schema(BOMBS[name]))
    assert isinstance(told, str), name
    assert str(CHECKS_MAX) in told


@pytest.mark.parametrize("stated", ENDLESS)
def test_a_schema_that_never_goes_into_the_value_is_refused(stated: object) -> None:
    told = compile_schema(schema(stated))
    assert isinstance(told, str)
    assert "leads back to itself" in told


@pytest.mark.parametrize(("stated", "checks"), GOOD)
def test_what_people_write_is_counted_as_it_is(stated: object, checks: int) -> None:
    assert checks_of(json.dumps(stated).encode()) == checks
    assert not isinstance(compile_schema(schema(stated)), str)


def test_a_fault_is_told_with_its_place() -> None:
    stated = schema({"properties": {"a": {"items": {"type": "string"}}}})
    assert mismatch(stated, b'{"a":["x"]}') == ""
    assert mismatch(stated, b'{"a":["x",1]}').startswith("/a/1: ")
    assert mismatch(schema({"type": "object"}), b"[]").startswith("/: ")


@pytest.mark.parametrize(
    "stated",
    [
        {"items": {"type": "string"}},
        {"anyOf": [{"items": {"type": "string"}}, {"type": "object"}]},
        {"contains": {"type": "string"}},
        {"uniqueItems": True, "items": {"type": "string"}},
    ],
)
def test_a_large_value_that_fits_nowhere_is_refused_at_once(
    stated: object, in_cpu_s: Callable[..., object]
) -> None:
    """A list of a million numbers where texts belong took a minute: every fault was noted."""
    value = json.dumps(list(range(500_000))).encode()
    told = in_cpu_s(QUICK_S, mismatch, schema(stated), value)
    assert isinstance(told, str)
    assert "too large to say where" in told


def test_a_large_value_against_a_costly_schema_is_not_checked(
    in_cpu_s: Callable[..., object],
) -> None:
    stated = schema({"items": {"enum": [str(number) for number in range(5_000)]}})
    told = in_cpu_s(QUICK_S, mismatch, stated, json.dumps(list(range(100_000))).encode())
    assert isinstance(told, str)
    assert "too many to be checked" in told


def test_a_fault_never_repeats_a_long_value() -> None:
    value = json.dumps("x" * 1_000_000).encode()
    assert len(mismatch(schema({"type": "integer"}), value)) <= MESSAGE_CHARACTERS_MAX + 3


@pytest.mark.parametrize("number", ["1e400", "-1e999999999", "9" * 5_000])
def test_a_number_that_no_validator_holds_does_not_fit_any_schema(number: str) -> None:
    """It raised, inside the engine: the session hung until its deadline."""
    stated = schema({"type": "object"})
    assert "cannot be checked" in mismatch(stated, f'{{"n":{number}}}'.encode())
    assert isinstance(compile_schema(payload(f'{{"maximum":{number}}}'.encode())), str)
