"""The strings and numbers of a JSON document where they stand, without building any of it. Pure.

For whoever changes a few bytes of a document and must leave all others alone. One pass, one stack.
It checks brackets and strings only: that all of it is JSON is for the caller to know.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],:]|[^\s{}\[\],:"]++', re.DOTALL)
_OPEN, _CLOSE = b"{[", b"}]"
_QUOTE, _OBJECT, _OBJECT_END, _COMMA, _COLON = b'"{},:'

IsWanted = Callable[[tuple[str, ...]], bool]
"""Whether the value under these keys (from the root; arrays left out) is wanted whole."""


class Malformed(Exception):
    """It is no JSON."""


class Piece(NamedTuple):
    """A key, or a string, number or word; or, where `is_whole`, any value that was wanted."""

    start: int
    end: int
    is_whole: bool


def pieces(data: bytes, is_wanted: IsWanted) -> Iterator[Piece]:
    """All pieces from front to back. Raises Malformed, possibly after some pieces."""
    walk = _Walk(is_wanted)
    for token in _TOKEN.finditer(data):
        piece = walk.take(data[token.start()], token)
        if piece is not None:
            yield piece
    walk.close()


class _Walk:
    """Where in the document we are."""

    __slots__ = ("_around", "_depth", "_is_wanted", "_keys", "_start", "_wants", "_wants_key")

    def __init__(self, is_wanted: IsWanted) -> None:
        self._is_wanted = is_wanted
        self._around = bytearray()
        self._keys: list[str] = []
        self._wants_key = False
        self._wants = False
        self._depth = 0
        self._start = 0

    def take(self, kind: int, token: re.Match[bytes]) -> Piece | None:
        """The next token."""
        if self._depth:
            return self._inside(kind, token.end())
        if kind == _COMMA:
            self._wants, self._wants_key = False, self._is_in_object()
        elif kind in _OPEN:
            self._open(kind, token.start())
        elif kind in _CLOSE:
            self._shut(kind)
        elif kind != _COLON:
            return self._scalar(kind, token)
        return None

    def close(self) -> None:
        """The document ends here."""
        if self._depth or self._around:
            raise Malformed

    def _is_in_object(self) -> bool:
        return bool(self._around) and self._around[-1] == _OBJECT

    def _inside(self, kind: int, end: int) -> Piece | None:
        """Inside of a value that is wanted whole."""
        self._depth += (kind in _OPEN) - (kind in _CLOSE)
        return None if self._depth else Piece(self._start, end, is_whole=True)

    def _open(self, kind: int, start: int) -> None:
        if self._wants:
            self._depth, self._start = 1, start
            return
        self._around.append(kind)
        self._wants_key = kind == _OBJECT
        if self._wants_key:
            self._keys.append("")

    def _shut(self, kind: int) -> None:
        if not self._around or (self._around.pop() == _OBJECT) != (kind == _OBJECT_END):
            raise Malformed
        if kind == _OBJECT_END:
            self._keys.pop()
        self._wants = self._wants_key = False

    def _scalar(self, kind: int, token: re.Match[bytes]) -> Piece:
        if self._wants_key:
            if kind != _QUOTE:
                raise Malformed
            self._keys[-1], self._wants_key = decoded(token[0]), False
            self._wants = self._is_wanted(tuple(self._keys))
            return Piece(token.start(), token.end(), is_whole=False)
        return Piece(token.start(), token.end(), is_whole=self._wants)


def decoded(quoted: bytes) -> str:
    """What a JSON string says. Raises Malformed."""
    try:
        if b"\\" not in quoted:
            return quoted[1:-1].decode()
        said: object = json.loads(quoted)
    except ValueError:
        raise Malformed from None
    assert isinstance(said, str)
    return said


def encoded(text: str) -> bytes:
    """A text as a JSON string: its letters as they are, where UTF-8 can say them."""
    try:
        return json.dumps(text, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which only an escape can say
        return json.dumps(text).encode()
