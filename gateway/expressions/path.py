"""Paths such as `act.results[0].output`: which value, found as the source bytes it was written in.

A name selects a member of an object and a number an element of an array, nothing else: there is no
coercion, so that a path means the same for every document. Found bytes are copies.
"""

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
        return Finder(scope).find(self)


class Finder:
    """Finds many paths in one scope; no container is read twice, however many paths cross it."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._texts: dict[tuple[str | int, ...], bytes | None] = {}
        self._members: dict[tuple[str | int, ...], dict[str, msgspec.Raw]] = {}
        self._elements: dict[tuple[str | int, ...], list[msgspec.Raw]] = {}

    def find(self, path: Path) -> bytes | None:
        """The exact source text of the value, or None if there is none."""
        return self._text((path.root, *path.parts))

    def _text(self, keys: tuple[str | int, ...]) -> bytes | None:
        if keys not in self._texts:
            self._texts[keys] = self._child(keys[:-1], keys[-1]) if keys[1:] else self._root(keys)
        return self._texts[keys]

    def _root(self, keys: tuple[str | int, ...]) -> bytes | None:
        data = self._scope.get(str(keys[0]))
        return None if data is None else data.strip(_WHITE)

    def _child(self, keys: tuple[str | int, ...], part: str | int) -> bytes | None:
        container = self._text(keys)
        if container is None:
            return None
        child: msgspec.Raw | None = None
        if isinstance(part, str) and container[:1] == b"{":
            if keys not in self._members:
                self._members[keys] = _MEMBERS.decode(container)
            child = self._members[keys].get(part)
        elif isinstance(part, int) and container[:1] == b"[":
            if keys not in self._elements:
                self._elements[keys] = _ELEMENTS.decode(container)
            elements = self._elements[keys]
            child = elements[part] if part < len(elements) else None
        return None if child is None else bytes(child)


def _spelled(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if part.isidentifier() else f"[{msgspec.json.encode(part).decode()}]"
