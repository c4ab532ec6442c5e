"""The HTTP front by its bytes: statuses, headers, media types, sizes, and what is no HTTP at
all.
"""

import contextlib
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from acp_spec.codec import json as acp_json
from acp_spec.model.card import Limits
from acp_spec.sdk.call import Call
from acp_spec.sdk.component import Component
from acp_spec.sdk.serving import Server
from acp_spec.sdk.tests.served import Background, execute
from acp_spec.sdk.values import JsonText

JSON = "content-type: application/json"


def component() -> Component:
    made = Component("raw", "1.0.0", limits=Limits(max_request_bytes=4000))

    @made.action("echo")
    def echo(arguments: object, call: Call) -> object:
        return JsonText(call.arguments_text)

    @made.action("wait")
    def wait(arguments: object, call: Call) -> object:
        raise call.fail("LATER", "Not now.", retry_after_ms=1500)

    @made.action("span")
    def span(arguments: object, call: Call) -> object:
        return call.context.traceparent

    return made


class Answered:
    def __init__(self, data: bytes) -> None:
        head, _, self.body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        self.status = int(first.split()[1]) if first.startswith("HTTP/") else 0
        self.headers = dict(line.lower().split(": ", 1) for line in lines)

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)["error"]
        return found


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Background(component()) as open_server:
        yield open_server


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    with Background(component(), token="right") as open_server:
        yield open_server


def sent(server: Server, data: bytes) -> Answered:
    """Send raw bytes and read until the server closes."""
    assert server.http is not None
    with socket.create_connection((server.http.host, server.http.port), timeout=10) as connection:
        connection.sendall(data)
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(65536):
                received += part
    return Answered(received)


def asked(
    server: Server, target: str, *, headers: tuple[str, ...] = (), body: bytes = b""
) -> Answered:
    """`target` is method and path: `GET /acp/v1/health`."""
    lines = [f"{target} HTTP/1.1", "host: x", "connection: close", *headers]
    if body:
        lines.append(f"content-length: {len(body)}")
    return sent(server, "\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def posted(server: Server, body: bytes, *headers: str) -> Answered:
    return asked(server, "POST /acp/v1/execute", headers=(JSON, *headers), body=body)


def valid(action: str = "echo", arguments: object = None) -> bytes:
    return acp_json.encode(execute(action, arguments))


@pytest.mark.parametrize(
    "path", ["/", "/acp", "/acp/v1", "/acp/v1/plan/", "/acp/v2/plan", "/%2e%2e"]
)
def test_an_unknown_path_is_an_acp_404(server: Server, path: str) -> None:
    answer = asked(server, f"GET {path}")
    assert answer.status == 404
    assert answer.error["reason"] == "NOT_FOUND"
    assert "/acp/v1/execute" in answer.error["message"]


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/acp/v1/execute", "post"),
        ("DELETE", "/acp/v1/component", "get"),
        ("POST", "/acp/v1/operations/x", "get"),
        ("GET", "/acp/v1/calls/x/cancel", "post"),
    ],
)
def test_a_wrong_method_is_a_405_that_names_the_right_one(
    server: Server, method: str, path: str, allowed: str
) -> None:
    answer = asked(server, f"{method} {path}")
    assert answer.status == 405
    assert answer.headers["allow"] == allowed


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", ""])
def test_a_body_that_is_not_called_json_is_a_415(server: Server, kind: str) -> None:
    headers = (f"content-type: {kind}",) if kind else ()
    answer = asked(server, "POST /acp/v1/execute", headers=headers, body=valid())
    assert answer.status == 415
    assert answer.error["side_effect"] == "NONE"


def test_a_charset_beside_the_media_type_is_no_obstacle(server: Server) -> None:
    kind = "content-type: Application/JSON; charset=utf-8"
    answer = asked(server, "POST /acp/v1/execute", headers=(kind,), body=valid())
    assert answer.status == 200


def test_a_body_over_the_limit_is_a_413_before_it_is_read(server: Server) -> None:
    data = b"POST /acp/v1/execute HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    answer = sent(server, data + b"content-length: 99999999\r\n\r\n")
    assert answer.status == 413
    assert answer.error["reason"] == "PAYLOAD_TOO_LARGE"


def test_a_chunked_body_over_the_limit_is_a_413(server: Server) -> None:
    head = b"POST /acp/v1/execute HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
    head += b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    chunk = b"%x\r\n" % 3000 + b"x" * 3000 + b"\r\n"
    assert sent(server, head + chunk * 2 + b"0\r\n\r\n").status == 413


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"\xff\xfe",
        b'{"context": {}, "action": "echo"}',
        b'{"action": "echo"}',
        valid().replace(b'"attempt":1', b'"attempt":1,"attempt":1'),
        valid().replace(b'"attempt":1', b'"attempt":"1"'),
        valid().replace(b'"arguments":{}', b'"arguments":{"a":1,"a":2}'),
        valid().replace(b'"arguments":{}', b'"arguments":"\\ud800"'),
        valid().replace(b'"arguments":{}', b'"arguments":' + b"[" * 60 + b"]" * 60),
        valid().replace(b'"arguments":{}', b'"arguments":NaN'),
        valid() + b"x",
    ],
    ids=range(14),
)
def test_a_bad_body_is_a_400_that_says_what_is_wrong(server: Server, body: bytes) -> None:
    answer = posted(server, body)
    assert answer.status == 400
    assert answer.error["reason"] == "INVALID_REQUEST"
    assert answer.error["side_effect"] == "NONE"
    assert len(answer.error["message"]) > 20


@pytest.mark.parametrize(
    "data",
    [b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"POST /acp/v1/plan HTTP/9.9\r\n\r\n"],
    ids=["binary", "no path", "no such version"],
)
def test_what_is_no_http_is_refused_and_the_server_lives(server: Server, data: bytes) -> None:
    assert sent(server, data).status in (0, 400)


def test_a_header_that_contradicts_the_body_is_refused(server: Server) -> None:
    answer = posted(server, valid(), "idempotency-key: another")
    assert answer.status == 400
    assert "idempotency-key" in answer.error["message"]


@pytest.mark.parametrize(
    ("version", "status", "reason"),
    [
        ("1.0", 200, ""),
        ("1.7", 200, ""),
        ("2.0", 400, "VERSION_UNSUPPORTED"),
        ("one", 400, "INVALID_REQUEST"),
    ],
)
def test_the_version_is_negotiated_by_its_major_number(
    server: Server, version: str, status: int, reason: str
) -> None:
    answer = posted(server, valid(), f"acp-version: {version}")
    assert answer.status == status
    if reason:
        assert answer.error["reason"] == reason
        assert "1.0" in answer.error["message"]


def test_a_valid_traceparent_header_is_the_parent_and_an_invalid_one_is_not(server: Server) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    for stated, expected in ((parent, parent), ("00-0-0-00", "")):
        answer = posted(server, valid("span"), f"traceparent: {stated}")
        assert json.loads(answer.body)["output"] == expected


def test_a_time_in_the_header_that_is_no_number_is_refused(server: Server) -> None:
    assert posted(server, valid(), "acp-timeout-ms: soon").status == 400


def test_retry_after_is_told_in_whole_seconds_too(server: Server) -> None:
    answer = posted(server, valid("wait"))
    assert answer.error["retry_after_ms"] == 1500
    assert answer.headers["retry-after"] == "2"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], 401),
        (["authorization: Bearer wrong"], 401),
        (["authorization: Basic right"], 401),
        (["authorization: bearer right"], 200),
    ],
)
def test_with_a_token_every_route_wants_it(
    guarded: Server, headers: list[str], status: int
) -> None:
    answer = asked(guarded, "GET /acp/v1/component", headers=tuple(headers))
    assert answer.status == status
    if status == 401:
        assert answer.headers["www-authenticate"] == "bearer"
        assert answer.error["side_effect"] == "NONE"


def test_cancel_takes_the_call_from_the_path_with_or_without_a_body(server: Server) -> None:
    target = "POST /acp/v1/calls/a%2Fb%20c/cancel"
    for body in (b"", b'{"attempt": 1}', b'{"call_id": "a/b c"}'):
        answer = asked(server, target, headers=(JSON,), body=body)
        assert json.loads(answer.body)["state"] == "UNKNOWN_CALL"
    other = asked(server, target, headers=(JSON,), body=b'{"call_id": "other"}')
    assert other.status == 400


def test_an_operation_nobody_knows_is_a_404(server: Server) -> None:
    answer = asked(server, "GET /acp/v1/operations/never")
    assert answer.status == 404
    assert answer.error["reason"] == "NOT_FOUND"


def test_a_stream_is_ndjson_and_its_status_is_that_of_a_failure_known_at_once(
    server: Server,
) -> None:
    accept = "accept: application/x-ndjson"
    good, bad = posted(server, valid(), accept), posted(server, valid("nope"), accept)
    assert (good.status, bad.status) == (200, 404)
    for answer in (good, bad):
        assert answer.headers["content-type"] == "application/x-ndjson"
