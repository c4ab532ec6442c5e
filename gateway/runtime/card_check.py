"""Whether a component card may be admitted, and its digest (SPEC section 4).

Every problem is found in one go and named by its place in the card, so that whoever wrote the card
mends it once. Schemas compile offline and with linear-time patterns: a card can neither make the
gateway fetch a URL nor burn its processor.
"""

import hashlib
import math
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from acp_spec.bindings.fields import SUPPORTED_VERSIONS, is_supported
from acp_spec.codec.json_text import CanonicalError, Plain, canonical
from acp_spec.codec.schema_check import compile_schema, mismatch
from acp_spec.codec.shapes import shape_of
from acp_spec.model.card import Action, Card
from acp_spec.model.enums import Idempotency, Kind, Role
from acp_spec.model.payload import is_absent
from acp_spec.model.semver import VersionError, parse
from gateway.governance.parameters import ACTION_NAME, COMPONENT_NAME

# Half of what people can still read in a list; a component with more is several components.
ACTIONS_MAX: Final = 256
CARD_BYTES_MAX: Final = 1024 * 1024
# The context alone takes some hundred bytes: a smaller limit refuses every call.
REQUEST_BYTES_MIN: Final = 1_024
# Longer than any call or operation that somebody still waits for: thirty days.
TIMEOUT_MS_MAX: Final = 30 * 24 * 3_600 * 1_000
# A card with more faults than this is told the first ones.
PROBLEMS_MAX: Final = 20
# A name that is wrong may be a megabyte long; its beginning tells enough.
PROBLEM_CHARACTERS_MAX: Final = 400

_ACP_VERSION: Final = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}")


def card_digest(card: Card) -> str:
    """Hex SHA-256 of the card in its RFC 8785 form, absent and default values left out.

    It is of what the card means: the same over both bindings, whatever its text looked like.
    """
    return hashlib.sha256(canonical(_without_defaults(card))).hexdigest()


def negotiated_version(card: Card) -> str:
    """The ACP version to speak with this component; empty when there is none in common."""
    return SUPPORTED_VERSIONS[-1] if any(map(is_supported, card.acp_versions)) else ""


def card_problems(card: Card) -> tuple[str, ...]:
    """What is wrong with the card, each with its place; empty when it may be admitted."""
    if len(msgspec.json.encode(card)) > CARD_BYTES_MAX:
        return (f"the card is over {CARD_BYTES_MAX} bytes",)
    try:
        card_digest(card)
    except (CanonicalError, msgspec.DecodeError) as error:
        return (f"a number or text in it has no canonical form: {error}",)
    found: list[str] = []
    for problem in _all_problems(card):
        found.append(problem[:PROBLEM_CHARACTERS_MAX])
        if len(found) == PROBLEMS_MAX:
            break
    return tuple(found)


def _all_problems(card: Card) -> Iterator[str]:
    yield from _identity_problems(card)
    yield from _role_problems(card)
    yield from _limit_problems(card)
    seen: set[str] = set()
    for index, action in enumerate(card.actions[:ACTIONS_MAX]):
        place = f"actions[{index}]"
        if action.name in seen:
            yield f"{place}.name: {action.name!r} stands there twice"
        seen.add(action.name)
        yield from _action_problems(action, place)


def _identity_problems(card: Card) -> Iterator[str]:
    if not COMPONENT_NAME.fullmatch(card.name):
        yield (
            f"name: {card.name!r} must be 1 to 64 of a-z, 0-9, '_', '.', '-' and begin with a"
            " letter or digit"
        )
    try:
        parse(card.version)
    except VersionError as problem:
        yield f"version: {problem}"
    for version in card.acp_versions:
        if not _ACP_VERSION.fullmatch(version):
            yield f"acp_versions: {version!r} is not of the form 1.0"
    if card.docs_url and not card.docs_url.startswith(("http://", "https://")):
        yield "docs_url: write an http or https URL, or leave it out"


def _role_problems(card: Card) -> Iterator[str]:
    executes = Role.EXECUTOR in card.roles
    if not card.roles:
        yield f"roles: name at least one of {', '.join(role.name for role in Role)}"
    if len(set(card.roles)) != len(card.roles):
        yield "roles: a role stands there twice"
    if executes and not card.actions:
        yield "actions: an EXECUTOR needs at least one"
    if card.actions and not executes:
        yield "roles: there are actions, so EXECUTOR must be among the roles"
    if card.kind is Kind.LLM and not executes:
        yield "kind: LLM is a kind of EXECUTOR, which is not among the roles"
    if len(card.actions) > ACTIONS_MAX:
        yield f"actions: {len(card.actions)} are more than {ACTIONS_MAX}; split the component"


def _limit_problems(card: Card) -> Iterator[str]:
    limits = card.limits
    if 0 < limits.max_request_bytes < REQUEST_BYTES_MIN:
        yield (
            f"limits.max_request_bytes: {limits.max_request_bytes} is below {REQUEST_BYTES_MIN},"
            " which the context alone may take; leave it out for no limit of your own"
        )
    if not math.isfinite(limits.max_rate_per_s) or limits.max_rate_per_s < 0:
        yield "limits.max_rate_per_s: must be 0 (not stated) or more"


def _action_problems(action: Action, place: str) -> Iterator[str]:
    if not ACTION_NAME.fullmatch(action.name):
        yield (
            f"{place}.name: {action.name!r} must be 1 to 128 of letters, digits, '_', '.', '-' and"
            " begin with a letter or digit"
        )
    if action.idempotency is Idempotency.BY_KEY and action.idempotency_ttl_ms == 0:
        yield f"{place}.idempotency_ttl_ms: BY_KEY needs a time above 0"
    for field, value in (
        ("timeout_ms", action.timeout_ms),
        ("operation_timeout_ms", action.operation_timeout_ms),
        ("idempotency_ttl_ms", action.idempotency_ttl_ms),
    ):
        if value > TIMEOUT_MS_MAX:
            yield f"{place}.{field}: {value} is over {TIMEOUT_MS_MAX} (thirty days)"
    yield from _schema_problems(action, place)


def _schema_problems(action: Action, place: str) -> Iterator[str]:
    """Faults of the schemas, and of the examples against them."""
    schemas = {"input_schema": action.input_schema, "output_schema": action.output_schema}
    for name, text in schemas.items():
        compiled = None if is_absent(text) else compile_schema(text)
        if isinstance(compiled, str):
            yield f"{place}.{name}: {compiled}"
    for index, example in enumerate(action.examples):
        for field, value, name in (
            ("arguments", example.arguments, "input_schema"),
            ("output", example.output, "output_schema"),
        ):
            absent = is_absent(value) or is_absent(schemas[name])
            fault = "" if absent else mismatch(schemas[name], bytes(value))
            if fault:
                yield f"{place}.examples[{index}].{field} does not fit {name}: {fault}"


def _without_defaults(struct: msgspec.Struct) -> dict[str, Plain]:
    found: dict[str, Plain] = {}
    for field in shape_of(type(struct)).fields:
        value = getattr(struct, field.attribute)
        if value != field.default:
            found[field.wire] = _plain_value(value)
    return found


def _plain_value(value: object) -> Plain:
    match value:
        case msgspec.Struct():
            return _without_defaults(value)
        case tuple():
            return [_plain_value(item) for item in value]
        case _:
            return _plain(msgspec.json.encode(value))


def _plain(text: bytes) -> Plain:
    value: Plain = msgspec.json.decode(text)
    return value
