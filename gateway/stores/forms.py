"""Every form in which trajectories were ever written, read as the present one. Pure.

A record says its `schema_version`. Minor versions only add, so one that is newer is read as far as
it is known; a newer major version is refused by name, so that whoever reads counts it and goes on.
An older form is brought up a form at a time. Payloads pass byte for byte.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import msgspec

from acp_spec.model.times import rfc3339
from acp_spec.model.trajectory import SCHEMA_VERSION, Trajectory

Fields = dict[str, msgspec.Raw]
"""A JSON object whose values were not looked into."""


class UnreadableRecord(Exception):
    """It is no trajectory of any form that this version knows; says why."""


class NewerRecord(UnreadableRecord):
    """A newer gateway wrote it."""


class _Head(msgspec.Struct):
    schema_version: str = ""
    opened_at_ms: int | msgspec.UnsetType = msgspec.UNSET


class Form(NamedTuple):
    """An older form: how it is told, and how it becomes the next one."""

    name: str
    is_written: Callable[[_Head], bool]
    bring_up: Callable[[Fields], Fields]


def read_record(line: bytes) -> Trajectory:
    """The trajectory of a line, whatever form it has. Raises UnreadableRecord, NewerRecord."""
    try:
        head = _head.decode(line)
        if is_newer(head.schema_version):
            raise NewerRecord(newer_than_known(head.schema_version))
        for place, form in enumerate(FORMS):
            if form.is_written(head):
                line = _brought_up(line, FORMS[place:])
                break
        return _trajectory.decode(line)
    except (msgspec.DecodeError, ValueError, OverflowError) as problem:
        raise UnreadableRecord(str(problem)) from None
    except KeyError as problem:
        raise UnreadableRecord(f"Object missing required field {problem}") from None


def newer_than_known(schema_version: str) -> str:
    """What to tell whoever finds such a record."""
    return (
        f"schema_version {schema_version or 'none'} is newer than {SCHEMA_VERSION}:"
        " a newer gateway wrote it, and a newer one reads it"
    )


def is_newer(schema_version: str) -> bool:
    """A newer major version, or none at all: minor versions only add, so they are read."""
    major = schema_version.partition(".")[0]
    return not major.isdigit() or int(major) > int(SCHEMA_VERSION.partition(".")[0])


def _brought_up(line: bytes, forms: tuple[Form, ...]) -> bytes:
    fields = _fields.decode(line)
    for form in forms:
        fields = form.bring_up(fields)
    return msgspec.json.encode(fields)


# ---- form 0: before any release, times as milliseconds -------------------------------------------

_TIMES_OF_SESSION: Final = {"opened_at_ms": "opened_at", "ended_at_ms": "ended_at"}
_TIMES_OF_CALL: Final = {
    "queued_at_ms": "queued_at",
    "sent_at_ms": "sent_at",
    "ended_at_ms": "ended_at",
}
_OPTION_SAYS: Final = ("option", "probability", "masked_by")
_NO_CHANCE: Final = msgspec.Raw(b"0.0")
_SCHEMA_OF_THEN: Final = msgspec.Raw(b'"recovery-1"')


def _from_milliseconds(old: Fields) -> Fields:
    new = _timed(old, _TIMES_OF_SESSION)
    for name, change in (
        ("calls", lambda row: _timed(row, _TIMES_OF_CALL)),
        ("decisions", _decision),
        ("feedback", lambda row: _timed(row, {"received_at_ms": "received_at"})),
    ):
        if name in new:
            new[name] = _raw([change(row) for row in _rows.decode(new[name])])
    return new


def _decision(old: Fields) -> Fields:
    new = {"feature_schema": _SCHEMA_OF_THEN, **_timed(old, {"at_ms": "at"})}
    new["options"] = _raw([_option(option) for option in _rows.decode(new["options"])])
    return new


def _option(old: Fields) -> Fields:
    """Its wait is a parameter of RETRY now; an option without a chance said nothing of it."""
    new = {"probability": _NO_CHANCE} | {name: old[name] for name in _OPTION_SAYS if name in old}
    if bytes(old["option"]) == b'"RETRY"':
        new["params"] = _raw({"wait_ms": old.get("wait_ms", msgspec.Raw(b"0"))})
    return new


def _timed(old: Fields, names: Mapping[str, str]) -> Fields:
    """Times as RFC 3339 text under their new names; a time that was not there is not there now."""
    new = {name: value for name, value in old.items() if name not in names}
    for was, name in names.items():
        if was in old and bytes(old[was]) != b"null":
            new[name] = _raw(rfc3339(_milliseconds.decode(old[was])))
    return new


def _raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


FORMS: Final = (Form("0", lambda head: head.opened_at_ms is not msgspec.UNSET, _from_milliseconds),)
"""Oldest first. Appended to for ever; each has a folder of records in `gateway/tests/forms`."""

_head = msgspec.json.Decoder(_Head)
_fields = msgspec.json.Decoder(Fields)
_rows = msgspec.json.Decoder(list[Fields])
_milliseconds = msgspec.json.Decoder(int)
_trajectory = msgspec.json.Decoder(Trajectory)
