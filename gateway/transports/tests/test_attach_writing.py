"""A write to an attached peer is seen to its end before its stream is ended."""

import asyncio

from acp_spec.codec import frames
from acp_spec.sdk.attach_outbox import Outbox
from gateway.transports.attach_server import Writing
from gateway.transports.tests.raw_peer import run


class TakesItsTime:
    """A stream whose peer takes a message when it is let."""

    def __init__(self) -> None:
        self.begun, self.takes = asyncio.Event(), asyncio.Event()
        self.taken: list[bytes] = []

    async def write(self, data: bytes) -> None:
        self.begun.set()
        await self.takes.wait()
        self.taken.append(data)


def test_stopping_waits_for_the_write_that_runs_and_begins_no_other() -> None:
    """A write that was cut off half-way kept gRPC from sending the status: nothing ended."""

    async def story() -> None:
        peer, outbox = TakesItsTime(), Outbox(of_gateway=True)
        writing = Writing(outbox, peer, join=frames.gateway_calls)
        running = asyncio.ensure_future(writing.run())
        outbox.put(frames.ack_frame(("a", 1)))
        await peer.begun.wait()
        outbox.put(frames.ack_frame(("b", 1)))
        stopping = asyncio.ensure_future(writing.stop(running))
        await asyncio.wait({stopping}, timeout=0.05)
        assert not stopping.done(), "the peer has not taken it yet"
        assert not running.cancelled()
        peer.takes.set()
        await asyncio.wait_for(stopping, 5)
        assert running.done()
        assert len(peer.taken) == 1, "what waits behind it is not begun"

    run(story())
