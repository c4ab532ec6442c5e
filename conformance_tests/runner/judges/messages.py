"""Rules over every message: how fields, enums and integers are written, what the envelope says."""

import re
from collections.abc import Iterator
from typing import Final, cast

from google.protobuf.descriptor import FieldDescriptor

from conformance_tests.messages.tree import (
    Tree,
    Value,
    descriptor,
    prefix_of,
)
from conformance_tests.runner.answers import Exchange
from conformance_tests.runner.judges.judging import NotSeen
from conformance_tests.runner.subject import Subject


def _walk(tree: Value, message: str) -> Iterator[tuple[str, str, FieldDescriptor | None, Value]]:
    """Every field: path, name, its descriptor and its value; payloads are not entered."""
    about = descriptor(message)
    for name, value in cast("Tree", tree).items():
        field = about.fields_by_name.get(name)
        yield name, name, field, value
        inner = field.message_type if field is not None else None
        if inner is None or inner.GetOptions().map_entry:
            continue
        for index, item in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(item, dict):
                place = f"{name}/{index}" if isinstance(value, list) else name
                yield from (
                    (f"{place}/{path}", n, f, v) for path, n, f, v in _walk(item, inner.name)
                )


def _message(seen: Exchange) -> tuple[Tree, str]:
    answer = seen.answer
    if answer.tree is None or not answer.message:
        raise NotSeen("no message that can be read")
    return answer.tree, answer.message if answer.ok else "ErrorBody"


def names_as_in_proto(seen: Exchange, subject: Subject) -> str | None:
    """No field is a known one in another spelling."""
    return misspelt(*_message(seen))


def misspelt(tree: Tree, message: str) -> str | None:
    """The first field that is a known one in another spelling."""
    for path, name, field, _ in _walk(tree, message):
        if field is None:
            squeezed = name.replace("_", "").replace("-", "").lower()
            if _known_names().get(squeezed, name) != name:
                return f"{path} should be written {_known_names()[squeezed]}"
    return None


def _known_names() -> dict[str, str]:
    if not _NAMES:
        from acp_spec.proto.v1 import acp_pb2

        for message in acp_pb2.DESCRIPTOR.message_types_by_name.values():
            _NAMES.update({f.name.replace("_", ""): f.name for f in message.fields})
    return _NAMES


_NAMES: Final[dict[str, str]] = {}


def enums_as_names(seen: Exchange, subject: Subject) -> str | None:
    """Enum values are names in capitals without the type's prefix."""
    tree, message = _message(seen)
    for path, _, field, value in _walk(tree, message):
        if field is None or field.enum_type is None:
            continue
        prefix = prefix_of(field.enum_type)
        for item in value if isinstance(value, list) else [value]:
            if not re.fullmatch(r"[A-Z][A-Z0-9_]*", str(item)) or str(item).startswith(prefix):
                return f"{path} is {item!r}"
    return None


_INTEGERS: Final = {FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_INT32}


def integers_are_whole(seen: Exchange, subject: Subject) -> str | None:
    """No integer field has a fraction or an exponent."""
    tree, message = _message(seen)
    for path, _, field, value in _walk(tree, message):
        if field is None or field.type not in _INTEGERS:
            continue
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, int) or isinstance(item, bool):
                return f"{path} is {item}"
    return None


def component_names_version(seen: Exchange, subject: Subject) -> str | None:
    stated = (seen.answer.tree or {}).get("component")
    if not isinstance(stated, dict) or not stated.get("version"):
        raise NotSeen("no answer states `component`")
    version = subject.card.get("version")
    return None if stated["version"] == version else f"{stated['version']}, the card says {version}"


def retries_within_budget(seen: Exchange, subject: Subject) -> str | None:
    spent, budget = (
        (seen.answer.tree or {}).get("retries_spent", 0),
        seen.context.get("retry_budget", 0),
    )
    if not isinstance(spent, int) or not isinstance(budget, int):
        return None
    return f"{spent} retries spent of {budget}" if spent > budget else None
