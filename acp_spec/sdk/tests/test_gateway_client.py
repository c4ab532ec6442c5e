"""The gateway's API by its client: typed answers, safe repeats, streams that resume."""

import asyncio
from collections.abc import Callable

import pytest

from acp_spec.bindings.routes import GATEWAY_ROUTES
from acp_spec.model.enums import Boundary, SessionStatus, SideEffect
from acp_spec.model.errors import AcpFailure
from acp_spec.model.gateway_calls import SessionEvent
from acp_spec.model.session import Opened, OpenSession, SessionView
from acp_spec.sdk import gateway_client
from acp_spec.sdk import gateway_questions as questions
from acp_spec.sdk.gateway_client import AsyncGatewayClient, GatewayClient
from acp_spec.sdk.gateway_questions import Question
from acp_spec.sdk.tests.scripted import Scripted, closed_port, response, scripted, unending
from acp_spec.sdk.values import write

VIEW = (
    b'{"session_id":"S","lineage_id":"S.0","workflow":"w@1.0.0","status":"SUCCEEDED",'
    b'"state_version":"1.1.0","output":{"sum":0.10}}'
)
OPENED = b'{"session_id":"S","lineage_id":"S.0","state_version":"1.0.0","status":"RUNNING"}'
BUSY = b'{"error":{"code":"UNAVAILABLE","reason":"OVERLOADED","message":"busy","retryable":true}}'
GONE = b'{"error":{"code":"NOT_FOUND","reason":"NOT_FOUND","message":"no such session"}}'
EVENTS = "text/event-stream"

Ask = Callable[[str, Question[object]], object]
Follow = Callable[[str, int], list[SessionEvent]]


def ask_now(url: str, question: Question[object]) -> object:
    with GatewayClient(url, token="secret") as client:
        return client.ask(question)


def ask_async(url: str, question: Question[object]) -> object:
    async def call() -> object:
        async with AsyncGatewayClient(url, token="secret") as client:
            return await client.ask(question)

    return asyncio.run(call())


def follow_now(url: str, after: int) -> list[SessionEvent]:
    with GatewayClient(url) as client:
        return list(client.follow("S", after=after))


def follow_async(url: str, after: int) -> list[SessionEvent]:
    async def call() -> list[SessionEvent]:
        async with AsyncGatewayClient(url) as client:
            return [event async for event in client.follow("S", after=after)]

    return asyncio.run(call())


@pytest.fixture(params=[ask_now, ask_async], ids=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Ask:
    chosen: Ask = request.param
    return chosen


@pytest.fixture(params=[follow_now, follow_async], ids=["sync", "async"])
def follow(request: pytest.FixtureRequest) -> Follow:
    chosen: Follow = request.param
    return chosen


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_client, "PAUSE_MS", 1)


def open_question(key: str = "", wait_s: int = 0) -> Question[object]:
    asked = OpenSession(workflow="w", input=write({"n": 1}), session_key=key)
    return questions.open_session(asked, wait_s=wait_s)


def lines_of(server: Scripted, index: int = 0) -> bytes:
    return server.requests[index].lower()


def test_the_status_decides_which_type_an_answer_has(ask: Ask) -> None:
    opened, ended = response(OPENED, status="201 Created"), response(VIEW)
    with scripted(opened, ended) as server:
        first = ask(server.url, open_question())
        second = ask(server.url, open_question(wait_s=5))
    assert isinstance(first, Opened)
    assert isinstance(second, SessionView)
    assert second.status is SessionStatus.SUCCEEDED
    assert bytes(second.output) == b'{"sum":0.10}'
    assert b"prefer: wait=5" in lines_of(server, 1)
    assert b"authorization: bearer secret" in lines_of(server)


def test_what_may_be_asked_twice_is_asked_again_when_the_gateway_is_busy(ask: Ask) -> None:
    busy = response(BUSY, status="503 Service Unavailable")
    with scripted(busy, busy, response(VIEW)) as server:
        assert isinstance(ask(server.url, questions.get_session("S")), SessionView)
    assert len(server.requests) == 3


def test_a_connection_that_broke_is_tried_again_only_for_what_may_be_repeated(ask: Ask) -> None:
    with scripted(None, response(OPENED, status="201 Created")) as server:
        with pytest.raises(AcpFailure) as caught:
            ask(server.url, open_question())
        assert len(server.requests) == 1
        assert caught.value.error.side_effect is SideEffect.UNKNOWN
        assert caught.value.error.boundary is Boundary.GATEWAY
        assert isinstance(ask(server.url, open_question(key="k")), Opened)


def test_an_error_that_is_final_is_raised_at_once(ask: Ask) -> None:
    with (
        scripted(response(GONE, status="404 Not Found")) as server,
        pytest.raises(AcpFailure, match="no such session"),
    ):
        ask(server.url, questions.get_session("S"))
    assert len(server.requests) == 1


def test_a_gateway_that_is_not_there_is_unavailable(ask: Ask) -> None:
    with pytest.raises(AcpFailure) as caught:
        ask(f"http://127.0.0.1:{closed_port()}", open_question())
    assert caught.value.error.side_effect is SideEffect.NONE
    assert "did not answer" in caught.value.error.message


def test_a_workflow_travels_as_yaml_and_ids_are_quoted(ask: Ask) -> None:
    stored = b'{"name":"a b","version":"1.0.0"}'
    put = questions.put_workflow("a b/c", "1.0.0", source=b"workflow: x\n")
    with scripted(response(stored, status="201 Created")) as server:
        ask(server.url, put)
    assert server.requests[0].startswith(b"PUT /v1/workflows/a%20b%2Fc/versions/1.0.0 ")
    assert b"content-type: application/yaml" in lines_of(server)
    assert server.requests[0].endswith(b"workflow: x\n")


def test_a_trajectory_is_given_as_the_bytes_that_came(ask: Ask) -> None:
    text = b'{"schema_version": 1, "x": 0.10}'
    with scripted(response(text)) as server:
        assert ask(server.url, questions.get_trajectory("S")) == text


def test_following_resumes_after_the_last_event_until_the_end(follow: Follow) -> None:
    first = unending(b"id: 1\nevent: A\ndata: {}\n\nid: 2\nevent: B\nda", kind=EVENTS)
    second = unending(b"id: 2\nevent: B\ndata: {}\n\nid: 3\nevent: C\ndata: {}\n\n", kind=EVENTS)
    end = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"
    with scripted(first, None, second, end) as server:
        events = follow(server.url, 0)
    assert [(event.id, event.type) for event in events] == [(1, "A"), (2, "B"), (3, "C")]
    assert b"last-event-id" not in lines_of(server)
    assert [b"last-event-id: %d\r\n" % number in lines_of(server, at)
            for at, number in ((1, 1), (2, 1), (3, 3))] == [True, True, True]  # fmt: skip


def test_following_starts_where_it_is_told(follow: Follow) -> None:
    end = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"
    with scripted(end) as server:
        assert follow(server.url, 41) == []
    assert b"last-event-id: 41\r\n" in lines_of(server)


def test_events_no_longer_kept_are_an_error_not_an_end(follow: Follow) -> None:
    expired = b'{"error":{"code":"OUT_OF_RANGE","reason":"EVENTS_EXPIRED","message":"gone"}}'
    with (
        scripted(response(expired, status="410 Gone")) as server,
        pytest.raises(AcpFailure, match="EVENTS_EXPIRED"),
    ):
        follow(server.url, 1)


def test_a_gateway_that_stays_away_is_given_up(follow: Follow) -> None:
    with pytest.raises(AcpFailure, match="did not answer"):
        follow(f"http://127.0.0.1:{closed_port()}", 0)


def test_every_route_of_the_api_can_be_asked_but_those_of_the_house() -> None:
    other_names = {"heartbeat_component": "heartbeat", "list_workflow_versions": "list_workflows"}
    for route in GATEWAY_ROUTES:
        if route.rpc:  # those without are the house's: health, metrics, documents
            assert hasattr(questions, other_names.get(route.name, route.name)), route.name
