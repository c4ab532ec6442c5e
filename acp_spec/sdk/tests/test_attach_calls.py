"""The component's side of the calls stream, without a stream: once each, kept, never too many."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import msgspec
import pytest

from acp_spec.codec import frames
from acp_spec.model.attach import AttemptKey, Key
from acp_spec.model.calls import ErrorBody, ExecuteRequest, ExecuteResponse, PlanRequest
from acp_spec.model.card import Limits
from acp_spec.model.enums import Effect, Idempotency, StepRole
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.payload import payload
from acp_spec.sdk.attach_calls import AttachedCalls
from acp_spec.sdk.attach_outbox import Outbox
from acp_spec.sdk.component import Component
from acp_spec.sdk.dispatch import Dispatcher
from acp_spec.sdk.testing import build_context, settle_loop

KEY = ("call", 1)


@dataclass
class Stage:
    """A component behind `calls`; `said` is what the gateway would have received."""

    calls: AttachedCalls
    ran: list[str]
    gate: asyncio.Event
    outbox: Outbox = field(default_factory=lambda: Outbox(of_gateway=False))

    def connect(self) -> None:
        self.outbox = Outbox(of_gateway=False)
        self.calls.connected(self.outbox)

    def send(self, *sent: bytes) -> None:
        self.calls.receive(frames.gateway_calls(sent))

    async def said(self) -> list[frames.FromComponent]:
        await settle_loop()
        data = frames.component_calls(self.outbox.drain())
        return frames.read_component_calls(data, max_bytes=1 << 20)[1]

    async def answers(self) -> dict[Key, object]:
        return {f.key: f.answer for f in await self.said() if isinstance(f, frames.Answered)}

    async def credits(self) -> int:
        return sum(f.count for f in await self.said() if isinstance(f, frames.Granted))


def tell(
    story: Callable[[Stage], Awaitable[None]],
    *,
    concurrency: int = 3,
    kept_answers_max: int = 1_000,
    max_request_bytes: int = 0,
) -> None:
    async def run() -> None:
        limits = Limits(max_concurrency=concurrency, max_request_bytes=max_request_bytes)
        component = Component("c", "1.0.0", limits=limits)
        ran: list[str] = []
        gate = asyncio.Event()

        @component.action("do", effect=Effect.WRITE, idempotency=Idempotency.NONE)
        async def do(arguments: object, call: object) -> object:
            ran.append(call.context.call_id)  # type: ignore[attr-defined]
            await gate.wait()
            return arguments

        dispatcher = Dispatcher(component)
        calls = AttachedCalls(dispatcher, kept_answers_max=kept_answers_max)
        try:
            await story(Stage(calls, ran, gate))
        finally:
            gate.set()
            await settle_loop()
            dispatcher.close()

    asyncio.run(run())


def call(key: Key = KEY, *, arguments: bytes = b"1", attempt: int = 0) -> bytes:
    return frames.call_frame(body(key, arguments=arguments, attempt=attempt))


def body(key: Key = KEY, *, arguments: bytes = b"1", attempt: int = 0) -> bytes:
    context = build_context("do", call_id=key[0], attempt=attempt or key[1])
    request = ExecuteRequest(context=context, action="do", arguments=payload(arguments))
    return frames.call_body(key, StepRole.EXECUTE, request=request)


def test_the_first_grant_is_the_cards_concurrency_less_what_is_worked_on() -> None:
    async def story(stage: Stage) -> None:
        stage.connect()
        assert await stage.credits() == 3
        stage.send(call())
        stage.connect()
        assert await stage.credits() == 2
        stage.gate.set()
        assert await stage.credits() == 1

    tell(story)


def test_a_key_that_is_worked_on_or_answered_is_not_run_again() -> None:
    async def story(stage: Stage) -> None:
        stage.connect()
        stage.send(call(), call())
        await settle_loop()
        stage.gate.set()
        assert list(await stage.answers()) == [KEY]
        stage.send(call())
        assert await stage.answers() == {}
        assert stage.ran == ["call"]

    tell(story)


def test_answers_are_sent_again_until_they_are_acknowledged() -> None:
    async def story(stage: Stage) -> None:
        stage.gate.set()
        stage.connect()
        stage.send(call())
        assert list(await stage.answers()) == [KEY]
        assert stage.calls.finished_unacked == (AttemptKey(call_id="call", attempt=1),)
        stage.calls.disconnected()
        stage.connect()
        assert list(await stage.answers()) == [KEY]
        stage.send(frames.ack_frame(KEY), frames.ack_frame(("unknown", 1)))
        stage.connect()
        assert await stage.answers() == {}
        await stage.calls.all_acknowledged()

    tell(story)


def test_while_too_much_is_kept_no_credit_is_given_and_nothing_is_dropped() -> None:
    async def story(stage: Stage) -> None:
        stage.gate.set()
        stage.connect()
        await stage.credits()
        stage.send(call(("a", 1)), call(("b", 1)))
        said = await stage.said()
        granted = sum(f.count for f in said if isinstance(f, frames.Granted))
        assert granted == 1, "the second answer made two, which is as many as may be kept"
        assert len(stage.calls.finished_unacked) == 2
        stage.send(frames.ack_frame(("a", 1)))
        assert await stage.credits() == 1

    tell(story, kept_answers_max=2)


def test_what_finishes_without_a_stream_is_kept() -> None:
    async def story(stage: Stage) -> None:
        stage.connect()
        stage.send(call())
        stage.calls.disconnected()
        stage.gate.set()
        await settle_loop()
        assert stage.calls.in_flight == ()
        stage.connect()
        assert list(await stage.answers()) == [KEY]

    tell(story)


def reason_of(answer: object) -> str:
    assert isinstance(answer, ErrorBody), answer
    return answer.error.reason


def test_a_call_in_pieces_is_run_and_one_over_the_limit_fails_alone() -> None:
    async def story(stage: Stage) -> None:
        stage.gate.set()
        stage.connect()
        fine, huge = body(("fine", 1)), body(("huge", 1), arguments=b'"%b"' % (b"x" * 5_000))
        for key, whole in ((("fine", 1), fine), (("huge", 1), huge)):
            half = len(whole) // 2
            first = frames.Piece(key, 0, False, whole[:half])
            last = frames.Piece(key, 1, True, whole[half:])
            stage.send(*(frames.piece_frame(p, of_gateway=True) for p in (first, last)))
        answers = await stage.answers()
        assert isinstance(answers["fine", 1], ExecuteResponse)
        assert reason_of(answers["huge", 1]) == Reason.PAYLOAD_TOO_LARGE.value
        assert stage.ran == ["fine"]

    tell(story, max_request_bytes=2_000)


WRONG = {
    "another attempt in the context": call(attempt=2),
    "no request at all": frames.call_frame(b"\x0a\x08\x0a\x04call\x10\x01"),
    "arguments that are no JSON": call(arguments=b"{"),
    "a role it does not have": frames.call_frame(
        frames.call_body(
            KEY, StepRole.PLAN, request=PlanRequest(context=build_context("", call_id="call"))
        )
    ),
}


@pytest.mark.parametrize("frame", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_call_is_answered_with_an_error_and_not_run(frame: bytes) -> None:
    async def story(stage: Stage) -> None:
        stage.gate.set()
        stage.connect()
        stage.send(frame)
        assert reason_of((await stage.answers())[KEY])
        assert stage.ran == []

    tell(story)


def test_bytes_that_are_no_message_end_the_stream() -> None:
    async def story(stage: Stage) -> None:
        stage.connect()
        with pytest.raises(AcpFailure, match="GatewayCalls"):
            stage.calls.receive(b"\xff\xff")

    tell(story)


def test_an_answer_that_cannot_be_written_is_an_error_of_unknown_effect() -> None:
    async def story(stage: Stage) -> None:
        component = Component("odd", "1.0.0")

        @component.action("do", effect=Effect.WRITE, idempotency=Idempotency.NONE)
        async def do(arguments: object, call: object) -> object:
            return msgspec.structs.replace(ExecuteResponse(), retries_spent=2**70)

        dispatcher = Dispatcher(component)
        calls = AttachedCalls(dispatcher)
        odd = Stage(calls, [], asyncio.Event())
        odd.connect()
        odd.send(call())
        assert reason_of((await odd.answers())[KEY]) == Reason.INTERNAL.value
        dispatcher.close()

    tell(story)
