"""Secrets masked, in JSON and in text, before anybody but the components sees them. Pure.

Secret is what stands in a field that is called so (by name, path, or a card's schema), and what
looks like a secret (`secret_shapes`). A field's value becomes `"***"`, whatever it was; inside a
text `***` with the kind, unless the words before it say the kind. All else stays byte for byte, so
JSON stays JSON, and what has no secret is the very same object. Masking twice changes nothing.
What was secret in one place of a session can be hidden in all others (`values`, `known`).
"""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

import msgspec

from acp_spec.codec.secret_schema import ANY_KEY, KeyPath
from gateway.telemetry.json_walk import Malformed, decoded, encoded, pieces
from gateway.telemetry.secret_names import (
    DEFAULT_FIELDS,
    LOWER,
    WORD_CHARACTERS_MIN,
    FieldNames,
    is_path,
)
from gateway.telemetry.secret_patterns import checked
from gateway.telemetry.secret_shapes import (
    CARD_DIGITS_MIN,
    SHAPES,
    Shape,
    by_pattern,
)

MASK: Final = "***"
MASKED_FIELD: Final = b'"***"'

NESTED_MAX: Final = 4
"""JSON inside a string inside JSON: so deep it is read as JSON, below as text."""

ROUNDS_MAX: Final = 4

RULES: Final = 2
"""Raise it when the same fields and patterns mask something else than before."""

KINDS: Final = tuple(shape.kind for shape in SHAPES)

KNOWN_CHARACTERS_MIN: Final = 6
"""Shorter values stand in other places by chance."""

KNOWN_MAX: Final = 1_000

Known = tuple[str, ...]
"""Values that are secret wherever they stand."""

NOTHING_KNOWN: Final[Known] = ()
NOTHING: Final[frozenset[KeyPath]] = frozenset()

_WHO: Final = re.compile(r"(?:gateway/[a-z-]{1,40}/)?token:[0-9a-f]{12}")
"""Who said or did something, by the token shown: its id, which opens nothing. Where that is all of
a text it stays: reviewers would be one and the same otherwise."""

_SAYS_NOTHING: Final = frozenset((b"null", b"true", b"false"))
_MASKED: Final = re.compile(r"\*\*\*(?:\([a-z_]{1,40}\))?")


class Masker:
    """One gateway's notion of what is secret. It never changes; anybody may share it."""

    __slots__ = ("_assigned", "_fields", "_looks", "_shapes", "digest")

    def __init__(
        self, fields: Collection[str] = (), patterns: Mapping[str, str] | None = None
    ) -> None:
        """`fields`: further ones beside `DEFAULT_FIELDS`; `-name` takes one of those away.

        `patterns`: further kinds, each a pattern; an empty one switches a known kind off. Raises
        ValueError for what cannot be used, and says why.
        """
        given = patterns or {}
        unknown = [kind for kind, one in given.items() if not one and kind not in KINDS]
        if unknown:
            raise ValueError(
                f"{unknown[0]}: no pattern, and no kind to switch off: {', '.join(KINDS)}"
            )
        self._fields = FieldNames(_fields(fields))
        self._shapes = (
            *(shape for shape in SHAPES if given.get(shape.kind) != ""),
            *(
                Shape(kind, (), by_pattern(checked(kind, pattern)))
                for kind, pattern in given.items()
                if pattern
            ),
        )
        self._looks = tuple(
            (tuple(need.encode() for need in shape.needs), shape.may_hold) for shape in self._shapes
        )
        self._assigned = _assignments(self._fields.names)
        told = msgspec.json.encode((RULES, self._fields.all, KINDS, given))
        self.digest = hashlib.sha256(told).hexdigest()
        """Another one for whatever else would be masked."""

    def json(
        self, data: bytes, declared: frozenset[KeyPath] = NOTHING, *, known: Known = NOTHING_KNOWN
    ) -> bytes:
        """A JSON document without its secrets; `declared`: those that a schema names.

        `known`: values that are secret wherever they stand. What is no JSON is masked as text.
        """
        if not (self.may_hold(data) or _may_declare(data, declared) or _may_know(data, known)):
            return data
        if () in declared:
            return MASKED_FIELD
        try:
            return self._changed(data, declared, nested=0, known=known)
        except Malformed:
            text = data.decode("utf-8", "surrogateescape")
            return self.text(text, known=known).encode("utf-8", "surrogateescape")

    def text(self, text: str, *, known: Known = NOTHING_KNOWN) -> str:
        """A text without its secrets: what looks like one, and what stands behind a secret name."""
        for value in known:
            if value in text:
                text = text.replace(value, MASK)
        if not self.may_hold(text.encode("utf-8", "surrogatepass")) or _WHO.fullmatch(text):
            return text
        return self._text(text)

    def values(self, data: bytes, declared: frozenset[KeyPath] = NOTHING) -> Known:
        """What stands in a document's secret fields, where it is long enough to be known again."""
        may_have = self._fields.may_be_in(data) or b"\\u" in data
        if not may_have and not _may_declare(data, declared):
            return ()
        found: dict[str, None] = {}
        try:
            for piece in pieces(data, lambda keys: self._is_secret(keys, declared)):
                if piece.is_whole or () in declared:
                    found |= dict.fromkeys(_scalars(data[piece.start : piece.end]))
        except Malformed:
            pass  # a text has no fields
        return tuple(sorted(found, key=len, reverse=True))[:KNOWN_MAX]

    def may_hold(self, data: bytes) -> bool:
        """A few fast searches over all of it. False only where nothing would be masked."""
        return b"\\u" in data or b"\\/" in data or self._may_hold(data)

    def named(self, name: str) -> bool:
        """Whether a field of this name is secret, wherever it stands."""
        return self._fields.holds((name,))

    # ---- whether to look at all ------------------------------------------------------------------

    def _may_hold(self, data: bytes) -> bool:
        if self._fields.may_be_in(data):
            return True
        lower = data.translate(LOWER)
        for needs, may_hold in self._looks:
            if may_hold is not None and not may_hold(data):
                continue
            if not needs:
                return True
            for need in needs:
                if need in lower:
                    return True
        return False

    # ---- text ------------------------------------------------------------------------------------

    def _text(self, text: str) -> str:
        """A mask can lay bare where another secret begins: what changed is looked at again."""
        for _ in range(ROUNDS_MAX):
            before, text = text, self._once(text)
            if text == before:
                break
        return text

    def _once(self, text: str) -> str:
        lower = text.lower()
        for shape in self._shapes:
            if not shape.needs or any(need in lower for need in shape.needs):
                text = _replaced(text, shape)
        if self._assigned is None or not self._fields.may_be_in(text.encode("utf-8", "replace")):
            return text
        return self._assigned.sub(_hide_value, text)

    # ---- JSON ------------------------------------------------------------------------------------

    def _changed(
        self, data: bytes, declared: frozenset[KeyPath], *, nested: int, known: Known
    ) -> bytes:
        """The document with its secrets replaced. Raises Malformed."""
        try:
            msgspec.json.decode(data, type=msgspec.Raw)  # `pieces` alone takes more for JSON
        except (msgspec.DecodeError, RecursionError):
            raise Malformed from None
        parts: list[bytes] = []
        done = 0
        for piece in pieces(data, lambda keys: self._is_secret(keys, declared)):
            said = data[piece.start : piece.end]
            instead = self._instead(said, nested, is_secret=piece.is_whole, known=known)
            if instead is not said:
                parts += (data[done : piece.start], instead)
                done = piece.end
        return b"".join((*parts, data[done:])) if parts else data

    def _is_secret(self, keys: KeyPath, declared: frozenset[KeyPath]) -> bool:
        return self._fields.holds(keys) or (
            bool(declared) and any(is_path(path, keys) for path in declared)
        )

    def _instead(self, said: bytes, nested: int, *, is_secret: bool, known: Known) -> bytes:
        """What stands instead of one piece; the same object where it may stay."""
        if is_secret:
            return said if said in _SAYS_NOTHING else MASKED_FIELD
        if said[:1] != b'"':
            return self._number(said, known)
        text = decoded(said)
        masked = self._string(text, nested, known=known)
        return said if masked == text else encoded(masked)

    def _number(self, said: bytes, known: Known) -> bytes:
        if known and said.decode("ascii", "replace") in known:
            return MASKED_FIELD
        if not said.isdigit() or len(said) < CARD_DIGITS_MIN:
            return said
        text = said.decode()
        masked = self._text(text)
        return said if masked == text else encoded(masked)

    def _string(self, text: str, nested: int, *, known: Known) -> str:
        """A string of a document, which may itself hold a document."""
        if nested < NESTED_MAX and text[:1] in ("{", "["):
            try:
                inner = text.encode()
                return self._changed(inner, NOTHING, nested=nested + 1, known=known).decode()
            except (Malformed, UnicodeEncodeError):
                pass
        return self.text(text, known=known)


def _fields(given: Collection[str]) -> tuple[str, ...]:
    """The usual fields and the given ones, without those taken away."""
    away = {field[1:] for field in given if field.startswith("-")}
    unknown = away.difference(DEFAULT_FIELDS)
    if unknown:
        raise ValueError(f"-{min(unknown)}: no usual name, so there is nothing to take away")
    wanted = dict.fromkeys((*DEFAULT_FIELDS, *(one for one in given if not one.startswith("-"))))
    return tuple(one for one in wanted if one not in away)


def _scalars(value: bytes) -> Iterator[str]:
    """The strings and numbers of a value, long enough not to be met by chance."""
    for piece in pieces(value, lambda _keys: False):
        said = value[piece.start : piece.end]
        text = decoded(said) if said[:1] == b'"' else said.decode()
        if len(text) >= KNOWN_CHARACTERS_MIN and not _MASKED.fullmatch(text):
            yield text


def _may_know(data: bytes, known: Known) -> bool:
    """What JSON must write otherwise has a backslash."""
    return bool(known) and (
        b"\\" in data or any(one.encode("utf-8", "surrogatepass") in data for one in known)
    )


def _may_declare(data: bytes, declared: frozenset[KeyPath]) -> bool:
    return bool(data) and any(
        not path or path[-1] == ANY_KEY or path[-1].encode() in data for path in declared
    )


def _replaced(text: str, shape: Shape) -> str:
    parts: list[str] = []
    done = 0
    for start, end in shape.find(text):
        if start >= done and end > start and not _MASKED.fullmatch(text, start, end):
            mask = MASK if shape.is_introduced else f"{MASK}({shape.kind})"
            parts += (text[done:start], mask)
            done = end
    return "".join((*parts, text[done:])) if parts else text


def _assignments(names: tuple[str, ...]) -> re.Pattern[str] | None:
    """`name = value` in a text, however it is quoted."""
    if not names:
        return None
    written = "|".join(
        (r"(?<![a-z])" if len(name) < WORD_CHARACTERS_MIN else "")
        + r"[_. -]?".join(map(re.escape, re.split(r"[_. -]", name)))
        for name in sorted(names, key=len, reverse=True)
    )
    return re.compile(
        rf"(?P<said>(?:{written})[0-9]{{0,4}}+"
        r"\\{0,3}+[\"']?[ \t]{0,8}+(?>=>|:=|[:=])[ \t]{0,8}+"
        r"(?:(?:bearer|basic)[ \t]{1,8}+)?+)"
        r"(?!(?:null|none|true|false|\*\*\*(?:\([a-z_]{1,40}\))?)(?![^\s,;&}\]]))"
        r"(?P<value>(?P<escaped>\\{1,3}+[\"'])(?:[^\"'\\]){1,8192}+"
        r'|"(?:[^"\\]|\\.){1,8192}+'
        r"|'(?:[^'\\]|\\.){1,8192}+"
        r"|(?:[^\s\"'&;,\\]|[,;](?=\S)){1,8192}+)",
        re.ASCII | re.IGNORECASE | re.DOTALL,
    )


def _hide_value(found: re.Match[str]) -> str:
    value = found["value"]
    if _MASKED.fullmatch(value.strip("\"'\\")):
        return found[0]
    quote = found["escaped"] or (value[0] if value[0] in "\"'" else "")
    return f"{found['said']}{quote}{MASK}"


DEFAULT: Final = Masker()
"""With the names and shapes that hold where an operator says nothing."""
