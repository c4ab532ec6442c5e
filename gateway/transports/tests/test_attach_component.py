"""Python components that attach, against the gateway's real streams: one story each."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import msgspec
import pytest

from acp_spec.model.attach import AttemptKey
from acp_spec.model.card import Limits
from acp_spec.model.enums import CancelState, Effect, Idempotency, OperationStatus, SideEffect
from acp_spec.model.errors import Reason
from acp_spec.sdk.attach import Attachment, Dialling, Refused
from acp_spec.sdk.call import Call, LongWork
from acp_spec.sdk.component import Component
from acp_spec.sdk.outcome_file import FileOutcomes
from acp_spec.sdk.outcomes import OutcomeStore
from acp_spec.sdk.values import JsonText
from gateway.runtime.connection import Outgoing
from gateway.transports.tests.attach_house import (
    Answers,
    AttachHouse,
    attach_house,
    send,
    until,
)
from gateway.transports.tests.attach_house import call as attempt
from gateway.transports.tests.listening import settings
from gateway.transports.tests.raw_peer import PATIENT_MS, certificate, run

MIB = 1024 * 1024
DIGEST = "0" * 64


class Ledger:
    """A component whose calls wait until a test opens the gate; it counts what it did."""

    def __init__(self, outcomes: OutcomeStore | None = None, *, concurrency: int = 8) -> None:
        self.component = Component(
            "ledger", "1.0.0", limits=Limits(max_concurrency=concurrency), outcomes=outcomes
        )
        self.gate = asyncio.Event()
        self.done: list[str] = []
        self.began: list[str] = []
        self.component.action("add", effect=Effect.WRITE, idempotency=Idempotency.NONE)(self._add)
        read = self.component.action("echo", effect=Effect.READ, idempotency=Idempotency.NATURAL)
        read(self._echo)
        long = self.component.action("long", idempotency=Idempotency.BY_KEY)
        long(self._long)

    async def _add(self, arguments: object, call: Call) -> object:
        self.began.append(call.context.call_id)
        await self.gate.wait()
        self.done.append(call.context.call_id)
        return {"done": len(self.done)}

    async def _echo(self, arguments: object, call: Call) -> object:
        return arguments

    async def _long(self, arguments: object, call: Call) -> LongWork:
        async def work() -> object:
            await self.gate.wait()
            return {"long": True}

        return call.operation(work, poll_after_ms=5)


@contextlib.asynccontextmanager
async def attached(
    house: AttachHouse, component: Component, *, instance_id: str = "i", token: str | None = None
) -> AsyncIterator[Attachment]:
    """The component, attached; cut off at the end, as a killed process would be."""
    dialling = Dialling(
        target=f"grpc://{house.place}", instance_id=instance_id, token=token, chance=lambda: 0.1
    )
    attachment = Attachment(component, dialling)
    running = asyncio.create_task(attachment.run())
    welcomed = asyncio.create_task(attachment.attached())
    try:
        await asyncio.wait({running, welcomed}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            await running
        await until(lambda: house.connection().credits > 0)
        yield attachment
    finally:
        for task in (running, welcomed):
            task.cancel()
        await asyncio.gather(running, welcomed, return_exceptions=True)
        attachment.close()


def call(call_id: str, action: str = "add", *, arguments: bytes = b"{}") -> Outgoing:
    effect = Effect.READ if action == "echo" else Effect.WRITE
    body = b'{"action":"%b","arguments":%b}' % (action.encode(), arguments)
    made = attempt(call_id, body=body, effect=effect, timeout_ms=15_000)
    context = msgspec.structs.replace(made.context, body_digest=DIGEST, lineage_id="S.0")
    return msgspec.structs.replace(made, context=context)


def cut(house: AttachHouse) -> None:
    """Cut every stream, as a network does."""
    for link in house.hub.links():
        link.end()


def test_large_payloads_both_ways_delay_no_small_call() -> None:
    async def story() -> None:
        ledger = Ledger()
        async with attach_house() as house, attached(house, ledger.component):
            answers = Answers()
            large = b'"%b"' % (b"x" * 3 * MIB)
            send(house, answers, call("large", "echo", arguments=large))
            send(house, answers, *(call(f"s{n}", "echo", arguments=b"%d" % n) for n in range(7)))
            await answers.wait(8)
            order = [name for name, _, _ in answers.all]
            assert order[-1] == "large", "the small ones passed it"
            assert large in bytes(answers.of("large").response)
            assert all(answers.of(f"s{n}").error is None for n in range(7))

    run(story())


def test_a_request_over_the_components_limit_fails_alone() -> None:
    async def story() -> None:
        ledger = Ledger()
        async with attach_house() as house, attached(house, ledger.component):
            answers = Answers()
            huge = b'"%b"' % (b"x" * 5 * MIB)
            send(house, answers, call("huge", "echo", arguments=huge), call("ok", "echo"))
            await answers.wait(2)
            failed = answers.of("huge").error
            assert failed is not None
            assert failed.reason == Reason.PAYLOAD_TOO_LARGE.value
            assert answers.of("ok").error is None

    run(story())


def test_no_more_calls_run_than_the_card_says_and_none_is_refused() -> None:
    async def story() -> None:
        ledger = Ledger(concurrency=2)
        async with attach_house() as house, attached(house, ledger.component):
            answers = Answers()
            send(house, answers, *(call(f"c{n}") for n in range(6)))
            await until(lambda: len(ledger.began) == 2)
            assert house.hub.waiting == 4
            ledger.gate.set()
            await answers.wait(6)
            assert all(answers.of(f"c{n}").error is None for n in range(6))

    run(story())


def test_calls_go_on_over_a_cut_and_are_done_once() -> None:
    async def story() -> None:
        ledger = Ledger()
        async with attach_house() as house, attached(house, ledger.component) as attachment:
            answers = Answers()
            send(house, answers, call("a"), call("b"))
            await until(lambda: len(ledger.began) == 2)
            cut(house)
            await until(lambda: house.states() == ["UNREACHABLE"])
            await attachment.attached()
            await until(lambda: house.states() == ["ACTIVE"] and house.hub.attached == 1)
            ledger.gate.set()
            await answers.wait(2)
            assert sorted(ledger.done) == ["a", "b"]
            assert answers.of("a").side_effect is SideEffect.PERFORMED

    run(story())


def test_what_finished_without_a_stream_is_delivered_when_there_is_one() -> None:
    async def story() -> None:
        ledger = Ledger()
        async with attach_house() as house, attached(house, ledger.component) as attachment:
            answers = Answers()
            send(house, answers, call("a"))
            await until(lambda: ledger.began == ["a"])
            cut(house)
            ledger.gate.set()
            await answers.wait(1)
            assert ledger.done == ["a"]
            await attachment.calls.all_acknowledged()
            assert attachment.calls.finished_unacked == ()

    run(story())


def test_an_answer_that_is_not_acknowledged_is_kept_and_said_in_the_next_hello() -> None:
    async def story() -> None:
        ledger = Ledger()
        ledger.gate.set()
        async with (
            attach_house(acknowledges=False) as house,
            attached(house, ledger.component) as attachment,
        ):
            answers = Answers()
            send(house, answers, call("a"))
            await answers.wait(1)
            assert attachment.calls.finished_unacked == (AttemptKey(call_id="a", attempt=1),)
            claimed = len(house.orphans.claimed)
            cut(house)
            await until(lambda: len(house.orphans.claimed) > claimed)
            assert house.orphans.claimed[-1][1] == {("a", 1)}
            assert len(answers.all) == 1

    run(story())


def test_an_answer_is_acknowledged_when_it_is_on_disk_and_not_before() -> None:
    """Acknowledged too early, a component forgets what a power cut takes from the gateway."""

    async def story() -> None:
        ledger = Ledger()
        ledger.gate.set()
        async with (
            attach_house(acknowledges=False) as house,
            attached(house, ledger.component) as attachment,
        ):
            answers = Answers()
            send(house, answers, call("a"))
            await until(lambda: house.unsynced)
            send(house, answers, call("b", "echo"))
            await answers.wait(2)  # what was written before b's answer has come by then
            kept = AttemptKey(call_id="a", attempt=1)
            assert kept in attachment.calls.finished_unacked
            house.unsynced[0]()
            await until(lambda: kept not in attachment.calls.finished_unacked)

    run(story())


def test_answers_of_writes_outlive_the_process_in_the_outcome_file(tmp_path: Path) -> None:
    async def story() -> None:
        async with attach_house(acknowledges=False) as house:
            answers = Answers()
            ledger = Ledger(FileOutcomes(tmp_path / "outcomes.db"))
            async with attached(house, ledger.component):
                send(house, answers, call("write"), call("read", "echo"))
                await until(lambda: ledger.began == ["write"])
                cut(house)
                ledger.gate.set()
                await until(lambda: ledger.done == ["write"])
                await answers.wait(2)  # so that of the write is in the file
        async with attach_house() as house:
            again = Ledger(FileOutcomes(tmp_path / "outcomes.db"))
            async with attached(house, again.component) as attachment:
                assert house.orphans.claimed[0][1] == {("write", 1)}
                await attachment.calls.all_acknowledged()
                assert again.done == []
            third = Ledger(FileOutcomes(tmp_path / "outcomes.db"))
            async with attached(house, third.component):
                assert house.orphans.claimed[-1][1] == frozenset()

    run(story())


def test_a_cancel_reaches_the_handler() -> None:
    async def story() -> None:
        ledger = Ledger()
        async with attach_house() as house, attached(house, ledger.component):
            answers = Answers()
            send(house, answers, call("a"))
            await until(lambda: ledger.began == ["a"])
            said = await house.connection().cancel("a", 1, timeout_ms=PATIENT_MS)
            assert said.state is CancelState.STOPPED
            await answers.wait(1)
            failed = answers.of("a").error
            assert failed is not None
            assert failed.reason == Reason.CANCELLED.value
            assert ledger.done == []

    run(story())


def test_a_long_operation_is_polled_over_the_control_stream() -> None:
    async def story() -> None:
        ledger = Ledger()
        async with attach_house() as house, attached(house, ledger.component):
            answers = Answers()
            send(house, answers, call("o", "long"))
            await answers.wait(1)
            assert answers.of("o").operation_poll_after_ms == 5
            asking = house.connection()
            told = await asking.operation("o", PATIENT_MS)
            assert told.status is OperationStatus.RUNNING
            ledger.gate.set()

            async def ended() -> bytes:
                while True:
                    state = await asking.operation("o", PATIENT_MS)
                    if state.status is not OperationStatus.RUNNING:
                        return bytes(state.output)

            assert await ended() == b'{"long":true}'

    run(story())


def test_a_draining_component_finishes_what_runs_and_gets_nothing_new() -> None:
    async def story() -> None:
        ledger = Ledger()
        async with attach_house() as house, attached(house, ledger.component) as attachment:
            answers = Answers()
            send(house, answers, call("a"))
            await until(lambda: ledger.began == ["a"])
            draining = asyncio.create_task(attachment.drain(PATIENT_MS / 1000))
            await until(lambda: house.states() == ["DRAINING"])
            assert not draining.done()
            ledger.gate.set()
            assert await draining
            await answers.wait(1)
            assert answers.of("a").error is None
            await until(lambda: house.registry.list() == ())

    run(story())


def test_a_drain_does_not_wait_for_ever() -> None:
    async def story() -> None:
        ledger = Ledger()
        async with attach_house() as house, attached(house, ledger.component) as attachment:
            answers = Answers()
            send(house, answers, call("a"))
            await until(lambda: ledger.began == ["a"])
            assert not await attachment.drain(0.05)
            await answers.wait(1)
            assert answers.of("a").side_effect is SideEffect.UNKNOWN

    run(story())


def test_a_component_that_may_not_attach_ends_with_the_reason() -> None:
    async def story() -> None:
        async with attach_house(guarded=True) as house:
            with pytest.raises(Refused, match="UNAUTHENTICATED"):
                async with attached(house, Ledger().component, token="acp_wrong"):
                    raise AssertionError("it attached")

    run(story())


def test_a_newer_process_of_the_instance_ends_the_older_one() -> None:
    async def story() -> None:
        async with attach_house() as house:
            old = Attachment(
                Ledger().component,
                Dialling(target=house.place, instance_id="i", chance=lambda: 0.1),
            )
            running = asyncio.create_task(old.run())
            await old.attached()
            await asyncio.sleep(0.002)  # incarnations are of the clock
            async with attached(house, Ledger().component):
                with pytest.raises(Refused, match="ALREADY_EXISTS"):
                    await running
                assert house.states() == ["ACTIVE"]
            old.close()

    run(story())


def test_attach_goes_over_tls_and_a_stranger_is_not_trusted(tmp_path: Path) -> None:
    certificate(tmp_path, "127.0.0.1", "localhost")
    tls = {"cert_file": str(tmp_path / "cert.pem"), "key_file": str(tmp_path / "key.pem")}

    async def story() -> None:
        ledger = Ledger()
        ledger.gate.set()
        async with attach_house(chosen=settings(tls=tls)) as house:
            root = grpc.ssl_channel_credentials((tmp_path / "cert.pem").read_bytes())
            dialling = Dialling(target=f"grpcs://{house.place}", credentials=root)
            attachment = Attachment(ledger.component, dialling)
            running = asyncio.create_task(attachment.run())
            await attachment.attached()
            await until(lambda: house.connection().credits > 0)
            answers = Answers()
            send(house, answers, call("c"))
            await answers.wait(1)
            assert answers.of("c").error is None
            assert await attachment.drain(PATIENT_MS / 1000)
            await running
            attachment.close()
            stranger = Attachment(Ledger().component, Dialling(target=f"grpcs://{house.place}"))
            dialling_on = asyncio.create_task(stranger.run())
            await asyncio.wait({dialling_on}, timeout=0.3)
            assert not dialling_on.done(), "it goes on dialling"
            assert house.hub.attached == 0
            dialling_on.cancel()
            await asyncio.gather(dialling_on, return_exceptions=True)
            stranger.close()

    run(story())


def test_load_figures_of_the_component_reach_the_registry() -> None:
    async def story() -> None:
        ledger = Ledger()
        async with attach_house() as house, attached(house, ledger.component):
            await until(lambda: house.registry.list()[0].signals is not None)
            signals = house.registry.list()[0].signals
            assert signals is not None
            assert (signals.component, signals.inflight) == ("ledger", 0)

    run(story())


def test_payload_bytes_pass_untouched() -> None:
    odd = b'{"n":9007199254740993,"x":0.10,"e":1E+2,"t":"\\u00e9"}'

    async def story() -> None:
        component = Component("ledger", "1.0.0")

        @component.action("echo", effect=Effect.READ, idempotency=Idempotency.NATURAL)
        async def echo(arguments: object, call: Call) -> JsonText:
            return JsonText(call.arguments_text)

        async with attach_house() as house, attached(house, component):
            answers = Answers()
            send(house, answers, call("c", "echo", arguments=odd))
            await answers.wait(1)
            assert odd in bytes(answers.of("c").response)

    run(story())
