"""A trajectory without its secrets, for whoever shows it or keeps it to be searched. Pure.

A value that was secret in one place of a session is masked in all its other places as well: a
component that repeats a password in an error message tells nobody. Sizes and hashes stay those of
the original (`MaskedAttempt`), so equal arguments are still equal. Training reads the original.
"""

from collections.abc import Iterator, Mapping
from typing import Final, get_type_hints

import msgspec

from acp_spec.codec.secret_schema import KeyPath, path_of
from acp_spec.model.errors import AcpError
from acp_spec.model.payload import Payload, payload
from acp_spec.model.semantics import MappedValue
from acp_spec.model.trajectory import Attempt, LlmCallRow, Trajectory
from gateway.stores.row_hash import hash_of
from gateway.telemetry.masking import NOTHING, Known, Masker

KNOWN_MAX: Final = 1_000
"""Secret values of one session that are looked for in its other places."""


class MaskedAttempt(Attempt, frozen=True, kw_only=True, omit_defaults=True):
    """An attempt as people may see it, with what is computed of its payloads as they were."""

    arguments_hash: int = 0
    arguments_bytes: int = 0
    output_bytes: int = 0


def masked(one: Trajectory, masker: Masker) -> Trajectory:
    """The trajectory as people may see it; the same object where it has no secret.

    Lineage and decisions are the gateway's own words and stay as they are.
    """
    parts = {name: msgspec.json.encode(part) for name in _PARTS if (part := getattr(one, name))}
    declares = any(row.secret_paths for row in one.calls)
    if not declares and not masker.may_hold(b"\n".join((*parts.values(), *_payloads(one)))):
        return one
    return _Masking(masker, _known(one, masker, parts=parts)).shown(one, parts)


_PARTS: Final = {
    name: msgspec.json.Decoder(kind)
    for name, kind in get_type_hints(Trajectory).items()
    if name
    in {
        *("labels", "input_mapped", "plan", "observations", "reflections", "feedback", "rewards"),
        *("reflector_rewards", "error", "claims", "grounding", "gaps"),
    }
}
"""What is masked as it is written, and made anew of that: most sessions have little of it."""

_error = msgspec.json.Decoder(AcpError)
_mapped = msgspec.json.Decoder(tuple[MappedValue, ...])


def _payloads(one: Trajectory) -> Iterator[bytes]:
    yield bytes(one.input)
    yield bytes(one.output)
    for row in one.calls:
        yield bytes(row.arguments)
        yield bytes(row.output)
        if row.error is not None:
            yield msgspec.json.encode(row.error)
        yield f"{row.sub_goal}\n{row.action}".encode("utf-8", "surrogatepass")
    for said in one.llm_calls:
        yield bytes(said.llm_call.prompt)
        yield bytes(said.llm_call.response)


def _known(one: Trajectory, masker: Masker, *, parts: Mapping[str, bytes]) -> Known:
    found = dict.fromkeys(
        value
        for document in (*parts.values(), *_payloads(one))
        for value in masker.values(document)
    )
    for row in one.calls:
        if row.secret_paths:
            arguments, output = _declared(row)
            found |= dict.fromkeys(masker.values(bytes(row.arguments), arguments))
            found |= dict.fromkeys(masker.values(bytes(row.output), output))
    return tuple(sorted(found, key=len, reverse=True))[:KNOWN_MAX]


def _declared(row: Attempt) -> tuple[frozenset[KeyPath], frozenset[KeyPath]]:
    """What the card declares of arguments and output."""
    paths = [path_of(pointer) for pointer in row.secret_paths]
    return (
        frozenset(path for payload, path in paths if payload == "arguments"),
        frozenset(path for payload, path in paths if payload == "output"),
    )


class _Masking:
    """One session's masks."""

    __slots__ = ("_known", "_masker")

    def __init__(self, masker: Masker, known: Known) -> None:
        self._masker = masker
        self._known = known

    def shown(self, one: Trajectory, parts: Mapping[str, bytes]) -> Trajectory:
        """The trajectory; `parts`: those of its parts that are not empty, as they are written."""
        changed = {
            name: _PARTS[name].decode(masked_part)
            for name, part in parts.items()
            if (masked_part := self._json(part)) != part
        }
        return msgspec.structs.replace(
            one,
            **changed,
            input=self._payload(one.input),
            output=self._payload(one.output),
            calls=tuple(self._attempt(row) for row in one.calls),
            llm_calls=tuple(self._llm_call(row) for row in one.llm_calls),
        )

    def _attempt(self, row: Attempt) -> Attempt:
        arguments, output = _declared(row)
        shown = msgspec.structs.replace(
            row,
            arguments=self._payload(row.arguments, arguments),
            output=self._payload(row.output, output),
            error=row.error and _error.decode(self._json(msgspec.json.encode(row.error))),
            sub_goal=self._masker.text(row.sub_goal, known=self._known),
            action=self._masker.text(row.action, known=self._known),
            arguments_mapped=self._values(row.arguments_mapped),
            output_mapped=self._values(row.output_mapped),
        )
        is_same = shown.arguments is row.arguments and shown.output is row.output
        return shown if is_same else _with_figures(shown, row)

    def _llm_call(self, row: LlmCallRow) -> LlmCallRow:
        """Its token ids are no words that anybody reads; they are not in the records."""
        said = row.llm_call
        prompt, response = self._payload(said.prompt), self._payload(said.response)
        said = msgspec.structs.replace(said, prompt=prompt, response=response)
        return msgspec.structs.replace(row, llm_call=said)

    def _values(self, rows: tuple[MappedValue, ...]) -> tuple[MappedValue, ...]:
        return rows and _mapped.decode(self._json(msgspec.json.encode(rows)))

    def _payload(self, one: Payload, declared: frozenset[KeyPath] = NOTHING) -> Payload:
        data = bytes(one)
        shown = self._masker.json(data, declared, known=self._known)
        return one if shown == data else payload(shown)

    def _json(self, document: bytes) -> bytes:
        return self._masker.json(document, known=self._known)


def _with_figures(shown: Attempt, row: Attempt) -> MaskedAttempt:
    return MaskedAttempt(
        **{name: getattr(shown, name) for name in Attempt.__struct_fields__},
        arguments_hash=hash_of(bytes(row.arguments)),
        arguments_bytes=len(bytes(row.arguments)),
        output_bytes=len(bytes(row.output)),
    )
