"""The generated OpenAPI documents as a source of requests, and each request's gRPC twin.

schemathesis draws requests that keep the document and such that break it. A request that has a gRPC
form is asked there too; one that protobuf cannot say (text where a number is) is not.
"""

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

import msgspec
import schemathesis
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.core import NotSet
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation

from acp_spec.bindings.route import Body, Route
from acp_spec.codec import proto
from acp_spec.codec.shapes import Field, Kind, Many, shape_of
from acp_spec.model import gateway_calls as calls
from acp_spec.model.payload import payload

AnyCase: TypeAlias = "Case[Any]"
Operation: TypeAlias = "APIOperation[Any, Any, Any, Any]"
INT64: Final = range(-(2**63), 2**63)


class NotSayable(Exception):
    """The request has no protobuf form."""


@cache
def operations(name: str) -> dict[str, Operation]:
    """Every operation of `component` or `gateway`, by its operationId."""
    with resources.as_file(resources.files("acp_spec") / f"openapi/{name}.v1.json") as path:
        schema = schemathesis.openapi.from_path(path)
    found = [one.ok() for one in schema.get_all_operations() if isinstance(one, Ok)]
    return {one.definition.raw["operationId"]: one for one in found}


def cases(operation: Operation) -> st.SearchStrategy[AnyCase]:
    """Requests that keep the document, and such that break it where that can be."""
    good = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    if not (operation.query or operation.body or operation.headers):
        return good
    return good | operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)


@dataclass(frozen=True, slots=True)
class Wire:
    """A drawn request as it is sent."""

    method: str
    path: str
    headers: dict[str, bytes]
    body: bytes | None


def wire(case: AnyCase) -> Wire:
    """What schemathesis would send: path, query, headers and body put together by its own hand."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sent = case.as_transport_kwargs(base_url="http://x")
        prepared = schemathesis_request(sent)
    path = prepared.url.removeprefix("http://x")
    return Wire(case.method.upper(), path, _headers(prepared.headers), _body(prepared.body))


def schemathesis_request(sent: Mapping[str, Any]) -> Any:
    """The request as `requests` prepares it."""
    import requests

    sendable = {k: v for k, v in sent.items() if k in REQUEST_FIELDS}
    return requests.Request(**sendable).prepare()


REQUEST_FIELDS: Final = ("method", "url", "headers", "params", "data", "json", "cookies", "files")


def _headers(found: Mapping[str, str | bytes]) -> dict[str, bytes]:
    kept = {}
    for name, value in found.items():
        if name.lower() in ("content-length", "user-agent", "transfer-encoding", "accept"):
            continue
        kept[name] = value if isinstance(value, bytes) else value.encode("latin-1", "replace")
    return kept


def _body(found: bytes | str | None) -> bytes | None:
    return found.encode() if isinstance(found, str) else found


def version_of(sent: Wire) -> tuple[tuple[str, str], ...]:
    """The `acp-version` of the request as metadata."""
    version = sent.headers.get("acp-version")
    return () if version is None else (("acp-version", version.decode("latin-1")),)


# ---- the gRPC twin -------------------------------------------------------------------------------


def message_of(route: Route, case: AnyCase) -> bytes:
    """The request as the gRPC message of its route; NotSayable if it has none."""
    path = {name: unquote(str(value)) for name, value in (case.path_parameters or {}).items()}
    values: dict[str, Any] = {**path, **(case.query or {})}
    known = {f.wire: f for f in shape_of(route.rpc_in).fields}
    if route.query and not set(case.query or {}) <= set(route.query):
        raise NotSayable("a parameter that gRPC has not")
    if route.request_body is Body.YAML:
        values["source"] = _source(case.body)
    elif route.request is not None:
        values |= _body_fields(route, case.body)
    values |= _header_fields(route, case)
    return proto.to_proto(_struct(route.rpc_in, {k: v for k, v in values.items() if k in known}))


def _source(body: object) -> str:
    if isinstance(body, NotSet):
        return ""
    if isinstance(body, bytes):
        raise NotSayable("bytes where text is")
    return json.dumps(body)


def _body_fields(route: Route, body: object) -> dict[str, Any]:
    if isinstance(body, NotSet):
        body = {}
    if not isinstance(body, dict):
        raise NotSayable("no object")
    if any(f"{{{name}}}" in route.path for name in body):
        raise NotSayable("an id in the body beside the one in the path")
    whole = [f.wire for f in shape_of(route.rpc_in).fields if f.type is route.request]
    return {whole[0]: body} if whole else body


def _header_fields(route: Route, case: AnyCase) -> dict[str, Any]:
    headers = {k.lower(): v for k, v in (case.headers or {}).items()}
    version = str(headers.get("acp-version", ""))
    if any(headers.get(name) for name in ("prefer", "last-event-id", "authorization")) or not (
        version.isascii() and version.isprintable() and version == version.strip()
    ):
        raise NotSayable("a header that HTTP reads in its own way")
    if route.rpc_in is calls.CompleteOperationRequest:
        raise NotSayable("the token is a header there")
    return {}


def _struct(type_: type[msgspec.Struct], values: Mapping[str, Any]) -> msgspec.Struct:
    """The struct with these values, unchecked, as long as each has the kind of its field."""
    found = {}
    for one in shape_of(type_).fields:
        if one.wire in values:
            found[one.attribute] = _value(one, values[one.wire])
        elif one.required:
            raise NotSayable(f"{one.wire} is missing, which protobuf reads as its zero")
    return type_(**found)


def _value(one: Field, value: Any) -> Any:
    match one.many:
        case Many.OPTIONAL if value is None:
            return None
        case Many.LIST:
            return tuple(_one(one, item) for item in _expect(value, list))
        case Many.MAP:
            entries = _expect(value, dict).items()
            return {_text(key): _one(one, item) for key, item in entries}
        case _:
            return _one(one, value)


def _one(one: Field, value: Any) -> Any:
    match one.kind:
        case Kind.PAYLOAD:
            return payload(json.dumps(value).encode())
        case Kind.TEXT:
            return _text(value)
        case Kind.FLAG:
            return _expect(value, bool)
        case Kind.INTEGER:
            if isinstance(value, bool) or not isinstance(value, int) or value not in INT64:
                raise NotSayable("no int64")
            return value
        case Kind.NUMBER:
            return float(_expect(value, int, float))
        case Kind.ENUM:
            return _member(one.type, value)
        case _:
            return _struct(one.type, _expect(value, dict))


def _member(type_: Any, value: Any) -> Any:
    found = next((m for m in type_ if value in (m.name, m.name.lower())), None)
    if found is None:
        raise NotSayable("no such name")
    return found


def _text(value: Any) -> str:
    text: str = _expect(value, str)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotSayable("half a surrogate pair") from None
    return text


def _expect(value: Any, *types: type) -> Any:
    if isinstance(value, bool) and bool not in types:
        raise NotSayable("another kind")
    if not isinstance(value, types):
        raise NotSayable("another kind")
    return value
