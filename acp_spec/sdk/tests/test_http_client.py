"""What a failure over HTTP proves: that nothing was sent, or that nobody knows."""

import asyncio

import pytest

from acp_spec.model.calls import ErrorBody, ExecuteResponse, Progress
from acp_spec.model.enums import Boundary, SideEffect
from acp_spec.model.errors import Code
from acp_spec.sdk.client import StreamItem
from acp_spec.sdk.http_client import HttpComponentClient
from acp_spec.sdk.tests.scripted import closed_port, response, scripted, unending
from acp_spec.sdk.tests.served import execute

HTML = b"<html><body>502 Bad Gateway</body></html>"


def called(url: str, **stated: object) -> ErrorBody | ExecuteResponse:
    async def call() -> ErrorBody | ExecuteResponse:
        async with HttpComponentClient(url) as client:
            return await client.execute(execute("a", **stated))

    return asyncio.run(call())


def streamed(url: str) -> list[StreamItem]:
    async def call() -> list[StreamItem]:
        async with HttpComponentClient(url) as client:
            return [item async for item in client.execute_stream(execute("a"))]

    return asyncio.run(call())


def test_a_refused_connection_proves_that_nothing_was_sent() -> None:
    answer = called(f"http://127.0.0.1:{closed_port()}")
    assert isinstance(answer, ErrorBody)
    assert answer.error.code is Code.UNAVAILABLE
    assert answer.error.retryable
    assert answer.error.side_effect is SideEffect.NONE


def test_a_tls_failure_proves_that_nothing_was_sent() -> None:
    with scripted(b"this is no TLS\n") as server:
        answer = called(server.url.replace("http:", "https:"))
    assert isinstance(answer, ErrorBody)
    assert answer.error.side_effect is SideEffect.NONE


@pytest.mark.parametrize(
    "said",
    [
        response(HTML, status="502 Bad Gateway", kind="text/html"),
        response(b"", status="503 Service Unavailable"),
        response(b'{"error": 5}', status="500 Internal Server Error"),
    ],
    ids=["proxy page", "no body", "not an ACP error"],
)
def test_an_answer_without_an_acp_body_leaves_the_effect_unknown(said: bytes) -> None:
    with scripted(said) as server:
        answer = called(server.url)
    assert isinstance(answer, ErrorBody)
    assert answer.error.boundary is Boundary.COMPONENT
    assert answer.error.side_effect is SideEffect.UNKNOWN


@pytest.mark.parametrize(
    "said",
    [None, b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{", b"garbage\r\n\r\n"],
    ids=["closed", "cut", "not HTTP"],
)
def test_a_connection_that_breaks_under_the_call_leaves_the_effect_unknown(
    said: bytes | None,
) -> None:
    with scripted(said) as server:
        answer = called(server.url)
    assert isinstance(answer, ErrorBody)
    assert answer.error.side_effect is SideEffect.UNKNOWN
    assert len(server.requests) == 1, "a client never repeats a call by itself"


def test_a_success_that_is_no_response_breaks_the_contract() -> None:
    with scripted(response(b'{"output": {"a": 1, "a": 2}}')) as server:
        answer = called(server.url)
    assert isinstance(answer, ErrorBody)
    assert answer.error.reason == "CONTRACT_VIOLATION"
    assert answer.error.side_effect is SideEffect.UNKNOWN


def test_an_unknown_side_effect_in_a_response_reads_as_the_safest() -> None:
    with scripted(response(b'{"output": 1, "side_effect": "SOMETHING_NEW"}')) as server:
        answer = called(server.url)
    assert isinstance(answer, ExecuteResponse)
    assert answer.side_effect is SideEffect.UNKNOWN


def test_an_endless_answer_is_given_up() -> None:
    async def call() -> ErrorBody | ExecuteResponse:
        async with HttpComponentClient(server.url, max_response_bytes=1000) as client:
            return await client.execute(execute("a"))

    with scripted(response(b'{"output": "' + b"x" * 5000 + b'"}')) as server:
        answer = asyncio.run(call())
    assert isinstance(answer, ErrorBody)
    assert answer.error.reason == "PAYLOAD_TOO_LARGE"
    assert answer.error.side_effect is SideEffect.UNKNOWN


def test_the_request_carries_what_the_context_says_also_in_headers() -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with scripted(response(b'{"output": 1}')) as server:
        called(server.url, call_id="the-call", timeout_ms=1234, traceparent=parent)
    head = server.requests[0].lower()
    for line in (
        b"idempotency-key: the-call",
        b"acp-timeout-ms: 1234",
        b"acp-version: 1.0",
        f"traceparent: {parent}".encode(),
        b"accept-encoding: identity",
    ):
        assert line in head


def test_a_stream_that_ends_before_the_response_leaves_the_effect_unknown() -> None:
    lines = b'{"progress":{"n":1}}\n{"message":"half way"}\n'
    with scripted(unending(lines, kind="application/x-ndjson")) as server:
        *progress, last = streamed(server.url)
    assert [type(item) for item in progress] == [Progress, Progress]
    assert isinstance(last, ErrorBody)
    assert last.error.side_effect is SideEffect.UNKNOWN


def test_what_comes_after_the_response_in_a_stream_is_not_read() -> None:
    lines = b'{"output":1}\n{"progress":2}\n'
    with scripted(unending(lines, kind="application/x-ndjson")) as server:
        items = streamed(server.url)
    assert [type(item) for item in items] == [ExecuteResponse]
