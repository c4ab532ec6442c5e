"""Calls and answers of attach as bytes: whole frames, and pieces with every fault kept.

Both of the suite's sides use it: the one that plays the gateway and the one that plays a component.
"""

from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from conformance_tests.messages.tree import Text, Tree, from_proto, to_proto
from conformance_tests.raw.attach_end import FRAME_BYTES_MAX, length_delimited

Key: TypeAlias = tuple[str, int]
CHUNK_BYTES: Final = FRAME_BYTES_MAX - 1024
_REQUEST_FIELD: Final = {"plan": 3, "execute": 4, "observe": 5, "reflect": 6}
_CALL: Final = 1  # of GatewayCallsFrame


def key_tree(key: Key) -> Tree:
    return {"call_id": key[0], "attempt": key[1]}


def key_of(tree: Tree) -> Key:
    """The key in a frame; attempt 0 where none is stated."""
    found = cast("Tree", tree.get("key", {}))
    return (str(found.get("call_id", "")), int(str(found.get("attempt", 0))))


def call_body(key: Key, do: str, *, request: bytes) -> bytes:
    """A CallFrame around a request's bytes, whatever they are."""
    head = to_proto({"key": key_tree(key), "role": do.upper()}, "CallFrame")
    return head + length_delimited(_REQUEST_FIELD[do], request)


def call_frame(body: bytes) -> bytes:
    return length_delimited(_CALL, body)


def chunks(key: Key, body: bytes, *, size: int = CHUNK_BYTES) -> list[Tree]:
    """The body in pieces, in order."""
    starts = range(0, len(body), size)
    return [
        {
            "key": key_tree(key),
            "index": number,
            "last": start + size >= len(body),
            "data": Text(body[start : start + size]),
        }
        for number, start in enumerate(starts)
    ]


@dataclass(slots=True)
class Pieces:
    """Bodies that are not whole yet; `faults` says what was wrong with a piece."""

    message: str
    faults: list[str] = field(default_factory=list)
    bodies: dict[Key, list[bytes]] = field(default_factory=dict)

    def add(self, chunk: Tree) -> Tree | None:
        """The whole frame with its last piece, else None."""
        key, index = key_of(chunk), int(str(chunk.get("index", 0)))
        parts = self.bodies.setdefault(key, [])
        if index != len(parts):
            self.faults.append(f"chunk {index} came, {len(parts)} was due")
        data = chunk.get("data")
        parts.append(data.data if isinstance(data, Text) else b"")
        if not chunk.get("last"):
            return None
        whole = from_proto(b"".join(self.bodies.pop(key)), self.message)
        if whole is None:
            self.faults.append("the chunks make no message")
        return whole
