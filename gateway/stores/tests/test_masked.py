"""A trajectory as people may see it: no secret in any of its parts, all else as it was."""

import msgspec
import pytest

from acp_spec.model.calls import Claim, LlmCall
from acp_spec.model.errors import AcpError, Code
from acp_spec.model.payload import payload
from acp_spec.model.trajectory import Gap, LlmCallRow, ReflectionRow, Trajectory
from gateway.stores.masked import MaskedAttempt, masked
from gateway.stores.records.tests.sessions import whole
from gateway.stores.row_hash import hash_of
from gateway.telemetry.masking import DEFAULT

SECRET = "hunter2-of-the-vault"


def changed(one: Trajectory, **fields: object) -> Trajectory:
    return msgspec.structs.replace(one, **fields)


def shown(one: Trajectory) -> bytes:
    return msgspec.json.encode(masked(one, DEFAULT))


def test_a_session_without_secrets_is_the_same_object() -> None:
    one = changed(whole(1, comments=("#a",)), input=payload(b'{"text":"freeze it"}'))
    assert masked(one, DEFAULT) is one


def test_an_escape_alone_changes_nothing() -> None:
    one = whole(1)
    assert b"\\u0000" in bytes(one.input)
    assert masked(one, DEFAULT).input == one.input


def _in_call(one: Trajectory, **fields: object) -> Trajectory:
    return changed(one, calls=(msgspec.structs.replace(one.calls[0], **fields), *one.calls[1:]))


TEXT = f"password: {SECRET}"
DOCUMENT = payload(b'{"token":"%s"}' % SECRET.encode())
ERROR = AcpError(code=Code.UNKNOWN, reason="X", message=TEXT, details=DOCUMENT)
LLM = LlmCall(id="l", prompt=payload(b'"password: %s"' % SECRET.encode()), response=DOCUMENT)
PLAIN = payload(b'{"a":"%s"}' % SECRET.encode())
ONE = whole(1, comments=("#a",))


@pytest.mark.parametrize(
    "one",
    [
        changed(ONE, input=DOCUMENT),
        changed(ONE, output=DOCUMENT),
        changed(ONE, error=ERROR),
        changed(ONE, labels={"token": SECRET}),
        changed(ONE, claims=(Claim(text=TEXT, value=DOCUMENT),)),
        changed(ONE, gaps=(Gap(what="x", why=TEXT),)),
        changed(ONE, reflections=(ReflectionRow(step="", call_id="", verdict="", critique=TEXT),)),
        changed(ONE, llm_calls=(LlmCallRow(call_id="c", attempt=1, llm_call=LLM),)),
        whole(1, comments=(TEXT,)),
        _in_call(ONE, arguments=DOCUMENT),
        _in_call(ONE, output=DOCUMENT),
        _in_call(ONE, error=ERROR),
        _in_call(ONE, sub_goal=TEXT),
        _in_call(ONE, arguments=PLAIN, secret_paths=("/arguments/a",)),
        _in_call(ONE, output=PLAIN, secret_paths=("/output",)),
    ],
)
def test_no_part_shows_a_secret_and_nothing_else_changes(one: Trajectory) -> None:
    assert SECRET.encode() in msgspec.json.encode(one)
    assert SECRET.encode() not in shown(one)
    same = ("session_id", "lineage", "decisions", "status", "sequence", "opened_at")
    for name in same:
        assert getattr(masked(one, DEFAULT), name) == getattr(one, name)


def test_what_was_secret_in_one_place_is_masked_in_the_others() -> None:
    told = AcpError(code=Code.UNKNOWN, reason="X", message=f"I know {SECRET} now")
    one = changed(_in_call(whole(1, comments=(f"it said {SECRET}",)), error=told), input=DOCUMENT)
    assert SECRET.encode() not in shown(one)
    only_there = _in_call(whole(1, comments=(f"it said {SECRET}",)), error=told)
    assert SECRET.encode() in shown(only_there)


def test_sizes_and_hashes_are_those_of_the_original() -> None:
    row = masked(_in_call(whole(1), arguments=DOCUMENT), DEFAULT).calls[0]
    assert isinstance(row, MaskedAttempt)
    assert bytes(row.arguments) == b'{"token":"***"}'
    assert row.arguments_hash == hash_of(bytes(DOCUMENT))
    assert row.arguments_bytes == len(bytes(DOCUMENT))
    assert row.output_bytes == 0
