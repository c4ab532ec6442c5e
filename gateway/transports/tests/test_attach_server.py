"""Streams of attached components as a raw peer sees them: admission, calls, drops, hostility."""

import asyncio

import grpc
import pytest

from acp_spec.codec import frames
from acp_spec.model.attach import (
    AttachHeartbeat,
    AttemptKey,
    CancelOutcome,
    Drain,
    OperationOutcome,
)
from acp_spec.model.calls import (
    CancelRequest,
    CancelResponse,
    ExecuteRequest,
    OperationState,
)
from acp_spec.model.context import Signals
from acp_spec.model.enums import CancelState, Effect, OperationStatus, SideEffect
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.sdk.attach import CALLS_RPC
from gateway.runtime.principal import Scope
from gateway.runtime.tokens import TokenRequest
from gateway.transports.attach_hub import AttachOptions
from gateway.transports.tests.attach_house import (
    NUMBERS,
    UNTIL_S,
    Answers,
    AttachHouse,
    answer,
    attach_house,
    call,
    called,
    raw_peer,
    send,
    served_card,
    until,
)
from gateway.transports.tests.raw_peer import PATIENT_MS, run

SHORT = AttachOptions(reattach_grace_ms=150, heartbeat_ms=10_000)


# ---- coming in --------------------------------------------------------------------------------


def test_a_hello_is_welcomed_and_a_call_passes_byte_for_byte() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            welcome = await peer.attach()
            assert welcome.max_frame_bytes == 256 * 1024
            assert welcome.reattach_grace_ms == 10_000
            answers = Answers()
            body = b'{"action":"balance","arguments":%b}' % NUMBERS
            send(house, answers, call("c", body=body))
            (got,) = await called(peer, 1)
            assert got.key == ("c", 1)
            assert isinstance(got.request, ExecuteRequest)
            assert bytes(got.request.arguments) == NUMBERS
            assert 0 < got.request.context.timeout_ms <= 5_000
            await peer.send(answer(got.key))
            await answers.wait(1)
            assert NUMBERS in bytes(answers.of("c").response)
            assert answers.of("c").side_effect is SideEffect.PERFORMED
            assert await peer.acknowledged(1) == [("c", 1)]

    run(story())


def test_all_calls_of_one_tick_are_one_message() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.attach(credits=40)
            await until(lambda: house.connection().credits == 40)
            send(house, Answers(), *(call(f"c{n}") for n in range(40)))
            read = frames.read_gateway_calls(await peer.calls.read(), max_bytes=1 << 20)
            assert len(read) == 40

    run(story())


@pytest.mark.parametrize(
    ("names", "scopes", "reason"),
    [
        (("ledger",), (Scope.COMPONENT,), None),
        (("*",), (Scope.COMPONENT,), None),
        (("cards",), (Scope.COMPONENT,), Reason.PERMISSION_DENIED),
        ((), (Scope.SUBMIT, Scope.ANNOTATE), Reason.PERMISSION_DENIED),
    ],
)
def test_a_token_needs_the_scope_and_the_name(
    names: tuple[str, ...], scopes: tuple[Scope, ...], reason: Reason | None
) -> None:
    async def story() -> None:
        async with attach_house(guarded=True) as house:
            token = await issue(house, names=names, scopes=scopes)
            async with raw_peer(house, token=token) as peer:
                await peer.hello()
                if reason is None:
                    assert peer.welcome.component_id
                else:
                    assert (await peer.refusal()).reason == reason.value
                    assert house.registry.list() == ()

    run(story())


async def issue(house: AttachHouse, *, names: tuple[str, ...], scopes: tuple[Scope, ...]) -> str:
    request = TokenRequest(tenant="t", scopes=scopes, names=names)
    return (await house.house.services.tokens.create(request)).token


@pytest.mark.parametrize("token", ["", "acp_wrong"])
def test_without_a_valid_token_both_streams_are_refused(token: str) -> None:
    async def story() -> None:
        async with attach_house(guarded=True) as house, raw_peer(house, token=token) as peer:
            await peer.hello()
            assert (await peer.refusal()).reason == Reason.UNAUTHENTICATED.value
            calls = peer.channel.stream_stream(CALLS_RPC)(metadata=peer.metadata)
            refusal = await peer.refusal(calls)
            assert refusal.reason == Reason.UNAUTHENTICATED.value

    run(story())


def test_a_revoked_token_ends_the_streams_at_the_next_beat() -> None:
    async def story() -> None:
        async with attach_house(guarded=True) as house:
            token = await issue(house, names=("ledger",), scopes=(Scope.COMPONENT,))
            async with raw_peer(house, token=token) as peer:
                await peer.attach()
                await peer.beat()
                await peer.heard()
                (info,) = house.house.services.tokens.list()
                await house.house.services.tokens.revoke(info.token_id)
                await peer.beat()
                assert (await peer.refusal()).reason == Reason.UNAUTHENTICATED.value

    run(story())


def test_a_bad_card_says_what_is_wrong_with_it() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.hello(card=served_card("Not A Name"))
            refusal = await peer.refusal()
            assert refusal.reason == Reason.CONTRACT_VIOLATION.value
            assert "Not A Name" in refusal.message

    run(story())


def test_a_calls_stream_needs_the_id_of_a_welcome_and_takes_it_once() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.attach()
            await until(lambda: house.connection().credits == 4)
            for stolen in ("attachment-99", peer.welcome.attachment_id):
                calls = peer.channel.stream_stream(CALLS_RPC)()
                await calls.write(frames.component_calls([], attachment_id=stolen))
                assert (await peer.refusal(calls)).reason == Reason.NOT_FOUND.value
            answers = Answers()
            send(house, answers, call("c"))
            assert len(await called(peer, 1)) == 1, "and the first stream goes on"

    run(story())


# ---- incarnations -----------------------------------------------------------------------------


def test_a_higher_incarnation_takes_over_and_the_older_stream_is_closed() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as old, raw_peer(house) as new:
            await old.attach(incarnation=5)
            await new.attach(incarnation=6)
            assert (await old.refusal()).reason == Reason.ALREADY_EXISTS.value
            await until(lambda: house.connection().credits == 4)
            send(house, Answers(), call("c"))
            assert len(await called(new, 1)) == 1
            assert house.states() == ["ACTIVE"]

    run(story())


def test_a_lower_incarnation_is_refused_for_good() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as new, raw_peer(house) as old:
            await new.attach(incarnation=6)
            await old.hello(incarnation=5)
            refusal = await old.refusal()
            assert (refusal.reason, refusal.retryable) == (Reason.ALREADY_EXISTS.value, False)
            assert house.hub.attached == 1

    run(story())


def test_what_a_restarted_process_does_not_have_is_lost_at_once() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as old, raw_peer(house) as new:
            await old.attach(incarnation=5)
            answers = Answers()
            write = {"effect": Effect.WRITE}
            send(house, answers, call("kept", **write), call("gone", **write))
            await called(old, 2)
            await new.attach(incarnation=6, finished=(("kept", 1),))
            await answers.wait(1)
            assert answers.of("gone").side_effect is SideEffect.UNKNOWN
            assert answers.of("gone").not_sent is False
            await new.send(answer(("kept", 1)))
            await answers.wait(2)
            assert answers.of("kept").side_effect is SideEffect.PERFORMED

    run(story())


def test_two_instances_of_one_component_are_two() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as one, raw_peer(house) as two:
            await one.attach(instance_id="one")
            await two.attach(instance_id="two")
            assert house.states() == ["ACTIVE", "ACTIVE"]

    run(story())


# ---- credits ----------------------------------------------------------------------------------


def test_without_a_credit_a_call_waits_and_its_time_is_stamped_when_it_is_written() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.attach(credits=1)
            answers = Answers()
            send(house, answers, call("first"), call("second"))
            (first,) = await called(peer, 1)
            assert house.hub.waiting == 1
            await asyncio.sleep(0.15)
            await peer.send(frames.credits_frame(1))
            (second,) = await called(peer, 1)
            assert house.hub.waiting == 0
            assert second.request.context.timeout_ms <= first.request.context.timeout_ms - 100

    run(story())


def test_a_call_that_gets_no_credit_in_its_time_was_never_sent() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.attach(credits=0)
            answers = Answers()
            send(house, answers, call("c", timeout_ms=50))
            await answers.wait(1)
            assert answers.of("c").not_sent
            assert answers.of("c").error.reason == Reason.TIMEOUT.value  # type: ignore[union-attr]
            assert house.hub.waiting == 0

    run(story())


def test_a_credit_whose_call_was_reset_before_it_was_written_comes_back() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.attach(credits=1)
            await until(lambda: house.connection().credits == 1)
            answers = Answers()
            send(house, answers, call("a"), call("b"))
            house.connection().reset("a", 1)
            (got,) = await called(peer, 1)
            assert got.key == ("b", 1)
            assert answers.of("a").not_sent

    run(story())


def test_absurd_credits_change_nothing() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.attach(credits=0)
            await peer.send(frames.credits_frame(-5), frames.credits_frame(2**60))
            answers = Answers()
            send(house, answers, call("c"))
            (got,) = await called(peer, 1)
            await peer.send(answer(got.key))
            await answers.wait(1)

    run(story())


# ---- drops and returns ------------------------------------------------------------------------


def test_a_cut_stream_keeps_its_calls_and_the_answer_comes_over_the_next() -> None:
    async def story() -> None:
        async with attach_house() as house:
            answers = Answers()
            async with raw_peer(house) as peer:
                await peer.attach()
                send(house, answers, call("c"))
                await called(peer, 1)
            await until(lambda: house.states() == ["UNREACHABLE"])
            async with raw_peer(house) as peer:
                await peer.attach(in_flight=(("c", 1),))
                assert house.states() == ["ACTIVE"]
                await peer.send(answer(("c", 1)))
                await answers.wait(1)
                assert answers.of("c").error is None

    run(story())


def test_what_the_same_process_never_got_is_written_again_as_the_same_attempt() -> None:
    async def story() -> None:
        async with attach_house() as house:
            answers = Answers()
            async with raw_peer(house) as peer:
                await peer.attach()
                send(house, answers, call("c"))
                await called(peer, 1)
            async with raw_peer(house) as peer:
                await peer.attach()
                (again,) = await called(peer, 1)
                assert again.key == ("c", 1)
                await peer.send(answer(again.key))
                await answers.wait(1)

    run(story())


def test_calls_of_an_instance_that_does_not_come_back_end_after_the_grace() -> None:
    async def story() -> None:
        async with attach_house(SHORT) as house:
            answers = Answers()
            async with raw_peer(house) as peer:
                await peer.attach(credits=1)
                write = {"effect": Effect.WRITE}
                send(house, answers, call("sent", **write), call("waits", **write))
                await called(peer, 1)
            await answers.wait(2)
            assert answers.of("sent").side_effect is SideEffect.UNKNOWN
            assert answers.of("waits").not_sent
            assert house.registry.list() == ()
            assert house.hub.waiting == 0

    run(story())


def test_the_end_of_the_calls_stream_alone_ends_the_pair() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.attach()
            await until(lambda: house.connection().credits == 4)
            await peer.calls.done_writing()
            assert await peer.control.read() is grpc.aio.EOF
            await until(lambda: house.states() == ["UNREACHABLE"])

    run(story())


def test_a_half_open_peer_is_cut_after_three_missed_beats() -> None:
    async def story() -> None:
        options = AttachOptions(heartbeat_ms=40, reattach_grace_ms=5_000)
        async with attach_house(options) as house, raw_peer(house) as peer:
            await peer.attach()
            assert (await peer.refusal()).reason == Reason.TIMEOUT.value
            await until(lambda: house.states() == ["UNREACHABLE"])

    run(story())


def test_heartbeats_carry_load_to_the_registry_and_are_answered() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.attach()
            await peer.beat(AttachHeartbeat(signals=Signals(queue_length=7, service_ms=1.5)))
            assert await peer.heard() == [AttachHeartbeat()]
            (component,) = house.registry.list()
            assert component.signals == Signals(component="ledger", queue_length=7, service_ms=1.5)
            health = await house.connection().health(100)
            assert health.signals == component.signals

    run(story())


def test_a_component_that_drains_gets_no_calls_and_leaves_without_a_grace() -> None:
    async def story() -> None:
        async with attach_house() as house:
            async with raw_peer(house) as peer:
                await peer.attach(credits=1)
                answers = Answers()
                send(house, answers, call("runs"), call("waits"))
                await called(peer, 1)
                await peer.say(Drain(grace_ms=1_000))
                assert await peer.heard() == [Drain()]
                assert house.states() == ["DRAINING"]
                assert answers.of("waits").not_sent
                await peer.send(answer(("runs", 1)))
                await answers.wait(2)
            await until(lambda: house.registry.list() == ())

    run(story())


def test_a_removed_instance_is_told_at_its_next_beat() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            welcome = await peer.attach()
            await house.registry.delete(welcome.component_id)
            await peer.beat()
            assert (await peer.refusal()).reason == Reason.NOT_FOUND.value

    run(story())


def test_a_stopping_gateway_says_so_and_ends_in_spite_of_open_streams() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.attach()
            await until(lambda: house.connection().credits == 4)
            answers = Answers()
            send(house, answers, call("c"))
            await called(peer, 1)
            house.hub.drain(5_000)
            assert await peer.heard() == [Drain(grace_ms=5_000)]
            house.hub.close()
            async with asyncio.timeout(UNTIL_S):
                await house.server.stop(1)
            refusal = await peer.refusal()
            assert (refusal.reason, refusal.retryable) == (Reason.UNAVAILABLE.value, True)
            assert answers.all == [], "it stays open in the journal"

    run(story())


# ---- questions --------------------------------------------------------------------------------


def test_cancel_and_operations_are_asked_over_the_control_stream() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.attach()
            asking = house.connection()
            cancel = asyncio.create_task(asking.cancel("c", 1, timeout_ms=PATIENT_MS))
            assert await peer.heard() == [CancelRequest(call_id="c", attempt=1)]
            stopped = CancelResponse(state=CancelState.STOPPED, side_effect=SideEffect.NONE)
            key = AttemptKey(call_id="c", attempt=1)
            await peer.say(CancelOutcome(key=key, response=stopped))
            assert await cancel == stopped
            poll = asyncio.create_task(asking.operation("o", PATIENT_MS))
            assert await peer.heard() == [frames.Named("o", stop=False)]
            state = OperationState(status=OperationStatus.RUNNING, poll_after_ms=5)
            await peer.say(OperationOutcome(call_id="o", state=state))
            assert await poll == state
            stop = asyncio.create_task(asking.cancel_operation("o", PATIENT_MS))
            assert await peer.heard() == [frames.Named("o", stop=True)]
            await peer.say(OperationOutcome(call_id="o", cancelled=stopped))
            assert await stop == stopped

    run(story())


def test_a_question_fails_in_time_when_nobody_answers_or_the_stream_goes() -> None:
    async def story() -> None:
        async with attach_house() as house:
            async with raw_peer(house) as peer:
                await peer.attach()
                asking = house.connection()
                with pytest.raises(AcpFailure, match="TIMEOUT"):
                    await asking.cancel("c", 1, timeout_ms=20)
                poll = asyncio.create_task(asking.operation("o", PATIENT_MS))
                await peer.heard()
            with pytest.raises(AcpFailure, match="UNAVAILABLE"):
                await poll
            with pytest.raises(AcpFailure, match="UNAVAILABLE"):
                await asking.cancel("c", 1, timeout_ms=20)

    run(story())


def test_a_call_that_still_waits_is_cancelled_here() -> None:
    async def story() -> None:
        async with attach_house() as house, raw_peer(house) as peer:
            await peer.attach(credits=0)
            answers = Answers()
            send(house, answers, call("c"))
            stopped = await house.connection().cancel("c", 0, timeout_ms=20)
            assert (stopped.state, stopped.side_effect) == (CancelState.STOPPED, SideEffect.NONE)
            await answers.wait(1)
            assert answers.of("c").not_sent

    run(story())
