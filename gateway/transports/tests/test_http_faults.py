"""HTTP attempts whose connection or time fails: what is proven, what stays unknown (SPEC 5)."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from acp_spec.model.enums import Boundary, Effect, SideEffect
from acp_spec.model.errors import Code
from gateway.config.networks import LOOPBACK_NETWORKS
from gateway.runtime.connection import Answer
from gateway.transports.address_guard import HTTP_SCHEMES, AddressGuard, parse_component_url
from gateway.transports.http_connection import HttpConnection
from gateway.transports.tests.http_calls import GOOD, answer_of, hung, reason, then_end, to
from gateway.transports.tests.raw_peer import (
    GUARD,
    PATIENT_MS,
    Answers,
    Behaviour,
    Peer,
    answering,
    certificate,
    context,
    http,
    one_call,
    outgoing,
    peer,
    run,
)

# -- the connection fails ------------------------------------------------------------------------


async def slam_after_request(peer: Peer) -> None:
    await peer.request()
    peer.slam()


@pytest.mark.parametrize(
    "behaviour",
    [
        slam_after_request,
        then_end(b""),
        then_end(b"HTTP/1.1 200 OK\r\ncontent-type: app"),
        then_end(http(GOOD)[:-5]),
    ],
)
def test_a_connection_that_ends_after_the_request_leaves_the_effect_unknown(
    behaviour: Behaviour,
) -> None:
    answer = answer_of(behaviour)
    assert reason(answer) == "UNAVAILABLE"
    assert (answer.side_effect, answer.not_sent, answer.answered) == (
        SideEffect.UNKNOWN,
        False,
        False,
    )


def test_a_lost_read_did_nothing() -> None:
    assert answer_of(then_end(b""), outgoing(effect=Effect.READ)).side_effect is SideEffect.NONE


def test_a_body_that_ends_with_its_connection_is_whole_if_its_json_is() -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"
    assert bytes(answer_of(then_end(head + GOOD)).response) == GOOD
    assert reason(answer_of(then_end(head + GOOD[:-1]))) == "CONTRACT_VIOLATION"


def test_a_refused_connection_proves_that_nothing_was_sent(free_port: Callable[[], int]) -> None:
    async def story() -> Answer:
        connection = to(free_port())
        answer = await one_call(connection)
        await connection.close()
        return answer

    answer = run(story())
    assert reason(answer) == "UNAVAILABLE"
    assert (answer.side_effect, answer.not_sent) == (SideEffect.NONE, True)


def test_a_tls_failure_proves_that_nothing_was_sent(tmp_path: Path) -> None:
    server, _ = certificate(tmp_path, "127.0.0.1")

    async def story(tls: bool) -> Answer:
        async with peer(answering(http(GOOD)), tls=server if tls else None) as served:
            target = parse_component_url(f"https://127.0.0.1:{served.port}", HTTP_SCHEMES)
            connection = HttpConnection(target, GUARD)  # trusts public authorities only
            answer = await one_call(connection)
            await connection.close()
            return answer

    for tls in (True, False):
        answer = run(story(tls))
        assert reason(answer) == "UNAVAILABLE"
        assert (answer.side_effect, answer.not_sent) == (SideEffect.NONE, True)


def test_plain_http_to_a_tls_port_is_a_failure_after_sending(tmp_path: Path) -> None:
    server, _ = certificate(tmp_path, "127.0.0.1")

    async def story() -> Answer:
        async with peer(answering(http(GOOD)), tls=server) as served:
            connection = to(served.port)
            answer = await one_call(connection)
            await connection.close()
            return answer

    answer = run(story())
    assert answer.error is not None
    assert not answer.not_sent
    assert answer.side_effect is SideEffect.UNKNOWN


def test_tls_checks_the_name_of_the_url_while_the_checked_address_is_dialled(
    tmp_path: Path,
) -> None:
    server, client = certificate(tmp_path, "ledger.bank")

    async def at_home(host: str, port: int) -> tuple[str, ...]:
        return ("127.0.0.1",)

    async def story(name: str) -> Answer:
        guard = AddressGuard(LOOPBACK_NETWORKS, resolve=at_home)
        async with peer(answering(http(GOOD)), tls=server) as served:
            target = parse_component_url(f"https://{name}:{served.port}", HTTP_SCHEMES)
            connection = HttpConnection(target, guard, tls=client)
            answer = await one_call(connection)
            await connection.close()
            return answer

    assert run(story("ledger.bank")).error is None
    assert run(story("cards.bank")).not_sent


def test_a_name_that_moves_to_a_forbidden_address_is_not_dialled() -> None:
    async def story() -> tuple[Answer, Answer]:
        addresses = ["127.0.0.1", "10.0.0.1"]

        async def resolve(host: str, port: int) -> tuple[str, ...]:
            return (addresses.pop(0),)

        async with peer(then_end(http(GOOD, extra="connection: close\r\n"))) as served:
            target = parse_component_url(f"http://moving.example:{served.port}", HTTP_SCHEMES)
            guard = AddressGuard(LOOPBACK_NETWORKS, resolve=resolve)
            connection = HttpConnection(target, guard)
            first, second = await one_call(connection), await one_call(connection)
            await connection.close()
            return first, second

    first, second = run(story())
    assert first.error is None
    assert second.error is not None
    assert (second.not_sent, second.error.boundary) == (True, Boundary.GATEWAY)
    assert "10.0.0.1" in second.error.message


# -- time ----------------------------------------------------------------------------------------


async def drip(peer: Peer) -> None:
    await peer.request()
    for byte in http(GOOD * 100):
        await peer.say(bytes([byte]))
        await asyncio.sleep(0.005)


async def at_hand(connection: HttpConnection) -> None:
    """One good call: the next is written at once, on the connection that is kept."""
    assert (await one_call(connection)).error is None


async def good_once(peer: Peer) -> None:
    await peer.request()
    await peer.say(http(GOOD))


@pytest.mark.parametrize("behaviour", [hung, drip])
def test_time_ends_a_call_whatever_trickles_in(behaviour: Behaviour) -> None:
    async def story() -> Answer:
        async def behave(peer: Peer) -> None:
            await good_once(peer)
            await behaviour(peer)

        async with peer(behave) as served:
            connection = to(served.port)
            await at_hand(connection)
            call = outgoing(context(timeout_ms=80), late_grace_ms=0)
            answer = await one_call(connection, call)
            await connection.close()
            return answer

    answer = run(story())
    assert answer.error is not None
    assert (reason(answer), answer.error.code) == ("TIMEOUT", Code.DEADLINE_EXCEEDED)
    assert (answer.side_effect, answer.answered) == (SideEffect.UNKNOWN, False)


def test_a_late_answer_is_told_as_late_and_the_connection_lives_on() -> None:
    async def story() -> None:
        go = asyncio.Event()

        async def behave(peer: Peer) -> None:
            await good_once(peer)
            await peer.request()
            await go.wait()
            await peer.say(http(GOOD))
            await answering(http(GOOD))(peer)

        async with peer(behave) as served:
            connection = to(served.port)
            await at_hand(connection)
            answers = Answers()
            late_call = outgoing(context(timeout_ms=30), late_grace_ms=PATIENT_MS)
            connection.send(late_call, answers)
            assert reason(await answers.wait(1)) == "TIMEOUT"
            go.set()
            late = await answers.wait(2)
            assert [was_late for _, was_late in answers.got] == [False, True]
            assert bytes(late.response) == GOOD
            assert (await one_call(connection)).error is None
            assert served.connections == 1
            await connection.close()

    run(story())


def test_after_the_late_grace_the_connection_is_reset() -> None:
    async def story() -> None:
        ended = asyncio.Event()

        async def behave(peer: Peer) -> None:
            await peer.request()
            assert await peer.request() is None
            ended.set()

        async with peer(behave) as served:
            connection = to(served.port)
            answers = Answers()
            connection.send(outgoing(context(timeout_ms=30), late_grace_ms=30), answers)
            await ended.wait()
            assert len(answers.got) == 1
            await connection.close()

    run(story())


def test_time_that_ends_before_there_is_a_connection_proves_that_nothing_was_sent() -> None:
    async def story() -> Answer:
        async def nowhere(host: str, port: int) -> tuple[str, ...]:
            await asyncio.sleep(60)
            return ()

        guard = AddressGuard(LOOPBACK_NETWORKS, resolve=nowhere)
        connection = HttpConnection(parse_component_url("http://slow:80", HTTP_SCHEMES), guard)
        answer = await one_call(connection, outgoing(context(timeout_ms=30)))
        await connection.close()
        return answer

    answer = run(story())
    assert (reason(answer), answer.not_sent) == ("TIMEOUT", True)
    assert answer.side_effect is SideEffect.NONE


def hanging(begun: asyncio.Event) -> Behaviour:
    async def behave(peer: Peer) -> None:
        await peer.request()
        begun.set()
        await asyncio.sleep(60)

    return behave


def test_a_reset_call_is_lost_at_once() -> None:
    async def story() -> None:
        begun = asyncio.Event()
        async with peer(hanging(begun)) as served:
            connection = to(served.port)
            answers = Answers()
            connection.send(outgoing(context("c", attempt=3)), answers)
            await begun.wait()
            connection.reset("c", 2)
            connection.reset("other", 3)
            connection.reset("c", 3)
            answer = await answers.wait()
            assert (reason(answer), answer.side_effect) == ("CANCELLED", SideEffect.UNKNOWN)
            await connection.close()
            assert len(answers.got) == 1

    run(story())


def test_closing_ends_open_calls_as_unknown() -> None:
    async def story() -> None:
        begun = asyncio.Event()
        async with peer(hanging(begun)) as served:
            connection = to(served.port)
            answers = Answers()
            connection.send(outgoing(), answers)
            await begun.wait()
            await connection.close()
            assert (await answers.wait()).side_effect is SideEffect.UNKNOWN
            assert reason(await one_call(connection)) == "OVERLOADED"

    run(story())
