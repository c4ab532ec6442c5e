"""What is generated is what is committed, complete, and true of every message."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_spec.bindings.routes import COMPONENT_ROUTES, GATEWAY_ROUTES, messages_over_http
from acp_spec.codec.generate.__main__ import ROOT, write
from acp_spec.codec.json import encode
from acp_spec.codec.shapes import message_name
from acp_spec.codec.tests.strategies import messages

SPEC = ROOT / "acp_spec"
TABLES = {"component": COMPONENT_ROUTES, "gateway": GATEWAY_ROUTES}
BODIES = messages_over_http()


def _document(*path: str) -> Any:
    return json.loads(SPEC.joinpath(*path).read_text(encoding="utf-8"))


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "$ref":
                yield value
            else:
                yield from _references(value)
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)


def _descriptions_missing(schemas: dict[str, Any]) -> list[str]:
    return [
        f"{name}.{field}"
        for name, schema in schemas.items()
        for field, body in schema.get("properties", {}).items()
        if not body.get("description")
    ]


def test_generating_again_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "acp_spec").mkdir()
    write(tmp_path)
    for new in sorted(path for path in tmp_path.rglob("*") if path.is_file()):
        old = ROOT / new.relative_to(tmp_path)
        assert old.read_bytes() == new.read_bytes(), f"run `make gen`: {old.name} is not up to date"


def test_every_body_has_a_schema_and_no_other_file_is_there() -> None:
    names = {message_name(struct) for struct in BODIES} | {"Trajectory"}
    assert {path.stem for path in (SPEC / "schema").glob("[A-Z]*.json")} == names


@pytest.mark.parametrize(
    "path", sorted((SPEC / "schema").glob("[A-Z]*.json")), ids=lambda p: p.stem
)
def test_a_schema_compiles_offline(path: Path) -> None:
    jsonschema_rs.Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("struct", BODIES, ids=message_name)
@given(data=st.data())
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
def test_every_message_is_valid_by_its_schema(
    struct: type[msgspec.Struct], data: st.DataObject
) -> None:
    validator = jsonschema_rs.Draft202012Validator(
        _document("schema", f"{message_name(struct)}.json")
    )
    validator.validate(json.loads(encode(data.draw(messages(struct)))))


@pytest.mark.parametrize("name", TABLES)
def test_every_route_is_documented_with_its_errors(name: str) -> None:
    paths = _document("openapi", f"{name}.v1.json")["paths"]
    for route in TABLES[name]:
        operation = paths[route.path][route.method.lower()]
        assert operation["summary"], route.name
        statuses = {route.status, *route.errors, *(status for status, _ in route.also)}
        assert {int(status) for status in operation["responses"]} == statuses
        in_path = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
        assert in_path == set(re.findall(r"{(\w+)}", route.path))


@pytest.mark.parametrize("name", TABLES)
def test_references_of_an_openapi_document_resolve(name: str) -> None:
    document = _document("openapi", f"{name}.v1.json")
    schemas = document["components"]["schemas"]
    missing = {ref for ref in _references(document) if ref.rpartition("/")[2] not in schemas}
    assert missing == set()


def test_every_field_of_a_components_messages_has_a_description() -> None:
    schemas = _document("openapi", "component.v1.json")["components"]["schemas"]
    assert _descriptions_missing(schemas) == []
