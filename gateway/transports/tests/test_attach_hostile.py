"""What a slow or hostile attached peer cannot do: hurt another call, or the gateway."""

import asyncio
import contextlib

import grpc
import pytest

from acp_spec.bindings.errors import error
from acp_spec.codec import frames
from acp_spec.model.attach import AttachHeartbeat, Hello
from acp_spec.model.calls import ErrorBody, ExecuteRequest, ExecuteResponse, PlanResponse, Progress
from acp_spec.model.enums import Effect, SideEffect, StepRole
from acp_spec.model.errors import Reason
from acp_spec.model.payload import payload
from acp_spec.sdk.attach import CONTROL_RPC
from gateway.config.settings import Settings
from gateway.transports.attach_hub import AttachOptions
from gateway.transports.tests.attach_house import (
    NUMBERS,
    Answers,
    answer,
    attach_house,
    call,
    called,
    raw_peer,
    send,
    served_card,
    until,
)
from gateway.transports.tests.listening import settings
from gateway.transports.tests.raw_peer import PATIENT_MS, context, run


def test_an_answer_after_its_time_is_told_as_late_once() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.attach()
            await until(lambda: house.connection().credits == 4)  # so it is written at once
            answers = Answers()
            late = {"timeout_ms": 60, "late_grace_ms": PATIENT_MS}
            send(house, answers, call("c", effect=Effect.WRITE, **late))
            (got,) = await called(peer, 1)
            await answers.wait(1)
            assert answers.of("c").error.reason == Reason.TIMEOUT.value  # type: ignore[union-attr]
            await peer.send(answer(got.key), answer(got.key))
            assert len(await peer.acknowledged(2)) == 2
            assert [late for _, _, late in answers.all] == [False, True]

    run(story())


def test_a_stream_that_is_being_written_to_ends_with_its_reason() -> None:
    """A write that was cut off half-way kept gRPC from sending the status: nothing ended."""

    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.attach()
            (link,) = house.hub.links()
            # Far more than the transport takes from one message to the next: a write is under way.
            link.calls.put_body(("large", 1), b"x" * 32_000_000)
            assert await peer.calls.read() is not grpc.aio.EOF
            assert not link.calls.is_empty
            link.end(error(Reason.ALREADY_EXISTS, "this instance has attached anew"))
            async with asyncio.timeout(5):
                refused = await peer.refusal(peer.calls)
            assert refused.reason == Reason.ALREADY_EXISTS.value

    run(story())


def test_unknown_calls_and_duplicate_answers_are_acknowledged_and_dropped() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.attach()
            answers = Answers()
            send(house, answers, call("c"))
            (got,) = await called(peer, 1)
            unknown = answer(("never sent", 3))
            await peer.send(unknown, answer(got.key), answer(got.key, b'"another"'), unknown)
            assert len(await peer.acknowledged(4)) == 4
            assert len(answers.all) == 1
            assert NUMBERS in bytes(answers.of("c").response)

    run(story())


def test_a_peer_that_speaks_and_never_reads_is_cut() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.attach()
            beats = [frames.component_control_frame(AttachHeartbeat())] * 2_000
            with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                while house.hub.attached:
                    await peer.control.write(frames.control(beats))
            assert (await peer.refusal()).reason == Reason.OVERLOADED.value

    run(story())


def test_progress_is_no_answer() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.attach()
            answers = Answers()
            send(house, answers, call("c"))
            (got,) = await called(peer, 1)
            progress = frames.answer_body(got.key, Progress(message="half"))
            await peer.send(frames.answer_frame(progress), answer(got.key))
            await answers.wait(1)
            assert answers.of("c").error is None

    run(story())


WRONG = {
    "payload that is no JSON": ExecuteResponse(output=payload(b'{"a":')),
    "answer of another role": PlanResponse(),
}


@pytest.mark.parametrize("said", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_answer_fails_its_call_alone(said: ExecuteResponse | PlanResponse) -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.attach()
            answers = Answers()
            send(house, answers, call("bad", effect=Effect.WRITE), call("good"))
            await called(peer, 2)
            await peer.send(
                frames.answer_frame(frames.answer_body(("bad", 1), said)), answer(("good", 1))
            )
            await answers.wait(2)
            bad = answers.of("bad")
            assert bad.error is not None
            assert bad.error.reason == Reason.CONTRACT_VIOLATION.value
            assert bad.side_effect is SideEffect.UNKNOWN
            assert answers.of("good").error is None

    run(story())


def test_an_error_keeps_what_the_component_states() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.attach()
            answers = Answers()
            send(house, answers, call("c", effect=Effect.WRITE))
            (got,) = await called(peer, 1)
            refused = error(Reason.OVERLOADED, "not now", side_effect=SideEffect.NONE)
            said = frames.answer_body(got.key, ErrorBody(error=refused, retries_spent=1))
            await peer.send(frames.answer_frame(said))
            await answers.wait(1)
            assert answers.of("c").error == refused
            assert answers.of("c").retries_spent == 1

    run(story())


def test_pieces_in_a_wrong_order_fail_their_call_alone() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.attach()
            answers = Answers()
            send(house, answers, call("bad", effect=Effect.WRITE), call("good"))
            await called(peer, 2)
            for index in (1, 0, 5):
                piece = frames.Piece(("bad", 1), index, index == 5, b"x")
                await peer.send(frames.piece_frame(piece, of_gateway=False))
            await peer.send(answer(("good", 1)))
            await answers.wait(2)
            assert answers.of("bad").error.reason == Reason.CONTRACT_VIOLATION.value  # type: ignore[union-attr]
            assert answers.of("good").error is None

    run(story())


@pytest.mark.parametrize("in_pieces", [True, False])
def test_an_answer_over_the_limit_fails_its_call_alone(in_pieces: bool) -> None:
    async def story() -> None:
        options = AttachOptions(max_response_bytes=50_000)
        async with attach_house(options) as house, raw_peer(house) as peer:
            await peer.attach()
            answers = Answers()
            send(house, answers, call("big", effect=Effect.WRITE), call("good"))
            await called(peer, 2)
            large = ExecuteResponse(output=payload(b'"%b"' % (b"x" * 60_000)))
            body = frames.answer_body(("big", 1), large)
            sent = [frames.answer_frame(body)]
            if in_pieces:
                sent = [
                    frames.piece_frame(
                        frames.Piece(("big", 1), n, n == 3, body[n * 20_000 : (n + 1) * 20_000]),
                        of_gateway=False,
                    )
                    for n in range(4)
                ]
            await peer.send(*sent, answer(("good", 1)))
            await answers.wait(2)
            assert answers.of("big").error.reason == Reason.PAYLOAD_TOO_LARGE.value  # type: ignore[union-attr]
            assert answers.of("big").side_effect is SideEffect.UNKNOWN
            assert answers.of("good").error is None

    run(story())


def test_a_request_over_the_cards_limit_is_not_sent_and_costs_no_credit() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.attach(credits=1)
            answers = Answers()
            huge = b'{"action":"balance","arguments":"%b"}' % (b"x" * 4_300_000)
            send(house, answers, call("huge", body=huge), call("good"))
            (got,) = await called(peer, 1)
            assert got.key == ("good", 1)
            assert answers.of("huge").not_sent
            assert answers.of("huge").error.reason == Reason.PAYLOAD_TOO_LARGE.value  # type: ignore[union-attr]

    run(story())


@pytest.mark.parametrize("stream", ["control", "calls"])
def test_bytes_that_are_no_message_end_the_pair_and_not_the_calls(stream: str) -> None:
    async def story() -> None:
        async with attach_house() as house:
            answers = Answers()
            async with raw_peer(house) as peer:
                await peer.attach()
                send(house, answers, call("c"))
                await called(peer, 1)
                broken = getattr(peer, stream)
                await broken.write(b"\xff\xff\xff")
                assert (await peer.refusal(broken)).reason == Reason.INVALID_REQUEST.value
            async with raw_peer(house) as peer:
                await peer.attach(in_flight=(("c", 1),))
                await peer.send(answer(("c", 1)))
                await answers.wait(1)

    run(story())


@pytest.mark.parametrize("first", [b"", b"\xff", frames.control([])])
def test_a_control_stream_begins_with_hello_or_ends(first: bytes) -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            peer.control = peer.channel.stream_stream(CONTROL_RPC)()
            await peer.control.write(first)
            assert (await peer.refusal()).reason == Reason.INVALID_REQUEST.value
            assert house.hub.attached == 0

    run(story())


def test_a_second_hello_ends_the_pair() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.attach()
            await peer.say(Hello(instance_id="i", incarnation=9, card=served_card()))
            assert (await peer.refusal()).reason == Reason.INVALID_REQUEST.value

    run(story())


def test_a_small_request_limit_of_the_gateway_does_not_limit_frames() -> None:
    async def story() -> None:
        chosen: Settings = settings(limits={"max_request_bytes": 10_000})
        async with attach_house(chosen=chosen) as house, raw_peer(house) as peer:
            await peer.attach()
            answers = Answers()
            send(house, answers, call("c"))
            (got,) = await called(peer, 1)
            await peer.send(answer(got.key, b'"%b"' % (b"x" * 200_000)))
            await answers.wait(1)
            assert answers.of("c").error is None

    run(story())


def test_the_role_of_a_call_is_in_its_frame() -> None:
    body = frames.call_body(
        ("c", 1), StepRole.EXECUTE, request=ExecuteRequest(context=context(), action="balance")
    )
    called_ = frames.read_call(body, max_bytes=10_000)
    assert isinstance(called_, frames.Called)
    assert isinstance(called_.request, ExecuteRequest)
