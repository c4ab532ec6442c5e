"""An output or input as fields, and each field's values as shares of bins that a reference fixed.

- declared enums and codes, and texts that look like codes: a bin for each value;
- numbers: quantile bins of the reference; free text: bins of its length, and 64 hashed clusters of
  its three-letter pieces; lists: their length, and their items together.
Bins come from records that are not themselves compared, so that comparing stays exact. Pure.
"""

import binascii
import enum
import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

import msgspec

from gateway.insight.samples import Json
from gateway.insight.taking import escaped

BINS = 10
"""Of numbers and of lengths: deciles tell a shift, and 200 sessions still fill them."""
CLUSTERS = 64
CODES_MAX = 50
"""Different texts that a field of codes may have; beyond it they are free text."""
CODE = re.compile(r"[A-Za-z0-9_.:@/+-]{1,64}")
PIECES_MAX = 2_000
"""Letters of a text that are looked at."""
FIELDS_MAX = 60
"""Fields of one output that are told apart; what goes beyond is not looked at."""

Leaf: TypeAlias = bool | int | float | str | None
Leaves: TypeAlias = Mapping[str, Sequence[Leaf]]
Shares: TypeAlias = dict[int, float]
"""Of one record's value: the bins that it falls into, 1 in all."""


class FieldKind(enum.Enum):
    """How a field's values are put into bins."""

    CODE = "CODE"
    NUMBER = "NUMBER"
    LENGTH = "LENGTH"
    WORDS = "WORDS"


def leaves(value: Json) -> dict[str, list[Leaf]]:
    """The values by pointer; places in lists are `*`, and `<pointer>/#` is a list's length."""
    found: dict[str, list[Leaf]] = {}
    for at, leaf in _leaves(value, at=""):
        if at in found or len(found) < FIELDS_MAX:
            found.setdefault(at, []).append(leaf)
    return found


def _leaves(value: Json, *, at: str) -> Iterator[tuple[str, Leaf]]:
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _leaves(member, at=f"{at}/{escaped(name)}")
    elif isinstance(value, list):
        yield f"{at}/#", len(value)
        for item in value:
            yield from _leaves(item, at=f"{at}/*")
    else:
        yield at or "/", value


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One field with its bins. `codes`: text -> bin; `edges`: lower ends of all bins but the first.
    The first bins are those of a missing value and of what the reference never showed."""

    pointer: str
    kind: FieldKind
    codes: dict[str, int] = {}
    edges: tuple[float, ...] = ()

    @property
    def bins(self) -> int:
        match self.kind:
            case FieldKind.CODE:
                return 2 + len(self.codes)
            case FieldKind.WORDS:
                return 2 + CLUSTERS
            case FieldKind.NUMBER | FieldKind.LENGTH:
                return 2 + len(self.edges) + 1

    def shares(self, record: Leaves) -> Shares:
        """Where this record falls; several items share it evenly."""
        values = record.get(self.pointer)
        if not values:
            return {0: 1.0}
        found: Shares = {}
        for value in values:
            for place, share in self._placed(value):
                found[place] = found.get(place, 0.0) + share / len(values)
        return found

    def _placed(self, value: Leaf) -> Iterable[tuple[int, float]]:
        match self.kind:
            case FieldKind.CODE:
                return ((self.codes.get(code_of(value), 1), 1.0),)
            case FieldKind.NUMBER:
                number = number_of(value)
                return ((1 if number is None else 2 + bisect_right(self.edges, number), 1.0),)
            case FieldKind.LENGTH:
                length = len(value) if isinstance(value, str) else None
                return ((1 if length is None else 2 + bisect_right(self.edges, length), 1.0),)
            case FieldKind.WORDS:
                return words_of(value)


def code_of(value: Leaf) -> str:
    """A value as a code: texts as they are, others as JSON writes them."""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def number_of(value: Leaf) -> float | None:
    """A number that is one: neither a truth value nor beyond all bounds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def words_of(value: Leaf) -> list[tuple[int, float]]:
    """A text as shares of the clusters of its three-letter pieces."""
    if not isinstance(value, str):
        return [(1, 1.0)]
    text = f" {value[:PIECES_MAX].casefold()} "
    pieces = [text[start : start + 3] for start in range(max(1, len(text) - 2))]
    share = 1.0 / len(pieces)
    return [(2 + cluster_of(piece), share) for piece in pieces]


def cluster_of(piece: str) -> int:
    """The same in every process, unlike `hash`."""
    return binascii.crc32(piece.encode("utf-8", "surrogatepass")) % CLUSTERS


def fields_of(
    reference: Sequence[Leaves], *, declared: Mapping[str, Sequence[str]] | None = None
) -> list[Field]:
    """The fields that the reference shows, and those declared: their codes, pointer by pointer."""
    declared = declared or {}
    values: dict[str, list[Leaf]] = {pointer: [] for pointer in declared}
    for record in reference:
        for pointer, found in record.items():
            values.setdefault(pointer, []).extend(found)
    fields: list[Field] = []
    for pointer in sorted(values)[:FIELDS_MAX]:
        if pointer in declared:
            codes = [*declared[pointer], *sorted({code_of(one) for one in values[pointer]})]
            fields.append(_codes(pointer, list(dict.fromkeys(codes))))
        else:
            fields += _inferred(pointer, values[pointer])
    return fields


def _codes(pointer: str, codes: Sequence[str]) -> Field:
    kept = {code: place for place, code in enumerate(codes[: CODES_MAX * 4], 2)}
    return Field(pointer=pointer, kind=FieldKind.CODE, codes=kept)


def _inferred(pointer: str, values: Sequence[Leaf]) -> list[Field]:
    """By most of its values: numbers, else codes where the texts look like them, else free text."""
    numbers = [number for one in values if (number := number_of(one)) is not None]
    texts = [one for one in values if isinstance(one, str)]
    if len(numbers) * 2 > len(values):
        edges = _edges(numbers)
        return [Field(pointer=pointer, kind=FieldKind.NUMBER, edges=edges)]
    different = sorted({code_of(one) for one in values})
    is_code = all(CODE.fullmatch(one) for one in texts)
    is_small = len(different) <= BINS or len(different) * 2 <= len(values)
    if is_code and is_small and len(different) <= CODES_MAX:
        return [_codes(pointer, different)]
    edges = _edges([float(len(one)) for one in texts])
    return [
        Field(pointer=pointer, kind=FieldKind.LENGTH, edges=edges),
        Field(pointer=pointer, kind=FieldKind.WORDS),
    ]


def _edges(numbers: Sequence[float]) -> tuple[float, ...]:
    """Lower ends of bins with about as many reference values each. A value that fills more than
    one bin has one of its own: what was always 7 and now is 8 has changed."""
    if not numbers:
        return ()
    ordered = sorted(numbers)
    cuts = [ordered[len(ordered) * part // BINS] for part in range(1, BINS)]
    often = {cut for cut, next_cut in pairwise(cuts) if cut == next_cut}
    return tuple(sorted({*cuts, *(math.nextafter(cut, math.inf) for cut in often)}))
