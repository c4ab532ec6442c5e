"""The golden examples are what they say, by the schema, by JSON and by protobuf."""

import json as stdlib_json
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from acp_spec.bindings.routes import messages_over_http
from acp_spec.codec import json, proto
from acp_spec.codec.payloads import payloads_of
from acp_spec.codec.shapes import message_name
from acp_spec.model.errors import AcpFailure

SPEC = Path(__file__).parents[2]
EXAMPLES = SPEC / "examples" / "v1"
TYPES = {message_name(struct): struct for struct in messages_over_http()}
REFUSALS: dict[str, dict[str, str]] = stdlib_json.loads((EXAMPLES / "refusals.json").read_text())
VALID = sorted(EXAMPLES.glob("*/valid-*.json"))
INVALID = sorted(EXAMPLES.glob("*/invalid-*.json"))


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _type(path: Path) -> type[msgspec.Struct]:
    return TYPES[path.parent.name]


def _is_valid(path: Path) -> bool:
    schema = (SPEC / "schema" / f"{path.parent.name}.json").read_text()
    instance: Any = stdlib_json.loads(path.read_text())
    return jsonschema_rs.Draft202012Validator(stdlib_json.loads(schema)).is_valid(instance)


def test_every_message_has_a_valid_and_an_invalid_example() -> None:
    assert {path.parent.name for path in VALID} == set(TYPES)
    assert {path.parent.name for path in INVALID} == set(TYPES)


def test_every_refusal_is_explained() -> None:
    assert {_name(path) for path in INVALID} == set(REFUSALS)


@pytest.mark.parametrize("path", VALID, ids=_name)
def test_a_valid_example_means_the_same_everywhere(path: Path) -> None:
    assert _is_valid(path)
    text = path.read_bytes()
    message = json.decode_request(_type(path), text)
    assert json.decode_response(_type(path), text) == message
    assert json.decode_request(_type(path), json.encode(message)) == message
    over_grpc = proto.decode_request(_type(path), proto.to_proto(message))
    assert over_grpc == message
    for (_, in_json), (_, in_proto) in zip(
        payloads_of(message), payloads_of(over_grpc), strict=True
    ):
        assert in_json == in_proto
        assert in_json in text


@pytest.mark.parametrize("path", INVALID, ids=_name)
def test_an_invalid_example_is_refused_where_it_is_wrong(path: Path) -> None:
    expected = REFUSALS[_name(path)]
    with pytest.raises(AcpFailure) as caught:
        json.decode_request(_type(path), path.read_bytes())
    assert caught.value.error.reason == "INVALID_REQUEST"
    assert caught.value.error.message.startswith(f"invalid request: {expected['where']}")
    if expected["found_by"] == "schema":
        assert not _is_valid(path)
