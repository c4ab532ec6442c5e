"""Operations on JSON text that leave every byte they do not own as it was.

Values are found, inserted and put together as source text, so 9007199254740993 and 0.10 come out
as they went in. Input must have passed `scan.check_payload` once (no key twice): nothing is checked
again here. Results are fresh `bytes`, never views that pin the buffer of a whole message.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
import rfc8785

from acp_spec.codec.scan import MAX_NESTING

# A value as a parser of JSON gives it.
Plain: TypeAlias = "bool | int | float | str | Sequence[Plain] | Mapping[str, Plain] | None"

_WHITE: Final = b" \t\r\n"
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ELEMENTS: Final = msgspec.json.Decoder(list[msgspec.Raw])
# What stands before a member's or an element's value: the opener or a comma, and for members a key.
_BEFORE_MEMBER: Final = re.compile(
    rb'[ \t\r\n]*[{,][ \t\r\n]*"(?:[^"\\]|\\.)*+"[ \t\r\n]*:[ \t\r\n]*'
)
_BEFORE_ELEMENT: Final = re.compile(rb"[ \t\r\n]*[\[,][ \t\r\n]*")
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}")
_BAD_ESCAPE: Final = re.compile(r"~(?![01])")
_UINT64_MAX: Final = 2**64 - 1
_INT64_MIN: Final = -(2**63)


class PointerError(ValueError):
    """A JSON Pointer that is malformed, or that names no place where a value could be put."""


class CanonicalError(ValueError):
    """A value that cannot be written as canonical JSON without changing it."""


def parse_pointer(pointer: str) -> tuple[str, ...]:
    """The reference tokens of an RFC 6901 pointer; the empty pointer names the whole document."""
    if not pointer:
        return ()
    if not pointer.startswith("/"):
        raise PointerError(f"JSON Pointer {pointer!r} must be empty or begin with '/'")
    if _BAD_ESCAPE.search(pointer):
        raise PointerError(f"JSON Pointer {pointer!r} may use '~' only as '~0' (~) or '~1' (/)")
    tokens = pointer[1:].split("/")
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in tokens)


def path_to_pointer(path: Sequence[str | int]) -> str:
    """The RFC 6901 pointer for keys and indices from the root down."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def find(data: bytes, pointer: str) -> bytes | None:
    """The exact source text of the value at `pointer`; None if there is none (null is b"null")."""
    value = data.strip(_WHITE)
    for token in parse_pointer(pointer):
        child = _child(value, token)
        if child is None:
            return None
        value = child
    return value


def splice(data: bytes, pointer: str, *, value: bytes) -> bytes:
    """`data` with the JSON text `value` at `pointer`; all bytes around it stay as they are.

    An existing value is replaced; a new member goes to the end of its object, an index equal to the
    array's length, or "-", to the end of the array. Raises PointerError if the parent is missing or
    is not an object or array.
    """
    start, end = _trimmed(data)
    tokens = parse_pointer(pointer)
    if not tokens:
        return data[:start] + value + data[end:]
    *parents, last = tokens
    for depth, token in enumerate(parents):
        span = _child_span(data[start:end], token)
        if span is None:
            raise PointerError(f"{pointer!r}: {_name(parents[: depth + 1])} does not exist")
        start, end = start + span[0], start + span[1]
    container = data[start:end]
    if container[:1] not in (b"{", b"["):
        raise PointerError(f"{pointer!r}: {_name(parents)} is neither an object nor an array")
    span = _child_span(container, last)
    if span is not None:
        return data[: start + span[0]] + value + data[start + span[1] :]
    return data[:start] + _appended(container, last, value=value, pointer=pointer) + data[end:]


def replaced(container: bytes, values: Mapping[str, bytes]) -> bytes:
    """An object or array with these children's texts (by name or index) in the place of the old.

    Every child must be there; all other bytes stay as they are, and the text is read once.
    """
    if container[:1] == b"{":
        children = list(_MEMBERS.decode(container).items())
        gap = _BEFORE_MEMBER
    else:
        elements = _ELEMENTS.decode(container)
        children = [(str(index), child) for index, child in enumerate(elements)]
        gap = _BEFORE_ELEMENT
    assert values.keys() <= {name for name, _ in children}, "only what is there is replaced"
    parts: list[bytes] = []
    kept = end = 0
    for name, child in children:
        found = gap.match(container, end)
        assert found, "the text was not checked: a key occurs twice"
        end = found.end() + len(bytes(child))
        if name in values:
            parts += (container[kept : found.end()], values[name])
            kept = end
    return b"".join((*parts, container[kept:]))


def object_of(fields: Sequence[tuple[str, bytes]]) -> bytes:
    """The text of an object with these members, in order; each value JSON text kept verbatim."""
    members = [msgspec.json.encode(name) + b":" + text for name, text in fields]
    return b"{" + b",".join(members) + b"}"


def array_of(items: Sequence[bytes]) -> bytes:
    """The text of an array with these elements, each JSON text and kept verbatim."""
    return b"[" + b",".join(items) + b"]"


def canonical(value: Plain) -> bytes:
    """RFC 8785 text of a parsed value; an integer that fits 64 bits is written digit for digit.

    (RFC 8785 alone would turn 9007199254740993 into its nearest double.) Raises CanonicalError for
    an integer that would lose precision, for NaN and infinity, lone surrogates, keys that are not
    strings, nesting over 48 and anything that is not JSON.
    """
    parts: list[bytes] = []
    try:
        _write(value, parts, depth_left=MAX_NESTING)
    except UnicodeEncodeError as error:
        raise CanonicalError("a string holds half of a surrogate pair") from error
    return b"".join(parts)


def _write(value: Plain, parts: list[bytes], *, depth_left: int) -> None:
    """Append the canonical text of `value`; recursion is bounded by `depth_left`."""
    match value:
        case None | bool():
            parts.append(_CONSTANTS[value])
        case str():
            parts.append(msgspec.json.encode(value))
        case int():
            parts.append(_integer(value))
        case float():
            parts.append(_double(value))
        case _ if depth_left == 0:
            raise CanonicalError(f"arrays and objects are nested more than {MAX_NESTING} deep")
        case Mapping():
            _write_members(value, parts, depth_left=depth_left - 1)
        case list() | tuple():
            separator = b"["
            for item in value:
                parts.append(separator)
                _write(item, parts, depth_left=depth_left - 1)
                separator = b","
            parts.append(b"]" if value else b"[]")
        case _:
            raise CanonicalError(f"a value of type {type(value).__name__} has no JSON form")


_CONSTANTS: Final[dict[bool | None, bytes]] = {None: b"null", True: b"true", False: b"false"}


def _write_members(value: Mapping[str, Plain], parts: list[bytes], *, depth_left: int) -> None:
    """Members in the order of their UTF-16 code units (RFC 8785 section 3.2.3)."""
    try:
        ordered = sorted(value, key=_utf16)
    except AttributeError:
        raise CanonicalError("an object's keys must be strings") from None
    separator = b"{"
    for key in ordered:
        parts += (separator, msgspec.json.encode(key), b":")
        _write(value[key], parts, depth_left=depth_left)
        separator = b","
    parts.append(b"}" if value else b"{}")


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be")


def _integer(value: int) -> bytes:
    if _INT64_MIN <= value <= _UINT64_MAX:
        return b"%d" % value
    text = _double(float(value)) if abs(value) < 10**300 else b""
    if not text.isdigit() or int(text) != value:
        raise CanonicalError("an integer over 64 bits would lose precision as a double")
    return text


def _double(value: float) -> bytes:
    try:
        return rfc8785.dumps(value)
    except rfc8785.FloatDomainError:
        raise CanonicalError(f"{value} has no JSON form") from None


def _trimmed(data: bytes) -> tuple[int, int]:
    """Where the document's value begins and ends."""
    return len(data) - len(data.lstrip(_WHITE)), len(data.rstrip(_WHITE))


def _child(container: bytes, token: str) -> bytes | None:
    """The text of one member or element, or None."""
    if container[:1] == b"{":
        member = _MEMBERS.decode(container).get(token)
        return None if member is None else bytes(member)
    if container[:1] == b"[" and _INDEX.fullmatch(token):
        elements = _ELEMENTS.decode(container)
        return bytes(elements[int(token)]) if int(token) < len(elements) else None
    return None


def _child_span(container: bytes, token: str) -> tuple[int, int] | None:
    """Where one member's or element's value stands in its container's text, or None.

    The lengths of the values come from the compiled decoder, only the gaps are matched here.
    """
    if container[:1] == b"{":
        members = _MEMBERS.decode(container)
        if token not in members:
            return None
        position, values, gap = list(members).index(token), list(members.values()), _BEFORE_MEMBER
    elif container[:1] == b"[" and _INDEX.fullmatch(token):
        values, position, gap = _ELEMENTS.decode(container), int(token), _BEFORE_ELEMENT
        if position >= len(values):
            return None
    else:
        return None
    start = end = 0
    for value in values[: position + 1]:
        found = gap.match(container, end)
        assert found, "the text was not checked: a key occurs twice"
        start = found.end()
        end = start + len(bytes(value))
    return start, end


def _appended(container: bytes, token: str, *, value: bytes, pointer: str) -> bytes:
    """`container` with a new last member or element."""
    body = container[:-1].rstrip(_WHITE)
    tail = container[len(body) :]
    separator = b"" if len(body) == 1 else b","
    if container[:1] == b"{":
        return body + separator + msgspec.json.encode(token) + b":" + value + tail
    length = len(_ELEMENTS.decode(container))
    if token not in ("-", str(length)):
        raise PointerError(
            f"{pointer!r}: the array has {length} elements, {token!r} is not a place"
        )
    return body + separator + value + tail


def _name(tokens: Sequence[str]) -> str:
    """How a message names the value at these tokens."""
    return repr(path_to_pointer(tokens)) if tokens else "the document"
