"""Putting bodies together from pieces, with every limit enforced (SPEC section 10).

A body that is too large, or whose pieces come in a wrong order, fails alone: its later pieces are
swallowed, the stream goes on.
"""

from dataclasses import dataclass, field

from acp_spec.bindings.errors import error
from acp_spec.codec.frames import Piece, Unreadable, too_large
from acp_spec.codec.refusals import Direction
from acp_spec.model.attach import Key
from acp_spec.model.errors import Reason

# The body's own frame around the message: key, role, lengths.
_HEAD_BYTES = 1024


@dataclass(slots=True)
class _Body:
    """`parts` is None once it has failed."""

    parts: list[bytes] | None = field(default_factory=list)
    size: int = 0
    next_index: int = 0


class Pieces:
    """Bodies that are not whole yet. `bodies_max` bounds how many at once."""

    def __init__(self, *, max_bytes: int, bodies_max: int, direction: Direction) -> None:
        self._max_bytes = max_bytes
        self._bodies_max = bodies_max
        self._direction = direction
        self._bodies: dict[Key, _Body] = {}

    def add(self, piece: Piece) -> bytes | Unreadable | None:
        """The whole body with its last piece; Unreadable at its first fault; else None."""
        body = self._bodies.get(piece.key)
        if body is None:
            if len(self._bodies) >= self._bodies_max:
                return self._failed(piece, "more bodies are in pieces than calls may be open")
            body = self._bodies[piece.key] = _Body()
        if piece.is_last:
            del self._bodies[piece.key]
        if body.parts is None:
            return None
        if piece.index != body.next_index:
            body.parts = None
            return self._failed(piece, f"piece {piece.index} came, {body.next_index} was due")
        body.next_index += 1
        body.size += len(piece.data)
        if body.size > self._max_bytes + _HEAD_BYTES:
            body.parts = None
            return Unreadable(
                piece.key, too_large(body.size, self._max_bytes, direction=self._direction)
            )
        body.parts.append(piece.data)
        return b"".join(body.parts) if piece.is_last else None

    def _failed(self, piece: Piece, why: str) -> Unreadable:
        text = f"the chunks of call {piece.key[0]} attempt {piece.key[1]}: {why}"
        reason = (
            Reason.INVALID_REQUEST
            if self._direction is Direction.REQUEST
            else Reason.CONTRACT_VIOLATION
        )
        return Unreadable(piece.key, error(reason, text))

    def forget(self, key: Key) -> None:
        """Nobody waits for it any more; what still comes of it begins a fault of its own."""
        self._bodies.pop(key, None)

    def clear(self) -> None:
        self._bodies.clear()
