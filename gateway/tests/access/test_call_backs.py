"""The call-back token of a long operation: it completes its own call once, and opens nothing else.

The component accepts every call and never answers, so that only a call-back can end it.
"""

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pytest

from acp_spec.bindings.routes import GATEWAY
from acp_spec.model import gateway_calls as calls
from acp_spec.model.payload import payload
from acp_spec.model.session import CompleteOperation, OpenSession, RegisterRequest
from gateway.tests.access.conftest import MINE, Guarded
from gateway.tests.asking import Asker, Outcome
from gateway.tests.e2e.client import frames
from gateway.tests.e2e.stranger import Stranger, card

COMPLETE: Final = GATEWAY["complete_operation"]
DENIED: Final = Outcome("UNAUTHENTICATED", "UNAUTHENTICATED")
WORKFLOW: Final = """
workflow: slowly
version: 1.0.0
steps:
  - {name: act, role: execute, component: clerk, action: file, input_mapping: {x: input}}
output: act.output
"""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A call that waits for its call-back."""

    session_id: str
    call_id: str
    token: str
    url: str


@pytest.fixture(scope="module")
def me(guarded: Guarded) -> Iterator[Asker]:
    served = guarded.served
    token = guarded.token(MINE)
    with Asker(http=served.http, grpc_address=served.grpc, token=token) as one:
        yield one


@pytest.fixture(scope="module")
def accept(me: Asker, stranger: Callable[[Stranger], Stranger]) -> Callable[[], Accepted]:
    """`accept()` opens a session whose one call is accepted as an operation."""
    action = {"effect": "WRITE", "idempotency": "NONE", "operation_timeout_ms": 600_000}
    answers = {"execute": lambda _: '{"operation": {"poll_after_ms": 600000}}'}
    peer = stranger(Stranger(card("clerk", "EXECUTOR", actions={"file": action}), answers))
    registration = RegisterRequest(url=peer.url, lease_seconds=600)
    assert me.over_http(GATEWAY["register_component"], registration).status == 201
    put = calls.PutWorkflowRequest(name="slowly", version="1.0.0", source=WORKFLOW)
    assert me.over_http(GATEWAY["put_workflow"], put).status == 201

    def one() -> Accepted:
        peer.asked.clear()
        asked = calls.OpenSessionRequest(session=OpenSession(workflow="slowly"))
        told = me.over_http(GATEWAY["open_session"], asked)
        session_id = msgspec.json.decode(told.data)["session_id"]
        until_waiting(me, session_id)
        (called,) = [heard for heard in peer.asked if heard.path.endswith("/execute")]
        context = called.context
        back = context["callback"]
        return Accepted(session_id, context["call_id"], back["token"], back["url"])

    return one


def until_waiting(me: Asker, session_id: str) -> None:
    """Follow the session's events until its call was accepted."""
    with me.events(session_id) as lines:
        for _ in frames(lines):
            if view(me, session_id)["status"] != "RUNNING":
                return


def view(me: Asker, session_id: str) -> dict[str, Any]:
    told = me.over_http(GATEWAY["get_session"], calls.GetSessionRequest(session_id=session_id))
    found: dict[str, Any] = msgspec.json.decode(told.data)
    return found


def result(text: bytes = b'"done"') -> CompleteOperation:
    return CompleteOperation(output=payload(text))


def completed(
    me: Asker, call_id: str, token: str, text: bytes = b'"done"'
) -> tuple[Outcome, Outcome]:
    message = calls.CompleteOperationRequest(call_id=call_id, token=token, result=result(text))
    return me.both(COMPLETE, message, token="")


def test_another_calls_token_and_made_up_ones_open_nothing(
    me: Asker, guarded: Guarded, accept: Callable[[], Accepted]
) -> None:
    one, other = accept(), accept()
    for token in (
        other.token,
        f"{one.session_id}.{other.token.partition('.')[2]}",
        f"{other.session_id}.{one.token.partition('.')[2]}",
        f"{one.session_id}.",
        f"{one.session_id}.{'0' * 32}",
        f"{one.session_id}.{secrets.token_hex(16)}",
        one.token[:-1],
        one.token + "0",
        one.token.upper(),
        one.session_id,
        one.call_id,
        guarded.token(MINE),
        guarded.token("admin"),
    ):
        assert completed(me, one.call_id, token) == (DENIED, DENIED), token
    for text in ("é", "\N{SNOWMAN}" * 40, "a\0b"):
        message = calls.CompleteOperationRequest(call_id=one.call_id, token=text, result=result())
        assert me.over_grpc(COMPLETE, message, token="") == DENIED
    raw = {"authorization": b"Bearer \xe9\xff"}
    path = f"/v1/operations/{one.call_id}:complete"
    json = {"content-type": "application/json"}
    told = me.send("POST", path, headers={**json, **raw}, body=b'{"output":1}')
    assert told == DENIED
    assert completed(me, other.call_id, one.token) == (DENIED, DENIED)
    assert completed(me, "no-such-call", one.token) == (DENIED, DENIED)
    for session_id in (one.session_id, other.session_id):
        assert view(me, session_id)["status"] == "WAITING", "nothing was completed"


def test_its_own_token_completes_a_call_once_and_a_repeat_changes_nothing(
    me: Asker, accept: Callable[[], Accepted]
) -> None:
    one = accept()
    assert one.url.endswith(f"/v1/operations/{one.call_id}:complete")
    for both in (completed(me, one.call_id, one.token), completed(me, one.call_id, one.token)):
        assert both == (Outcome(), Outcome())
    other = Outcome("ALREADY_EXISTS", "ALREADY_EXISTS")
    assert completed(me, one.call_id, one.token, b'"forged"') == (other, other)
    ended = view(me, one.session_id)
    assert (ended["status"], ended["output"]) == ("SUCCEEDED", "done")


def test_the_token_is_no_api_token_and_reads_nothing(
    me: Asker, accept: Callable[[], Accepted]
) -> None:
    one = accept()
    asked = calls.GetSessionRequest(session_id=one.session_id)
    refused = Outcome("UNAUTHENTICATED", "UNAUTHENTICATED")
    assert me.both(GATEWAY["get_session"], asked, token=one.token) == (refused, refused)
    cancel = calls.SessionIdRequest(session_id=one.session_id)
    assert me.both(GATEWAY["cancel_session"], cancel, token=one.token) == (refused, refused)


def test_a_token_of_a_deleted_session_opens_nothing_and_is_no_fault_of_ours(
    me: Asker, accept: Callable[[], Accepted]
) -> None:
    one = accept()
    assert completed(me, one.call_id, one.token) == (Outcome(), Outcome())
    deleted = calls.SessionIdRequest(session_id=one.session_id)
    assert me.over_http(GATEWAY["delete_session"], deleted).status == 204
    assert completed(me, one.call_id, one.token) == (DENIED, DENIED)


def test_a_wrong_result_ends_nothing(me: Asker, accept: Callable[[], Accepted]) -> None:
    one = accept()
    wrong = Outcome("INVALID_ARGUMENT", "INVALID_REQUEST")
    empty = calls.CompleteOperationRequest(
        call_id=one.call_id, token=one.token, result=CompleteOperation()
    )
    assert me.both(COMPLETE, empty, token="") == (wrong, wrong)
    for text in (b"{", b'{"a":1,"a":2}', b"[" * 60 + b"]" * 60, b'"\\ud800"', b"NaN"):
        message = calls.CompleteOperationRequest(
            call_id=one.call_id, token=one.token, result=result(text)
        )
        assert me.over_grpc(COMPLETE, message, token="") == wrong, text
        path = f"/v1/operations/{one.call_id}:complete"
        headers = {"authorization": f"Bearer {one.token}", "content-type": "application/json"}
        body = b'{"output":' + text + b"}"
        assert me.send("POST", path, headers=headers, body=body) == wrong, text
    assert view(me, one.session_id)["status"] == "WAITING"
