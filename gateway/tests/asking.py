"""One question asked over HTTP and over gRPC of a real process, and what both answers come to.

A question is a row of the route table with the gRPC request message; the HTTP request is made of
the same message. Messages are built, not checked, so that wrong values reach the server.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import quote, urlencode

import grpc
import httpx
import msgspec

from acp_spec.bindings import fields
from acp_spec.bindings.route import Body, Route
from acp_spec.codec import proto
from acp_spec.codec.error_trailer import decode_trailer
from acp_spec.codec.shapes import shape_of
from acp_spec.model import gateway_calls as calls

TIMEOUT_S = 40.0
# A stream that was not refused by now has begun, and waits for its next event.
STREAM_S = 4.0
_OPTIONS = (
    ("grpc.enable_http_proxy", 0),
    ("grpc.enable_retries", 0),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_receive_message_length", -1),
)
Metadata = tuple[tuple[str, str | bytes], ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an answer comes to on either binding: both empty for a success."""

    code: str = ""
    reason: str = ""
    message: str = field(default="", compare=False)
    status: int = field(default=0, compare=False)
    data: bytes = field(default=b"", compare=False)

    @property
    def is_success(self) -> bool:
        return not self.code


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """The HTTP form of a question."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes | None


class Asker:
    """`with Asker(http="127.0.0.1:1", grpc="127.0.0.1:2") as asker: asker.both(route, message)`."""

    def __init__(self, *, http: str, grpc_address: str, token: str = "") -> None:
        self._http = httpx.Client(base_url=f"http://{http}", timeout=TIMEOUT_S, trust_env=False)
        self._channel = grpc.insecure_channel(grpc_address, options=_OPTIONS)
        self._token = token

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()
        self._channel.close()

    def over_http(
        self, route: Route, message: msgspec.Struct, *, token: str | None = None
    ) -> Outcome:
        """The answer to the HTTP form; of a stream only its beginning."""
        request = http_form(route, message)
        authorization = self._authorization(token)
        headers = {**authorization, **request.headers}
        return self.send(request.method, request.path, headers=headers, body=request.body)

    def send(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str | bytes],
        body: bytes | None = None,
    ) -> Outcome:
        """A request as it is written."""
        sent = [(name.encode(), _header(value)) for name, value in headers.items()]
        with self._http.stream(method, path, content=body, headers=sent) as answer:
            if answer.status_code == 200 and "event-stream" in answer.headers["content-type"]:
                return Outcome(status=200)
            text = answer.read()
        if answer.status_code < 400:
            return Outcome(status=answer.status_code, data=text)
        told = msgspec.json.decode(text)["error"]
        return Outcome(told["code"], told["reason"], told["message"], answer.status_code, text)

    def over_grpc(
        self, route: Route, message: msgspec.Struct | bytes, *, token: str | None = None
    ) -> Outcome:
        """The answer to the gRPC form; of a stream only its beginning."""
        data = message if isinstance(message, bytes) else proto.to_proto(message)
        return self.call(route, data, metadata=tuple(self._authorization(token).items()))

    def call(self, route: Route, data: bytes, *, metadata: Metadata = ()) -> Outcome:
        """A message as its bytes are."""
        try:
            if route.streams:
                return self._begun(route, data, metadata=metadata)
            got: bytes = self._channel.unary_unary(route.rpc)(
                data, metadata=metadata, timeout=TIMEOUT_S
            )
            return Outcome(data=got)
        except grpc.RpcError as failed:
            return _told(failed)

    def _begun(self, route: Route, data: bytes, *, metadata: Metadata) -> Outcome:
        stream = self._channel.unary_stream(route.rpc)(data, metadata=metadata, timeout=STREAM_S)
        try:
            first: bytes = next(stream, b"")
        except grpc.RpcError as failed:
            if failed.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                return Outcome()
            raise
        stream.cancel()
        return Outcome(data=first)

    def both(
        self, route: Route, message: msgspec.Struct, *, token: str | None = None
    ) -> tuple[Outcome, Outcome]:
        """HTTP first, gRPC second."""
        return (
            self.over_http(route, message, token=token),
            self.over_grpc(route, message, token=token),
        )

    @contextmanager
    def events(self, session_id: str) -> Iterator[Iterator[str]]:
        """The lines of a session's event stream."""
        path, headers = f"/v1/sessions/{session_id}/events", self._authorization(None)
        with self._http.stream("GET", path, headers=headers) as answer:
            yield answer.iter_lines()

    def is_alive(self, probe: str = "/readyz") -> bool:
        """Whether HTTP and gRPC both still answer."""
        health = self._channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=TIMEOUT_S)
        return bool(health) and self._http.get(probe).status_code == 200

    def _authorization(self, token: str | None) -> dict[str, str]:
        shown = self._token if token is None else token
        return {fields.AUTHORIZATION: f"Bearer {shown}"} if shown else {}


def http_form(route: Route, message: msgspec.Struct) -> HttpRequest:
    """The HTTP request that says what the gRPC message of this route says."""
    values = {f.wire: getattr(message, f.attribute) for f in shape_of(type(message)).fields}
    path = route.path
    for name in [part for part in values if f"{{{part}}}" in path]:
        path = path.replace(f"{{{name}}}", quote(str(values[name]), safe=""))
    query = {name: values[name] for name in route.query if values.get(name)}
    if query:
        path += "?" + urlencode(query)
    headers: dict[str, str] = {}
    if values.get("wait_s"):
        headers[fields.PREFER] = f"wait={values['wait_s']}"
    if values.get("last_event_id"):
        headers[fields.LAST_EVENT_ID] = str(values["last_event_id"])
    if isinstance(message, calls.CompleteOperationRequest):
        headers[fields.AUTHORIZATION] = f"Bearer {message.token}"
    body = _body(route, message)
    if body is not None:
        headers[fields.CONTENT_TYPE] = route.request_body.value
    return HttpRequest(route.method, path, headers, body)


def _header(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1")


def _body(route: Route, message: msgspec.Struct) -> bytes | None:
    if route.request_body is Body.YAML:
        source: str = message.source  # type: ignore[attr-defined]  # all YAML messages have it
        return source.encode()
    if route.request is None:
        return None
    if isinstance(message, route.request):
        return msgspec.json.encode(message)
    for one in shape_of(type(message)).fields:
        if one.type is route.request:
            return msgspec.json.encode(getattr(message, one.attribute))
    names = [f.attribute for f in shape_of(route.request).fields]
    return msgspec.json.encode(route.request(**{name: getattr(message, name) for name in names}))


def _told(failed: grpc.RpcError) -> Outcome:
    trailers = dict(failed.trailing_metadata() or ())
    number, details = failed.code().value[0], failed.details() or ""
    body = decode_trailer(number, details, trailer=trailers.get(fields.ACP_ERROR_TRAILER))
    if fields.ACP_ERROR_TRAILER not in trailers:
        return Outcome(failed.code().name, "", details)
    return Outcome(body.error.code.value, body.error.reason, body.error.message)
