"""Calls over HTTP for tests: one call to a peer that behaves as told, and what it came to."""

import asyncio

from gateway.runtime.connection import Answer, Outgoing
from gateway.transports.address_guard import HTTP_SCHEMES, parse_component_url
from gateway.transports.http_connection import HttpConnection
from gateway.transports.outbound import ConnectionOptions
from gateway.transports.tests.raw_peer import GUARD, Behaviour, Peer, one_call, peer, run

GOOD = b'{"output":{"cents":0.10,"n":123456789012345678.90},"side_effect":"PERFORMED"}'


def to(
    port: int, *, options: ConnectionOptions = ConnectionOptions(), base: str = ""
) -> HttpConnection:
    target = parse_component_url(f"http://127.0.0.1:{port}{base}", HTTP_SCHEMES)
    return HttpConnection(target, GUARD, options=options)


def answer_of(
    behaviour: Behaviour,
    call: Outgoing | None = None,
    *,
    options: ConnectionOptions = ConnectionOptions(),
) -> Answer:
    """What one call to a peer with this behaviour comes to."""

    async def story() -> Answer:
        async with peer(behaviour) as served:
            connection = to(served.port, options=options)
            answer = await one_call(connection, call)
            await connection.close()
            return answer

    return run(story())


def reason(answer: Answer) -> str:
    assert answer.error is not None
    assert answer.error.side_effect is answer.side_effect
    return answer.error.reason


def then_end(data: bytes) -> Behaviour:
    async def behave(peer: Peer) -> None:
        await peer.request()
        await peer.say(data)

    return behave


async def hung(peer: Peer) -> None:
    await peer.request()
    await asyncio.sleep(60)
