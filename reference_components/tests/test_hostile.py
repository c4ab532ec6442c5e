"""What strangers throw at the two HTTP components: they refuse it with a 4xx and go on serving."""

import socket
from collections.abc import Callable

import httpx
import pytest

from reference_components.launcher import Running
from reference_components.tests.wire_requests import execute, reason

POST = b"POST /acp/v1/execute HTTP/1.1\r\nHost: h\r\n"
READS = {
    "ledger": ("ledger.balance", '{"account": "1000000001"}'),
    "cards": ("cards.status", '{"card": "card-0001"}'),
}

# What is sent, and the first line's status that may come back ("" = just closed).
RAW = {
    "too large": (POST + b"Content-Length: 70000\r\n\r\n" + b" " * 70000, {"413"}),
    "too large, in chunks": (
        POST
        + b"Transfer-Encoding: chunked\r\n\r\n"
        + (b"4000\r\n" + b" " * 16384 + b"\r\n") * 5
        + b"0\r\n\r\n",
        {"413"},
    ),
    "no body": (POST + b"Content-Length: 0\r\n\r\n", {"400"}),
    "not JSON": (POST + b"Content-Length: 5\r\n\r\nhello", {"400"}),
    "two values": (POST + b"Content-Length: 4\r\n\r\n{}{}", {"400"}),
    "not UTF-8": (POST + b'Content-Length: 7\r\n\r\n{"a\xff":1}'[:-1] + b"}", {"400"}),
    "an array": (POST + b"Content-Length: 2\r\n\r\n[]", {"400"}),
    "deeply nested": (POST + b"Content-Length: 60000\r\n\r\n" + b"[" * 60000, {"400"}),
    "no length": (POST + b"\r\n", {"400", "411"}),
    "a length that is no number": (POST + b"Content-Length: x\r\n\r\n{}", {"400"}),
    "a negative length": (POST + b"Content-Length: -5\r\n\r\n{}", {"400", ""}),
    "no request line": (b"\r\n\r\n\r\n", {"400", ""}),
    "another protocol": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", {"400", ""}),
    "a head without end": (POST + b"X: " + b"y" * 400_000 + b"\r\n\r\n", {"400", "413", "431", ""}),
}


@pytest.fixture(params=sorted(READS))
def component(request: pytest.FixtureRequest, start: Callable[..., Running]) -> Running:
    return start(request.param)


def send_raw(port: int, data: bytes) -> bytes:
    """Send bytes, end the sending side, and read what comes until the peer closes."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as peer:
        try:
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
            while piece := peer.recv(65536):
                answer += piece
        except (ConnectionResetError, BrokenPipeError):
            pass  # it need not read all of an attack
    return answer


def test_raw_attacks_get_a_4xx_and_leave_it_serving(component: Running) -> None:
    for name, (data, expected) in RAW.items():
        answer = send_raw(component.port, data)
        status = answer.split(b" ")[1].decode() if answer else ""
        assert status in expected, f"{name}: {answer[:300]!r}"
    assert execute(component.url, "r", *READS[component.name]).status_code == 200


def test_a_version_it_does_not_know_is_refused_with_those_it_knows(component: Running) -> None:
    for version, status in (("2.0", 400), ("nonsense", 400), ("1.9", 200), ("1", 200)):
        response = execute(
            component.url, "r", *READS[component.name], headers={"acp-version": version}
        )
        assert response.status_code == status, version
        if status == 400:
            assert reason(response) == (400, "VERSION_UNSUPPORTED", "NONE")
            assert response.json()["error"]["code"] == "FAILED_PRECONDITION"
            assert "1.0" in response.text


def test_an_idempotency_key_must_be_the_call_id(component: Running) -> None:
    other = {"idempotency-key": "other"}
    response = execute(component.url, "r", *READS[component.name], headers=other)
    assert reason(response) == (400, "INVALID_REQUEST", "NONE")


def test_unknown_paths_are_404_and_wrong_methods_405(component: Running) -> None:
    for method, path, status in (
        ("GET", "/", 404),
        ("GET", "/acp/v1", 404),
        ("GET", "/acp/v2/component", 404),
        ("GET", "/acp/v1/component/x", 404),
        ("POST", "/acp/v1/plan", 404),
        ("GET", "/acp/v1/operations/none", 404),
        ("POST", "/acp/v1/calls/x", 404),
        ("GET", "/acp/v1/execute", 405),
        ("DELETE", "/acp/v1/component", 405),
        ("GET", "/acp/v1/calls/x/cancel", 405),
    ):
        response = httpx.request(method, component.url + path)
        assert response.status_code == status, (method, path)
        assert response.json()["error"]["side_effect"] == "NONE"
        assert ("allow" in response.headers) == (status == 405)


@pytest.mark.parametrize(
    "context",
    [
        "null",
        "{}",
        '{"call_id": 7, "attempt": 1, "timeout_ms": 1, "body_digest": "a"}',
        '{"call_id": "c", "attempt": 0, "timeout_ms": 1000, "body_digest": "%s"}' % ("a" * 64),
        '{"call_id": "c", "attempt": 1, "timeout_ms": 0, "body_digest": "%s"}' % ("a" * 64),
        '{"call_id": "c", "attempt": 1, "timeout_ms": "9", "body_digest": "%s"}' % ("a" * 64),
        '{"call_id": "c", "attempt": 1.5, "timeout_ms": 9, "body_digest": "%s"}' % ("a" * 64),
        '{"call_id": "c", "attempt": 1, "timeout_ms": 1000, "body_digest": "short"}',
        '{"call_id": "c", "attempt": 1, "timeout_ms": 1000}',
    ],
)
def test_a_context_that_is_not_one_is_refused(component: Running, context: str) -> None:
    action, arguments = READS[component.name]
    body = f'{{"context": {context}, "action": "{action}", "arguments": {arguments}}}'
    response = httpx.post(f"{component.url}/acp/v1/execute", content=body.encode())
    assert reason(response) == (400, "INVALID_REQUEST", "NONE")
