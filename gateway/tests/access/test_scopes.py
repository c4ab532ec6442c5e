"""Operation by scope by binding: the whole table, asked of a real process.

What a scope allows is written here a second time, by hand, so that the route table cannot loosen it
alone.
"""

from typing import Final

import msgspec
import pytest

from acp_spec.bindings.errors import HTTP_OF_CODE
from acp_spec.bindings.routes import GATEWAY, GATEWAY_ROUTES
from acp_spec.model import gateway_calls as calls
from acp_spec.model.enums import FeedbackKind, StepType
from acp_spec.model.errors import Code
from acp_spec.model.payload import payload
from acp_spec.model.session import (
    CompleteOperation,
    Feedback,
    ManualStep,
    OpenSession,
    RegisterRequest,
)
from gateway.tests.access.conftest import SCOPES, Guarded
from gateway.tests.asking import Asker, Outcome

NOBODY: Final = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
# What each operation takes, besides admin, which may do everything.
ALLOWED: Final[dict[str, tuple[str, ...]]] = {
    "register_component": ("component", "operate"),
    "list_components": ("operate",),
    "get_component": ("operate",),
    "remove_component": ("component", "operate"),
    "heartbeat_component": ("component", "operate"),
    "drain_component": ("component", "operate"),
    "validate_workflow": ("operate",),
    "list_workflows": ("operate",),
    "list_workflow_versions": ("operate",),
    "put_workflow": ("operate",),
    "get_workflow": ("operate",),
    "activate_workflow": ("operate",),
    "open_session": ("submit",),
    "list_sessions": ("submit",),
    "get_session": ("submit",),
    "delete_session": (),
    "stream_events": ("submit",),
    "execute_step": ("submit",),
    "get_step": ("submit",),
    "finish_session": ("submit",),
    "give_feedback": ("annotate",),
    "cancel_session": ("submit",),
    "get_trajectory": ("submit",),
    "get_lineage": ("submit",),
}
# A question that harms nobody: ids that no one has, files that are refused.
ASKED: Final[dict[str, msgspec.Struct]] = {
    "register_component": RegisterRequest(url="http://nowhere"),
    "list_components": calls.Empty(),
    "get_component": calls.ComponentIdRequest(component_id=NOBODY),
    "remove_component": calls.ComponentIdRequest(component_id=NOBODY),
    "heartbeat_component": calls.HeartbeatRequest(component_id=NOBODY),
    "drain_component": calls.ComponentIdRequest(component_id=NOBODY),
    "validate_workflow": calls.ValidateWorkflowRequest(source="steps: 1"),
    "list_workflows": calls.ListWorkflowsRequest(),
    "list_workflow_versions": calls.ListWorkflowsRequest(name="nobody"),
    "put_workflow": calls.PutWorkflowRequest(name="a", version="1.0.0", source="steps: 1"),
    "get_workflow": calls.WorkflowRequest(name="nobody", version="1.0.0"),
    "activate_workflow": calls.WorkflowRequest(name="nobody", version="1.0.0"),
    "open_session": calls.OpenSessionRequest(session=OpenSession(workflow="nobody")),
    "list_sessions": calls.ListSessionsRequest(),
    "get_session": calls.GetSessionRequest(session_id=NOBODY),
    "delete_session": calls.SessionIdRequest(session_id=NOBODY),
    "stream_events": calls.StreamEventsRequest(session_id=NOBODY),
    "execute_step": calls.ExecuteStepRequest(
        session_id=NOBODY, step=ManualStep(step_type=StepType.TOOL)
    ),
    "get_step": calls.GetStepRequest(session_id=NOBODY, step_key="k"),
    "finish_session": calls.FinishSessionRequest(session_id=NOBODY),
    "give_feedback": calls.GiveFeedbackRequest(
        session_id=NOBODY, feedback=Feedback(kind=FeedbackKind.RATING, score=1.0)
    ),
    "cancel_session": calls.SessionIdRequest(session_id=NOBODY),
    "get_trajectory": calls.SessionIdRequest(session_id=NOBODY),
    "get_lineage": calls.LineageRequest(lineage_id=f"{NOBODY}.0123456789ab"),
}
CALL_BACK: Final = calls.CompleteOperationRequest(
    call_id="c", token="t", result=CompleteOperation(output=payload(b"1"))
)
BEYOND_TOKENS: Final = ("UNAUTHENTICATED", "PERMISSION_DENIED")


def test_the_table_has_every_operation_of_the_wire() -> None:
    operations = {route.name for route in GATEWAY_ROUTES if route.rpc}
    assert (
        operations
        == ALLOWED.keys() | {"complete_operation"}
        == ASKED.keys() | {"complete_operation"}
    )


@pytest.mark.parametrize("operation", sorted(ALLOWED))
def test_an_operation_is_done_with_its_scope_and_refused_with_every_other(
    guarded: Guarded, asker: Asker, operation: str
) -> None:
    route, message = GATEWAY[operation], ASKED[operation]
    for scope in SCOPES:
        http, grpc = asker.both(route, message, token=guarded.token(scope))
        assert http == grpc, (scope, http, grpc)
        if scope == "admin" or scope in ALLOWED[operation]:
            assert http.code not in BEYOND_TOKENS, (scope, http)
        else:
            assert http == Outcome("PERMISSION_DENIED", "PERMISSION_DENIED"), scope
            assert http.status == 403


@pytest.mark.parametrize("operation", sorted(ALLOWED))
def test_no_operation_is_done_without_a_token(
    guarded: Guarded, asker: Asker, operation: str
) -> None:
    http, grpc = asker.both(GATEWAY[operation], ASKED[operation])
    assert http == grpc == Outcome("UNAUTHENTICATED", "UNAUTHENTICATED")
    assert http.status == 401


def test_no_api_token_completes_an_operation_not_even_an_administrators(
    guarded: Guarded, asker: Asker
) -> None:
    for token in ("t", guarded.token("admin"), "", "é", "\N{GRINNING FACE}" * 50):
        message = msgspec.structs.replace(CALL_BACK, token=token)
        grpc = asker.over_grpc(GATEWAY["complete_operation"], message, token="")
        assert 400 <= _status(grpc) < 500, (token, grpc)
        if token and token.isascii():
            http = asker.over_http(GATEWAY["complete_operation"], message)
            assert 400 <= http.status < 500, (token, http)
            assert http == grpc


def test_the_gateways_own_token_routes_and_metrics_need_their_scopes(
    guarded: Guarded, asker: Asker
) -> None:
    for method, path, wanted in (
        ("GET", "/v1/tokens", ()),
        ("POST", "/v1/tokens", ()),
        ("DELETE", "/v1/tokens/nobody", ()),
        ("GET", "/metrics", ("operate",)),
    ):
        body = b'{"scopes":["submit"]}' if method == "POST" else None
        for scope in (None, *SCOPES):
            headers = {"content-type": "application/json"}
            if scope is not None:
                headers["authorization"] = f"Bearer {guarded.token(scope)}"
            told = asker.send(method, path, headers=headers, body=body)
            if scope is None:
                assert told.status == 401, (method, path)
            elif scope == "admin" or scope in wanted:
                assert told.status not in (401, 403), (method, path, scope)
            else:
                assert told.status == 403, (method, path, scope)


def _status(outcome: Outcome) -> int:
    return HTTP_OF_CODE[Code(outcome.code)]
