"""The gateway's `/v1` from Python, sync and async: `client.ask(questions.get_session(id))`.

Both clients carry the same questions (`gateway_questions`) and differ only in waiting. An answer
that is an error raises `AcpFailure`. A request is repeated only when that is safe: nothing was
sent, or the question is repeatable and the failure passing. `follow` resumes an event stream where
it broke.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar, cast

import httpx

from acp_spec.bindings import fields
from acp_spec.bindings.errors import error
from acp_spec.codec import json
from acp_spec.model.enums import Boundary, SideEffect
from acp_spec.model.errors import AcpError, AcpFailure, Reason
from acp_spec.model.gateway_calls import SessionEvent
from acp_spec.sdk import gateway_questions as questions
from acp_spec.sdk.event_stream import EventReader, Frame, error_text
from acp_spec.sdk.gateway_questions import Question
from acp_spec.sdk.http_client import transport_error

T = TypeVar("T")

TIMEOUT_S = 30.0
"""For an answer, beyond what the question itself asks the gateway to wait."""
STREAM_SILENCE_S = 60.0
"""The gateway sends a heartbeat well within this; longer silence is a dead connection."""
TRIES = 3
PAUSE_MS = 200
"""Before the second try; doubled for the third, unless the answer says `retry_after_ms`."""
FRUITLESS_RESUMES_MAX = 5
ANSWER_BYTES_MAX = 64 * 1024 * 1024
"""A trajectory holds a whole session; more than this is read from the archive instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    body: bytes


class GatewayClient:
    """`with GatewayClient("http://127.0.0.1:8080", token=...) as client`."""

    def __init__(
        self, url: str, *, token: str | None = None, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._client = httpx.Client(
            base_url=url,
            headers=_headers(token),
            transport=transport,
            trust_env=False,
            timeout=TIMEOUT_S,
        )

    def ask(self, question: Question[T]) -> T:
        """The typed answer; raises AcpFailure."""
        for tried in range(1, TRIES + 1):
            outcome = self._try(question)
            if isinstance(outcome, Answer):
                return read_answer(question, outcome)
            pause_ms = pause_before_retry(question, outcome, tried=tried)
            if pause_ms is None:
                raise AcpFailure(outcome)
            time.sleep(pause_ms / 1000)
        raise AssertionError("the last try raises or returns")

    def follow(self, session_id: str, *, after: int = 0) -> Iterator[SessionEvent]:
        """Events from `after` on until the session's last one, over as many connections as it
        takes.
        """
        resume = Resume(after=after)
        while not resume.ended:
            reader = EventReader()
            try:
                sent = resume.request(self._client, session_id)
                with contextlib.closing(self._client.send(sent, stream=True)) as response:
                    if response.status_code != 200:
                        resume.refused(response.status_code, response.read())
                        continue
                    for chunk in response.iter_raw():
                        for frame in reader.feed(chunk):
                            yield from resume.take(frame)
            except httpx.HTTPError as failed:
                resume.broken(failed)
            time.sleep(resume.pause_ms(reader) / 1000)

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _try(self, question: Question[T]) -> Answer | AcpError:
        try:
            response = self._client.send(_request(self._client, question))
        except httpx.HTTPError as failed:
            return unreachable(failed)
        return judged(question, response.status_code, body=response.content)


class AsyncGatewayClient:
    """The same with `await` and `async for`."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._client = httpx.AsyncClient(
            base_url=url,
            headers=_headers(token),
            transport=transport,
            trust_env=False,
            timeout=TIMEOUT_S,
        )

    async def ask(self, question: Question[T]) -> T:
        """The typed answer; raises AcpFailure."""
        for tried in range(1, TRIES + 1):
            outcome = await self._try(question)
            if isinstance(outcome, Answer):
                return read_answer(question, outcome)
            pause_ms = pause_before_retry(question, outcome, tried=tried)
            if pause_ms is None:
                raise AcpFailure(outcome)
            await asyncio.sleep(pause_ms / 1000)
        raise AssertionError("the last try raises or returns")

    async def follow(self, session_id: str, *, after: int = 0) -> AsyncIterator[SessionEvent]:
        """Events from `after` on until the session's last one, over as many connections as it
        takes.
        """
        resume = Resume(after=after)
        while not resume.ended:
            reader = EventReader()
            try:
                sent = resume.request(self._client, session_id)
                response = await self._client.send(sent, stream=True)
                async with contextlib.aclosing(response):
                    if response.status_code != 200:
                        resume.refused(response.status_code, await response.aread())
                        continue
                    async for chunk in response.aiter_raw():
                        for frame in reader.feed(chunk):
                            for event in resume.take(frame):
                                yield event
            except httpx.HTTPError as failed:
                resume.broken(failed)
            await asyncio.sleep(resume.pause_ms(reader) / 1000)

    async def close(self) -> None:
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _try(self, question: Question[T]) -> Answer | AcpError:
        try:
            response = await self._client.send(_request(self._client, question))
        except httpx.HTTPError as failed:
            return unreachable(failed)
        return judged(question, response.status_code, body=response.content)


class Resume:
    """Where an event stream stands, whatever the client waits with. Decides; does no IO."""

    def __init__(self, *, after: int) -> None:
        self.ended = False
        self._last = after
        self._fruitless = 0

    def request(self, client: httpx.Client | httpx.AsyncClient, session_id: str) -> httpx.Request:
        headers = {"accept": fields.EVENT_STREAM}
        if self._last:
            headers[fields.LAST_EVENT_ID] = str(self._last)
        return client.build_request(
            "GET",
            questions.stream_events(session_id).path,
            headers=headers,
            timeout=httpx.Timeout(TIMEOUT_S, read=STREAM_SILENCE_S),
        )

    def take(self, frame: Frame) -> Iterator[SessionEvent]:
        """The new event in this frame; raises AcpFailure for an error frame."""
        failed = error_text(frame)
        if failed is not None:
            raise AcpFailure(json.decode_error(500, failed).error)
        if not frame.id.isdecimal() or int(frame.id) <= self._last:
            return
        self._last = int(frame.id)
        self._fruitless = 0
        yield frame.event()

    def refused(self, status: int, body: bytes) -> None:
        """Any status but 200: 204 is the end, a passing failure is tried again, others raise."""
        if status == 204:
            self.ended = True
            return
        failed = json.decode_error(status, body).error
        if not failed.retryable:
            raise AcpFailure(failed)
        self._count(failed)

    def broken(self, failed: httpx.HTTPError) -> None:
        self._count(unreachable(failed))

    def pause_ms(self, reader: EventReader) -> int:
        """Before connecting again: at once after a stream that brought something."""
        if self.ended or not self._fruitless:
            return 0
        return reader.retry_ms or PAUSE_MS * 2**self._fruitless

    def _count(self, failed: AcpError) -> None:
        self._fruitless += 1
        if self._fruitless > FRUITLESS_RESUMES_MAX:
            raise AcpFailure(failed)


def read_answer(question: Question[T], answer: Answer) -> T:
    """The body as the type that its status promises."""
    kind = question.answers[answer.status]
    if kind is None:
        return cast("T", None)
    if kind is bytes:
        return cast("T", answer.body)
    return cast("T", json.decode_response(kind, answer.body, max_bytes=ANSWER_BYTES_MAX))


def judged(question: Question[T], status: int, *, body: bytes) -> Answer | AcpError:
    """An answer if the question expects this status, else the error that came."""
    if status in question.answers:
        return Answer(status=status, body=body)
    return json.decode_error(status, body).error


def pause_before_retry(question: Question[T], failed: AcpError, *, tried: int) -> int | None:
    """Milliseconds to wait before asking again, or None when that is not safe or pointless."""
    if tried >= TRIES or not failed.retryable:
        return None
    if not question.repeatable and failed.side_effect is not SideEffect.NONE:
        return None
    return failed.retry_after_ms or PAUSE_MS * 2 ** (tried - 1)


def unreachable(failed: httpx.HTTPError) -> AcpError:
    """A transport failure between this client and the gateway."""
    known = transport_error(failed)
    reason = Reason(known.reason)
    message = f"The gateway did not answer: {type(failed).__name__}: {failed}".rstrip(": ")
    return error(reason, message, side_effect=known.side_effect, boundary=Boundary.GATEWAY)


def _headers(token: str | None) -> dict[str, str]:
    headers = {fields.ACP_VERSION: fields.VERSION, "accept-encoding": "identity"}
    if token:
        headers[fields.AUTHORIZATION] = f"Bearer {token}"
    return headers


def _request(client: httpx.Client | httpx.AsyncClient, question: Question[T]) -> httpx.Request:
    headers = dict(question.headers)
    if question.body:
        headers[fields.CONTENT_TYPE] = question.media_type
    return client.build_request(
        question.method,
        question.path,
        content=question.body or None,
        params=question.query or None,
        headers=headers,
        timeout=TIMEOUT_S + question.wait_s,
    )
