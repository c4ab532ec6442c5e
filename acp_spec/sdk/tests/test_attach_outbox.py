"""What one tick puts leaves as one message; large bodies take turns and delay nobody."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from acp_spec.codec import frames
from acp_spec.codec.refusals import Direction
from acp_spec.model.attach import Key
from acp_spec.model.calls import ExecuteResponse
from acp_spec.model.payload import payload
from acp_spec.sdk.attach_outbox import FRAMES_AT_ONCE, Outbox, pump
from acp_spec.sdk.attach_pieces import Pieces
from acp_spec.sdk.testing import settle_loop

MIB = 1024 * 1024


def body(key: Key, size: int) -> bytes:
    return frames.answer_body(key, ExecuteResponse(output=payload(b'"%b"' % (b"x" * size))))


def read(message: list[bytes]) -> list[frames.FromComponent]:
    data = frames.component_calls(message)
    return frames.read_component_calls(data, max_bytes=1 << 30)[1]


def test_everything_put_in_one_tick_is_one_message() -> None:
    async def story() -> None:
        outbox, written = Outbox(of_gateway=False), []

        async def write(data: bytes) -> None:
            written.append(frames.read_component_calls(data, max_bytes=MIB)[1])

        writing = asyncio.create_task(pump(outbox, join=frames.component_calls, write=write))
        for number in range(FRAMES_AT_ONCE):
            key = (f"c{number}", 1)
            outbox.put_body(key, body(key, 10))
        await settle_loop()
        outbox.put(frames.credits_frame(1))
        await settle_loop()
        for _ in range(2 * FRAMES_AT_ONCE + 1):
            outbox.put(frames.credits_frame(1))
        await settle_loop()
        writing.cancel()
        counts = [len(message) for message in written]
        assert counts == [FRAMES_AT_ONCE, 1, FRAMES_AT_ONCE, FRAMES_AT_ONCE, 1]

    asyncio.run(story())


def test_what_gathers_while_a_write_waits_leaves_with_the_next() -> None:
    async def story() -> None:
        outbox, sizes, may_go = Outbox(of_gateway=False), [], asyncio.Event()

        async def write(data: bytes) -> None:
            sizes.append(len(frames.read_component_calls(data, max_bytes=MIB)[1]))
            await may_go.wait()

        writing = asyncio.create_task(pump(outbox, join=frames.component_calls, write=write))
        for _ in range(3):
            outbox.put(frames.credits_frame(1))
            await settle_loop()
        may_go.set()
        await settle_loop()
        writing.cancel()
        assert sizes == [1, 2]

    asyncio.run(story())


def test_small_frames_pass_a_large_one_and_large_ones_take_turns() -> None:
    outbox = Outbox(of_gateway=False)
    large = {("a", 1): body(("a", 1), 3 * MIB), ("b", 1): body(("b", 1), 3 * MIB)}
    for key, whole in large.items():
        outbox.put_body(key, whole)
    outbox.put_body(("small", 1), body(("small", 1), 10))
    first = read(outbox.drain())
    assert isinstance(first[0], frames.Answered)
    assert first[0].key == ("small", 1)
    pieces = [piece.key[0] for piece in first[1:] if isinstance(piece, frames.Piece)]
    assert pieces[:2] == ["a", "b"]
    outbox.put_body(("later", 1), body(("later", 1), 10))
    second = read(outbox.drain())
    assert isinstance(second[0], frames.Answered)
    assert second[0].key == ("later", 1)
    assert len(second) > 1, "and the large ones go on"


def test_no_frame_and_no_message_is_over_its_limit() -> None:
    outbox = Outbox(of_gateway=True)
    sizes = [10, 200_000, 300_000, 250_000, 3 * MIB, 261_120, 100]
    for number, size in enumerate(sizes):
        key = (f"c{number}", 1)
        outbox.put_body(key, body(key, size))
    while not outbox.is_empty:
        message = outbox.drain()
        assert message
        assert all(len(frame) <= frames.FRAME_BYTES_MAX for frame in message)
        assert len(frames.gateway_calls(message)) <= frames.MESSAGE_BYTES_MAX


def test_a_body_that_is_not_wanted_any_more_is_not_written() -> None:
    outbox = Outbox(of_gateway=True)
    outbox.put_body(("c", 1), lambda: None)
    assert outbox.drain() == []
    assert outbox.is_empty


@given(st.lists(st.integers(0, 700_000), min_size=1, max_size=4), st.booleans())
def test_whatever_is_put_comes_out_whole_once(sizes: list[int], late: bool) -> None:
    outbox = Outbox(of_gateway=False)
    bodies = {(f"c{n}", 1): body((f"c{n}", 1), size) for n, size in enumerate(sizes)}
    pieces = Pieces(max_bytes=MIB, bodies_max=10, direction=Direction.RESPONSE)
    come: list[Key] = []
    waiting = list(bodies.items())
    while waiting or not outbox.is_empty:
        for key, whole in waiting[: 1 if late else None]:
            outbox.put_body(key, whole)
        waiting = waiting[1:] if late else []
        for frame in read(outbox.drain()):
            match frame:
                case frames.Answered(key=key):
                    come.append(key)
                case frames.Piece():
                    joined = pieces.add(frame)
                    if joined is not None:
                        assert joined == bodies[frame.key]
                        come.append(frame.key)
                case _:
                    raise AssertionError(frame)
    assert sorted(come) == sorted(bodies)
