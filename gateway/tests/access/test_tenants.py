"""Two tenants on one gateway: to each, what is the other's does not exist."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import msgspec
import pytest

from acp_spec.bindings.routes import GATEWAY, GATEWAY_ROUTES
from acp_spec.model import gateway_calls as calls
from acp_spec.model.enums import FeedbackKind, Mode, StepType
from acp_spec.model.payload import payload
from acp_spec.model.session import (
    Feedback,
    FeedbackTarget,
    ManualStep,
    OpenSession,
    RegisterRequest,
)
from gateway.tests.access.conftest import MINE, THEIRS, Guarded
from gateway.tests.asking import Asker, Outcome
from gateway.tests.e2e.stranger import READ, Stranger, card

WORKFLOW: Final = """
workflow: shared
version: 1.0.0
steps:
  - {name: act, role: execute, component: tool, action: look, input_mapping: {x: input}}
output: act.output
"""
SECRET: Final = "my-own-secret-input"
UNKNOWN: Final = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
SESSION_OPERATIONS: Final = {
    route.name
    for route in GATEWAY_ROUTES
    if "{session_id}" in route.path or "{lineage_id}" in route.path
}


@dataclass(frozen=True, slots=True)
class Sessions:
    """What one tenant has: an ended session, an open manual one with a step, a call."""

    ended: str
    manual: str
    lineage: str
    call_id: str


@pytest.fixture(scope="module")
def asks(guarded: Guarded) -> Iterator[Callable[[str], Asker]]:
    """An asker for each tenant."""
    served = guarded.served
    one = {
        name: Asker(http=served.http, grpc_address=served.grpc, token=guarded.token(name))
        for name in (MINE, THEIRS)
    }
    with one[MINE], one[THEIRS]:
        yield lambda name: one[name]


@pytest.fixture(scope="module")
def mine(asks: Callable[[str], Asker], stranger: Callable[[Stranger], Stranger]) -> Sessions:
    me = asks(MINE)
    peer = Stranger(
        card("tool", "EXECUTOR", actions={"look": READ}), {"execute": lambda _: '{"output": 1}'}
    )
    registration = RegisterRequest(url=stranger(peer).url, lease_seconds=600)
    assert me.over_http(GATEWAY["register_component"], registration).status == 201
    put = calls.PutWorkflowRequest(name="shared", version="1.0.0", source=WORKFLOW)
    assert me.over_http(GATEWAY["put_workflow"], put).status == 201
    ended = opened(me, OpenSession(workflow="shared", input=payload(f'"{SECRET}"'.encode())), 20)
    manual = opened(me, OpenSession(workflow="shared", mode=Mode.MANUAL), 0)
    step = ManualStep(step_type=StepType.TOOL, payload=payload(b'{"action":"look"}'), step_key="k")
    asked = calls.ExecuteStepRequest(session_id=manual["session_id"], step=step, wait_s=20)
    done = me.over_http(GATEWAY["execute_step"], asked)
    assert done.is_success, done
    return Sessions(
        ended=ended["session_id"],
        manual=manual["session_id"],
        lineage=ended["lineage_id"],
        call_id=msgspec.json.decode(done.data)["call_id"],
    )


def opened(asker: Asker, session: OpenSession, wait_s: int) -> dict[str, str]:
    asked = calls.OpenSessionRequest(session=session, wait_s=wait_s)
    told = asker.over_http(GATEWAY["open_session"], asked)
    assert told.is_success, told
    found: dict[str, str] = msgspec.json.decode(told.data)
    return found


def without_ids(text: str) -> str:
    return re.sub(r"[0-9A-Z]{26}(\.[0-9a-f]{12})?", "ID", text)


def questions(at: Sessions) -> dict[str, msgspec.Struct]:
    """Every operation that takes an id, about these sessions."""
    step = ManualStep(step_type=StepType.TOOL, payload=payload(b'{"action":"look"}'))
    praise = Feedback(kind=FeedbackKind.RATING, score=1.0)
    return {
        "get_session": calls.GetSessionRequest(session_id=at.ended),
        "delete_session": calls.SessionIdRequest(session_id=at.ended),
        "stream_events": calls.StreamEventsRequest(session_id=at.ended),
        "execute_step": calls.ExecuteStepRequest(session_id=at.manual, step=step),
        "get_step": calls.GetStepRequest(session_id=at.manual, step_key="k"),
        "finish_session": calls.FinishSessionRequest(session_id=at.manual),
        "give_feedback": calls.GiveFeedbackRequest(session_id=at.ended, feedback=praise),
        "cancel_session": calls.SessionIdRequest(session_id=at.manual),
        "get_trajectory": calls.SessionIdRequest(session_id=at.ended),
        "get_lineage": calls.LineageRequest(lineage_id=at.lineage),
    }


def test_every_operation_that_takes_an_id_is_asked(mine: Sessions) -> None:
    assert questions(mine).keys() == SESSION_OPERATIONS


@pytest.mark.parametrize("operation", sorted(SESSION_OPERATIONS))
def test_a_foreign_tenants_session_is_a_404_like_one_that_never_was(
    asks: Callable[[str], Asker], mine: Sessions, operation: str
) -> None:
    route = GATEWAY[operation]
    nobody = Sessions(UNKNOWN, UNKNOWN, f"{UNKNOWN}.0123456789ab", "")
    foreign = asks(THEIRS).both(route, questions(mine)[operation])
    never = asks(THEIRS).both(route, questions(nobody)[operation])
    for theirs, unknown in zip(foreign, never, strict=True):
        assert theirs == unknown == Outcome("NOT_FOUND", "NOT_FOUND")
        assert without_ids(theirs.message) == without_ids(unknown.message), "it must not tell"


def test_after_all_that_it_is_still_there_unchanged(
    asks: Callable[[str], Asker], mine: Sessions
) -> None:
    for session_id, status in ((mine.ended, "SUCCEEDED"), (mine.manual, "RUNNING")):
        asked = calls.GetSessionRequest(session_id=session_id)
        told = asks(MINE).over_http(GATEWAY["get_session"], asked)
        assert msgspec.json.decode(told.data)["status"] in (status, "WAITING")


def test_a_list_shows_the_callers_own_sessions_only(
    asks: Callable[[str], Asker], mine: Sessions
) -> None:
    for outcome in asks(THEIRS).both(GATEWAY["list_sessions"], calls.ListSessionsRequest()):
        assert mine.ended.encode() not in outcome.data
        assert SECRET.encode() not in outcome.data
    for outcome in asks(MINE).both(GATEWAY["list_sessions"], calls.ListSessionsRequest()):
        assert mine.ended.encode() in outcome.data
    after = calls.ListSessionsRequest(after=mine.ended, status="SUCCEEDED", workflow="shared")
    for outcome in asks(THEIRS).both(GATEWAY["list_sessions"], after):
        assert mine.ended.encode() not in outcome.data


def test_the_same_session_key_is_another_session_to_another_tenant(
    asks: Callable[[str], Asker], mine: Sessions
) -> None:
    session = OpenSession(workflow="shared", mode=Mode.MANUAL, session_key="order-7")
    first = opened(asks(MINE), session, 0)["session_id"]
    assert opened(asks(MINE), session, 0)["session_id"] == first
    assert opened(asks(THEIRS), session, 0)["session_id"] != first
    # nor can the two parts of the key be moved against each other
    for key in (f"{MINE}\x01order-7", f"{MINE}/order-7", f"{MINE}order-7"):
        other = msgspec.structs.replace(session, session_key=key)
        assert opened(asks(THEIRS), other, 0)["session_id"] != first


def test_feedback_cannot_name_a_foreign_call(asks: Callable[[str], Asker], mine: Sessions) -> None:
    own = opened(asks(THEIRS), OpenSession(workflow="shared", mode=Mode.MANUAL), 0)["session_id"]
    target = FeedbackTarget(call_id=mine.call_id)
    praise = Feedback(kind=FeedbackKind.RATING, score=1.0, target=target)
    asked = calls.GiveFeedbackRequest(session_id=own, feedback=praise)
    for outcome in asks(THEIRS).both(GATEWAY["give_feedback"], asked):
        assert outcome == Outcome("NOT_FOUND", "NOT_FOUND")


def test_what_a_request_says_of_its_tenant_changes_nothing(
    asks: Callable[[str], Asker], guarded: Guarded, mine: Sessions
) -> None:
    headers = {
        "authorization": f"Bearer {guarded.token(THEIRS)}",
        "content-type": "application/json",
        "tenant": MINE,
        "acp-tenant": MINE,
        "x-tenant": MINE,
        "baggage": f"tenant={MINE}",
    }
    told = asks(THEIRS).send("GET", f"/v1/sessions/{mine.ended}", headers=headers)
    assert told.status == 404
    told = asks(THEIRS).send("GET", f"/v1/sessions/{mine.ended}?tenant={MINE}", headers=headers)
    assert told.status in (400, 404)
    body = b'{"workflow":"shared","mode":"MANUAL","tenant":"mine","labels":{"tenant":"mine"}}'
    own = msgspec.json.decode(
        asks(THEIRS).send("POST", "/v1/sessions", headers=headers, body=body).data
    )["session_id"]
    asked = calls.GetSessionRequest(session_id=own)
    assert asks(MINE).over_http(GATEWAY["get_session"], asked).status == 404
