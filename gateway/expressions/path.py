"""Paths such as `act.results[0].output`: which value, found as the source bytes it was written in.

A name selects a member of an object and a number an element of an array, nothing else: there is no
coercion, so that a path means the same for every document. Found bytes are copies.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

_WHITE: Final = b" \t\r\n"
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ELEMENTS: Final = msgspec.json.Decoder(list[msgspec.Raw])


class Scope(Protocol):
    """The values that an expression can name. `get` gives JSON text by root name, lazily."""

    def get(self, name: str, /) -> bytes | None:
        """The JSON text of a root name; None if there is no such name (null is b"null")."""
        ...


@dataclass(frozen=True, slots=True)
class Path:
    """A root name and the members and elements below it.

    `column` is where it stands in the text; two paths are equal wherever they stand.
    """

    root: str
    parts: tuple[str | int, ...] = ()
    column: int = field(default=1, compare=False)

    def __str__(self) -> str:
        return self.root + "".join(_spelled(part) for part in self.parts)

    def find(self, scope: Scope) -> bytes | None:
        """The exact source text of the value, or None if there is none."""
        data = scope.get(self.root)
        return None if data is None else _descend(data.strip(_WHITE), self.parts)


def _descend(value: bytes, parts: Sequence[str | int]) -> bytes | None:
    for part in parts:
        opener = value[:1]
        if isinstance(part, str):
            child = _MEMBERS.decode(value).get(part) if opener == b"{" else None
        elif opener == b"[":
            elements = _ELEMENTS.decode(value)
            child = elements[part] if part < len(elements) else None
        else:
            child = None
        if child is None:
            return None
        value = bytes(child)
    return value


def _spelled(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if part.isidentifier() else f"[{msgspec.json.encode(part).decode()}]"
