"""Event streams: numbers without gaps, resume, the end, and clients that leave or stall."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from acp_spec.bindings.errors import error
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.session import OpenSession
from gateway.runtime.principal import LOCAL
from gateway.transports.http_app import HttpApp
from gateway.transports.http_request import Message
from gateway.transports.streaming import Streams, frame
from gateway.transports.tests.asgi import Call
from gateway.transports.tests.in_memory import House


async def session(house: House, *names: str) -> str:
    """A session with these events so far."""
    opened, _ = await house.sessions.open(OpenSession(workflow="w"), LOCAL)
    for name in names:
        house.sessions.happen(opened.session_id, name)
    return opened.session_id


def stream(session_id: str, after: str = "") -> Call:
    headers = {"host": "localhost"}
    if after:
        headers["last-event-id"] = after
    return Call("GET", f"/v1/sessions/{session_id}/events", headers)


def run(story: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(10):
            await story()

    asyncio.run(bounded())


def test_an_ended_session_is_told_whole_and_the_stream_ends(house: House, app: HttpApp) -> None:
    async def story() -> None:
        call = stream(await session(house, "Opened", "CallCreated", "Ended"))
        await call.run(app)
        assert call.answer.status == 200
        assert call.answer.headers["content-type"] == "text/event-stream"
        assert "content-length" not in call.answer.headers
        assert call.answer.body == b"retry: 2000\n\n" + b"".join(
            b"id: %d\nevent: %s\ndata: {}\n\n" % (number, name)
            for number, name in enumerate((b"Opened", b"CallCreated", b"Ended"), 1)
        )
        assert call.answer.is_whole

    run(story)


def test_events_come_as_they_happen_and_heartbeats_in_between(house: House, app: HttpApp) -> None:
    async def story() -> None:
        session_id = await session(house, "Opened")
        call = stream(session_id)
        serving = asyncio.create_task(call.run(app))
        await call.until(b"id: 1\n")
        await call.until(b": alive\n\n")
        house.sessions.happen(session_id, "CallCreated", b'{\n"a": 1}')
        await call.until(b'id: 2\nevent: CallCreated\ndata: { "a": 1}\n\n')
        house.sessions.happen(session_id, "Ended")
        await serving
        assert call.answer.is_whole

    run(story)


def test_a_resume_goes_on_behind_the_last_number_seen(house: House, app: HttpApp) -> None:
    async def story() -> None:
        call = stream(await session(house, "Opened", "CallCreated", "Ended"), after="1")
        await call.run(app)
        assert b"id: 1\n" not in call.answer.body
        assert b"id: 2\n" in call.answer.body

    run(story)


def test_a_resume_behind_the_terminal_event_is_204(house: House, app: HttpApp) -> None:
    async def story() -> None:
        call = stream(await session(house, "Opened", "Ended"), after="2")
        await call.run(app)
        assert (call.answer.status, call.answer.body) == (204, b"")

    run(story)


def test_a_stream_of_a_quiet_session_begins_at_once(house: House, app: HttpApp) -> None:
    async def story() -> None:
        call = stream(await session(house))
        serving = asyncio.create_task(call.run(app))
        await call.until(b"retry: 2000\n\n")
        call.hang_up()
        await serving

    run(story)


def test_events_that_are_no_longer_kept_are_410(house: House, app: HttpApp) -> None:
    async def story() -> None:
        session_id = await session(house, "Opened", "Ended")
        house.sessions.kept[session_id].forgotten = 1
        call = stream(session_id)
        await call.run(app)
        assert (call.answer.status, call.answer.reason) == (410, "EVENTS_EXPIRED")

    run(story)


def test_a_client_that_leaves_ends_its_stream(house: House, app: HttpApp) -> None:
    async def story() -> None:
        call = stream(await session(house, "Opened"))
        serving = asyncio.create_task(call.run(app))
        await call.until(b"id: 1\n")
        call.hang_up()
        await serving
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(story)


def test_a_client_that_takes_nothing_is_cut_off(house: House, app: HttpApp) -> None:
    async def story() -> None:
        call = stream(await session(house, "Opened"))
        cut: list[bool] = []
        call.scope["extensions"] = {"acp.abort": lambda: cut.append(True)}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.body":
                await asyncio.Event().wait()

        async def receive() -> Message:
            if call.changed.is_set():
                await asyncio.Event().wait()
            call.changed.set()
            return {"type": "http.request", "body": b"", "more_body": False}

        await app(call.scope, receive, send)
        assert cut == [True]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(story)


def test_every_stream_ends_when_the_server_drains(house: House, app: HttpApp) -> None:
    async def story() -> None:
        calls = [stream(await session(house, "Opened")) for _ in range(3)]
        serving = [asyncio.create_task(call.run(app)) for call in calls]
        for call in calls:
            await call.until(b"id: 1\n")
        app.streams.close_all()
        await asyncio.gather(*serving)
        assert all(call.answer.is_whole for call in calls)

    run(story)


def test_a_failure_under_way_is_told_in_the_stream_without_a_number(
    house: House, app: HttpApp
) -> None:
    async def story() -> None:
        session_id = await session(house, "Opened")

        async def broken() -> None:
            raise AcpFailure(error(Reason.UNAVAILABLE, "the store failed"))

        call = stream(session_id)
        serving = asyncio.create_task(call.run(app))
        await call.until(b"id: 1\n")
        changed = house.sessions.kept[session_id].changed
        changed.clear = lambda: None  # type: ignore[method-assign]
        changed.wait = broken  # type: ignore[method-assign,assignment]
        changed.set()
        await serving
        last = call.answer.body.rpartition(b"\n\nevent: error\n")[2]
        assert b'"reason":"UNAVAILABLE"' in last
        assert b"id:" not in last

    run(story)


def test_one_stream_too_many_is_503(
    house: House, app: HttpApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        monkeypatch.setattr(app, "streams", Streams(limit=0))
        call = stream(await session(house, "Opened"))
        await call.run(app)
        assert (call.answer.status, call.answer.reason) == (503, "OVERLOADED")
        assert "retry-after" in call.answer.headers

    run(story)


def test_a_head_request_of_a_stream_ends_too(house: House, app: HttpApp) -> None:
    async def story() -> None:
        call = stream(await session(house, "Opened", "Ended"))
        call.scope["method"] = "HEAD"
        await call.run(app)
        assert call.answer.status == 200

    run(story)


def test_a_frame_keeps_its_data_on_one_line() -> None:
    made = frame(7, "Late", data=b'{"a":\r\n "b\\n"}')
    assert made == b'id: 7\nevent: Late\ndata: {"a":   "b\\n"}\n\n'
