"""A payload whose declared fields are brought into their domains, all other bytes as they were.

Each container is read once per level, however many rules meet in it. Every value is looked at, so
that a refusal names all that is wrong; what is not there is the schema's matter, not ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.codec.json_text import path_to_pointer, replaced
from acp_spec.model.enums import Boundary, SideEffect
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.payload import payload
from acp_spec.model.semantics import HowMapped, MappedValue
from gateway.governance.domains import (
    VALUE_CHARACTERS_MAX,
    Candidate,
    Domain,
    Nearest,
    place,
)
from gateway.governance.semantics import FieldRule

VALUES_MAX: Final = 256
"""Values with a domain in one payload. Each may cost a look-up in a model, on the loop."""
GUESSES_MAX: Final = 16
"""Of these, that `nearest` is asked about; what else is unknown is refused without a guess."""
REFUSED_SHOWN: Final = 5
ANY: Final = "*"

_WHITE: Final = b" \t\r\n"
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ELEMENTS: Final = msgspec.json.Decoder(list[msgspec.Raw])
_KINDS: Final = {b"{": "an object", b"[": "a list", b"t": "true", b"f": "false", b"n": "null"}


class Mapped(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The payload as it goes on. `values`: what was not in its domain as it came, refused too."""

    text: bytes
    values: tuple[MappedValue, ...] = ()
    in_domain: int = 0
    refusal: AcpError | None = None


_Rest = tuple[tuple[str, ...], FieldRule]


@dataclass(slots=True)
class _Walk:
    """What is gathered on the way through one payload."""

    nearest: Nearest
    values: list[MappedValue] = field(default_factory=list)
    refused: list[tuple[MappedValue, Domain, tuple[Candidate, ...]]] = field(default_factory=list)
    in_domain: int = 0
    too_many: bool = False
    guesses_left: int = GUESSES_MAX

    def guess(self, domain: Domain, text: str) -> Sequence[Candidate]:
        """`nearest`, as often as one payload may ask it."""
        if not self.guesses_left:
            return ()
        self.guesses_left -= 1
        return self.nearest(domain, text)

    @property
    def full(self) -> bool:
        return len(self.values) + self.in_domain >= VALUES_MAX


def mapped(text: bytes, rules: Sequence[FieldRule], *, nearest: Nearest) -> Mapped:
    """The payload with every value of these rules in its domain, or with the refusal."""
    if not rules or not text:
        return Mapped(text=text)
    walk = _Walk(nearest)
    start, end = len(text) - len(text.lstrip(_WHITE)), len(text.rstrip(_WHITE))
    rest = [(rule.tokens, rule) for rule in rules]
    inner = _visit(text[start:end], rest, at=(), walk=walk)
    refusal = _refusal(walk)
    return Mapped(
        text=text if refusal is not None else text[:start] + inner + text[end:],
        values=tuple(walk.values),
        in_domain=walk.in_domain,
        refusal=refusal,
    )


def _visit(text: bytes, rest: list[_Rest], *, at: tuple[str, ...], walk: _Walk) -> bytes:
    here = next((rule for tokens, rule in rest if not tokens), None)
    if here is not None:
        return _value(text, here, at=at, walk=walk)
    changed: dict[str, bytes] = {}
    for token, child in _children(text):
        deeper = [(tokens[1:], rule) for tokens, rule in rest if tokens[0] in (token, ANY)]
        if deeper:
            new = _visit(child, deeper, at=(*at, token), walk=walk)
            if new != child:
                changed[token] = new
    return replaced(text, changed) if changed else text


def _children(text: bytes) -> list[tuple[str, bytes]]:
    if text[:1] == b"{":
        return [(name, bytes(child)) for name, child in _MEMBERS.decode(text).items()]
    if text[:1] == b"[":
        return [(str(index), bytes(child)) for index, child in enumerate(_ELEMENTS.decode(text))]
    return []


def _value(text: bytes, rule: FieldRule, *, at: tuple[str, ...], walk: _Walk) -> bytes:
    if rule.nullable and text == b"null":
        return text
    if walk.full:
        walk.too_many = True
        return text
    domain, pointer = rule.domain, path_to_pointer(at)
    if text[:1] != b'"':
        shown = _KINDS.get(text[:1], "a number")
        _refuse(walk, domain, pointer=pointer, said=shown)
        return text
    said: str = msgspec.json.decode(text)
    found = place(domain, said, nearest=walk.guess)
    if found.how is HowMapped.EXACT:
        walk.in_domain += 1
        return text
    if found.how is HowMapped.REFUSED:
        _refuse(walk, domain, pointer=pointer, said=said, candidates=found.candidates)
        return text
    walk.values.append(
        MappedValue(
            at=pointer,
            domain=domain.name,
            from_=said,
            to=found.value,
            how=found.how,
            confidence=found.confidence,
        )
    )
    return msgspec.json.encode(found.value)


def _refuse(
    walk: _Walk,
    domain: Domain,
    *,
    pointer: str,
    said: str,
    candidates: tuple[Candidate, ...] = (),
) -> None:
    value = MappedValue(
        at=pointer,
        domain=domain.name,
        from_=said[:VALUE_CHARACTERS_MAX],
        how=HowMapped.REFUSED,
        confidence=candidates[0].confidence if candidates else 0.0,
    )
    walk.values.append(value)
    walk.refused.append((value, domain, candidates))


def _refusal(walk: _Walk) -> AcpError | None:
    if walk.too_many:
        message = f"more than {VALUES_MAX} values of this payload have a domain; split it"
        return _error(message, details=())
    if not walk.refused:
        return None
    value, domain, candidates = walk.refused[0]
    more = len(walk.refused) - 1
    message = f"{value.at or 'the payload'}: {value.from_!r} is not in the domain {domain.shown()}"
    if candidates:
        best = candidates[0]
        needed = f"{domain.threshold:.2f} is needed"
        message += f"; nearest is {best.value!r} with {best.confidence:.2f}, {needed}"
    if more:
        message += f"; {more} more of its values are refused, see details"
    details = [
        _detail(value, domain, candidates=nearest)
        for value, domain, nearest in walk.refused[:REFUSED_SHOWN]
    ]
    return _error(message, details=details)


def _detail(
    value: MappedValue, domain: Domain, *, candidates: tuple[Candidate, ...]
) -> Mapping[str, object]:
    return {
        "at": value.at,
        "domain": domain.name,
        "value": value.from_,
        "threshold": domain.threshold,
        "nearest": candidates,
    }


def _error(message: str, *, details: Sequence[Mapping[str, object]]) -> AcpError:
    failure = error(
        Reason.SEMANTIC_MISMATCH,
        message,
        side_effect=SideEffect.NONE,
        boundary=Boundary.GATEWAY,
    )
    if not details:
        return failure
    text = msgspec.json.encode({"refused": details})
    return msgspec.structs.replace(failure, details=payload(text))


class _Refused(msgspec.Struct, frozen=True, gc=False):
    at: str
    domain: str
    value: str
    nearest: tuple[Candidate, ...] = ()


class _Details(msgspec.Struct, frozen=True, gc=False):
    refused: tuple[_Refused, ...] = ()


def refused_values(failure: AcpError) -> tuple[MappedValue, ...]:
    """The values that a refusal of ours names. Only for an error that was just made here."""
    if failure.reason != Reason.SEMANTIC_MISMATCH.value or not bytes(failure.details):
        return ()
    details = msgspec.json.decode(bytes(failure.details), type=_Details)
    return tuple(
        MappedValue(
            at=one.at,
            domain=one.domain,
            from_=one.value,
            how=HowMapped.REFUSED,
            confidence=one.nearest[0].confidence if one.nearest else 0.0,
        )
        for one in details.refused
    )
