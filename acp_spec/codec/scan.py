"""The one check that every payload passes where it enters: is this text we may carry on unchanged?

A payload is JSON text that is never re-encoded, so whatever passes here reaches the other side byte
for byte. Refused are: text that is not JSON, bytes that are not UTF-8, keys that occur twice, lone
surrogates, nesting over 48, and too many bytes. Numbers may have any size and precision.
It must not return a parsed value (nobody may be tempted to write it out again), and it must stay
linear: every step is one call into a compiled library, about 10 us per KB.
"""

import gc
import re
from enum import Enum
from typing import Final

import jiter

# Deep enough for any real document, shallow enough for recursive readers in any language.
MAX_NESTING: Final = 48
# Above this size a document may hold so many containers that the cyclic collector would run over
# them again and again (measured: 1.1 s instead of 0.13 s for 4 MiB of brackets).
_PAUSE_COLLECTOR_BYTES: Final = 64 * 1024
# A person who looks for the place does not need it beyond this line; finding it there is costly.
_LINES_MAX: Final = 10_000
# The parser refuses integers over 4300 digits; from here on digits are cut before a second look.
_LONG_DIGITS: Final = 4000

_ONE_KIND: Final = bytes.maketrans(b"{}", b"[]")
_NOT_STRUCTURE: Final = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_STRING_OR_LONG_NUMBER: Final = re.compile(
    rb'"(?:[^"\\]|\\.)*+"?|[0-9]{%d,}' % _LONG_DIGITS, re.DOTALL
)
_STRING_OR_BRACKET: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[][{}]', re.DOTALL)
_PARSER_PLACE: Final = re.compile(r"^(.*) at line (\d+) column (\d+)$", re.DOTALL)


class PayloadProblem(Enum):
    """Why a payload is refused; the value is the beginning of the sentence for a person."""

    TOO_LARGE = "the payload is too large"
    NOT_JSON = "the payload is not JSON"
    NOT_UTF8 = "the payload is not valid UTF-8"
    DUPLICATE_KEY = "an object has the same key twice"
    LONE_SURROGATE = "a string holds half of a surrogate pair"
    TOO_DEEP = f"arrays and objects are nested more than {MAX_NESTING} deep"
    TRAILING_TEXT = "there is text after the JSON value"


# What the parser says -> what is wrong. Anything else it says is NOT_JSON.
_SAID_BY_PARSER: Final = (
    ("Detected duplicate key", PayloadProblem.DUPLICATE_KEY),
    ("recursion limit exceeded", PayloadProblem.TOO_DEEP),
    ("trailing characters", PayloadProblem.TRAILING_TEXT),
    ("lone leading surrogate", PayloadProblem.LONE_SURROGATE),
    ("unexpected end of hex escape", PayloadProblem.LONE_SURROGATE),
    ("invalid unicode code point", PayloadProblem.LONE_SURROGATE),
)
_NUMBER_TOO_LONG: Final = "number out of range"


class PayloadRefused(ValueError):
    """A payload that may not enter. `offset` is the byte where it was noticed (0 if unknown)."""

    def __init__(self, problem: PayloadProblem, offset: int, *, detail: str = "") -> None:
        self.problem: Final = problem
        self.offset: Final = offset
        self.detail: Final = detail
        super().__init__(f"{problem.value} (byte {offset}{': ' + detail if detail else ''})")


def check_payload(data: bytes, *, max_bytes: int) -> None:
    """Promise that `data` is JSON text fit to be carried; raises PayloadRefused otherwise."""
    if len(data) > max_bytes:
        detail = f"{len(data)} bytes, at most {max_bytes} are allowed"
        raise PayloadRefused(PayloadProblem.TOO_LARGE, max_bytes, detail=detail)
    try:
        _parse(data)
    except ValueError as error:
        _explain(data, str(error))
    # Few openers cannot nest deeply.
    has_many = data.count(b"[") + data.count(b"{") > MAX_NESTING
    if has_many and _nesting_is_over(data, MAX_NESTING):
        raise PayloadRefused(PayloadProblem.TOO_DEEP, _offset_of_nesting(data, MAX_NESTING))


def _parse(data: bytes) -> None:
    """Run the compiled parser and drop what it built. Its ValueErrors carry a line and a column."""
    if len(data) < _PAUSE_COLLECTOR_BYTES or not gc.isenabled():
        jiter.from_json(data, allow_inf_nan=False, cache_mode="none", catch_duplicate_keys=True)
        return
    gc.disable()
    try:
        jiter.from_json(data, allow_inf_nan=False, cache_mode="none", catch_duplicate_keys=True)
    finally:
        gc.enable()


def _explain(data: bytes, said: str) -> None:
    """Raise PayloadRefused for what the parser said; returns only if it was wrong to refuse."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PayloadRefused(PayloadProblem.NOT_UTF8, error.start, detail=error.reason) from None
    place = _PARSER_PLACE.match(said)
    what, offset = (
        (place[1], _offset(data, line=int(place[2]), column=int(place[3]))) if place else (said, 0)
    )
    if what.startswith(_NUMBER_TOO_LONG):
        _check_with_short_numbers(data)
        return
    for beginning, problem in _SAID_BY_PARSER:
        if what.startswith(beginning):
            raise PayloadRefused(problem, offset, detail=what)
    raise PayloadRefused(PayloadProblem.NOT_JSON, offset, detail=what)


def _check_with_short_numbers(data: bytes) -> None:
    """A number of any length is JSON: look again with each long run of digits cut, strings kept.

    Offsets of later problems are then those in the cut text, so they are reported as unknown.
    """
    shortened = _STRING_OR_LONG_NUMBER.sub(
        lambda found: found[0] if found[0][:1] == b'"' else found[0][:20], data
    )
    try:
        _parse(shortened)
    except ValueError as error:
        try:
            _explain(shortened, str(error))
        except PayloadRefused as refused:
            raise PayloadRefused(refused.problem, 0, detail=refused.detail) from None


def _offset(data: bytes, *, line: int, column: int) -> int:
    """The byte that a parser's line and column (both from 1) point at, inside `data`."""
    if line > _LINES_MAX:
        return 0
    start = 0
    for _ in range(line - 1):
        start = data.find(b"\n", start) + 1
    return min(max(start + column - 1, 0), max(len(data) - 1, 0))


def _nesting_is_over(data: bytes, limit: int) -> bool:
    """Whether valid JSON text nests deeper than `limit`.

    Strings go, all brackets become one kind, and each `replace` takes away exactly the innermost
    level: what is left after `limit` rounds is too deep.
    """
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Dropping a pair of neighbouring quotes leaves every other byte inside or outside as it was.
    brackets = data.translate(_ONE_KIND, _NOT_STRUCTURE).replace(b'""', b"")
    if b'"' in brackets:
        brackets = b"".join(brackets.split(b'"')[::2])
    for _ in range(limit):
        if not brackets:
            return False
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)


def _offset_of_nesting(data: bytes, limit: int) -> int:
    """Where valid JSON text opens its level `limit + 1`; not searched for in large text."""
    if len(data) >= _PAUSE_COLLECTOR_BYTES:
        return 0
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(data):
        kind = found[0][:1]
        depth += (kind in b"[{") - (kind in b"]}")
        if depth > limit:
            return found.start()
    return 0
