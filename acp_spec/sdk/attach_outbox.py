"""What waits to be written on one attach stream, and the task that writes it (SPEC section 10).

Everything put in one tick of the loop leaves as one message: a list of frames (a crowd as several).
While a write waits for the peer, more gathers. A body over one frame goes in pieces that take turns
with all others, so a large payload delays nobody. Both sides of attach use it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from acp_spec.codec.frames import (
    CHUNK_BYTES,
    FRAME_BYTES_MAX,
    MESSAGE_BYTES_MAX,
    Piece,
    answer_frame,
    call_frame,
    piece_frame,
)
from acp_spec.model.attach import Key

WriteBody = Callable[[], bytes | None]
"""Makes the body when it is written, so that its time is stamped then; None: not wanted now."""
Body = bytes | WriteBody
FRAMES_AT_ONCE: Final = 40
"""The peer begins on these while the next are made. Without it both sides wait for each other in
turns: measured, 64 in flight, 10 to 20% fewer sessions at the same cost each.
"""


@dataclass(slots=True)
class _Large:
    key: Key
    body: bytes
    index: int = 0

    def next_piece(self) -> Piece:
        start = self.index * CHUNK_BYTES
        data = self.body[start : start + CHUNK_BYTES]
        piece = Piece(self.key, self.index, start + CHUNK_BYTES >= len(self.body), data)
        self.index += 1
        return piece


class Outbox:
    """Frames of one direction of one stream. Used on the loop's thread."""

    def __init__(self, *, of_gateway: bool) -> None:
        self._of_gateway = of_gateway
        self._whole = call_frame if of_gateway else answer_frame
        self._frames: deque[bytes | tuple[Key, Body]] = deque()
        self._large: deque[_Large] = deque()
        self._wake = asyncio.Event()

    def put(self, frame: bytes) -> None:
        """A frame as it is."""
        self._frames.append(frame)
        self._wake.set()

    def put_body(self, key: Key, body: Body) -> None:
        """A call or an answer, whole or in pieces as its size wants."""
        self._frames.append((key, body))
        self._wake.set()

    def drain(self) -> list[bytes]:
        """The frames of the next message: small ones in order, then pieces, each large one in turn.

        Empty when there is nothing to write (any more).
        """
        out: list[bytes] = []
        size = 0
        # Small ones never keep the large ones from moving: one frame of the message is theirs.
        room = MESSAGE_BYTES_MAX - 2 * FRAME_BYTES_MAX
        while self._frames and size <= room and len(out) < FRAMES_AT_ONCE:
            frame = self._next()
            if frame:
                out.append(frame)
                size += len(frame)
        while self._large and size <= MESSAGE_BYTES_MAX - FRAME_BYTES_MAX:
            large = self._large.popleft()
            piece = large.next_piece()
            if not piece.is_last:
                self._large.append(large)
            out.append(piece_frame(piece, of_gateway=self._of_gateway))
            size += len(out[-1])
        if not self._frames and not self._large:
            self._wake.clear()
        return out

    def _next(self) -> bytes | None:
        entry = self._frames.popleft()
        if isinstance(entry, bytes):
            return entry
        key, stated = entry
        body = stated if isinstance(stated, bytes) else stated()
        if body is None:
            return None
        if len(body) > CHUNK_BYTES:
            self._large.append(_Large(key, body))
            return None
        return self._whole(body)

    async def wait(self) -> None:
        """Return once there is something to drain."""
        await self._wake.wait()

    @property
    def is_empty(self) -> bool:
        return not self._frames and not self._large

    def __len__(self) -> int:
        """Frames and bodies that wait."""
        return len(self._frames) + len(self._large)


async def pump(
    outbox: Outbox,
    *,
    join: Callable[[list[bytes]], bytes],
    write: Callable[[bytes], Awaitable[None]],
) -> None:
    """Write what is put, a message at a time, until cancelled or until `write` raises."""
    while True:
        await outbox.wait()
        frames = outbox.drain()
        if frames:
            await write(join(frames))
