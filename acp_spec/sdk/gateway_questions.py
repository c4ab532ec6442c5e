"""What can be asked of a gateway: one function per operation of `/v1`, each a value that says how.

client.ask(questions.open_session(OpenSession(workflow="hotline", input=write({"query": "..."}))))

Values, so that the sync and the async client share them; the client only carries them. `repeatable`
is true where asking twice is the same as asking once, which is what permits a retry.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from acp_spec.bindings import fields
from acp_spec.bindings.routes import GATEWAY_ROUTES, Route
from acp_spec.codec import json
from acp_spec.model import gateway_calls, session
from acp_spec.model.context import Signals

T_co = TypeVar("T_co", covariant=True)

_ROUTES = {route.name: route for route in GATEWAY_ROUTES}
_REPEATABLE_METHODS = frozenset({"GET", "PUT", "DELETE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Generic[T_co]):
    """One request. `answers`: the type of the body by status; None = no body is expected."""

    method: str
    path: str
    answers: "dict[int, type[Any] | None]"
    body: bytes = b""
    media_type: str = fields.JSON
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    repeatable: bool = False
    wait_s: float = 0.0


def _of(name: str, /, **path: str) -> "_Start":
    route = _ROUTES[name]
    filled = route.path
    for key, value in path.items():
        filled = filled.replace(f"{{{key}}}", quote(value, safe=""))
    assert "{" not in filled, f"{name} needs {route.path}"
    return _Start(route, filled)


@dataclass(frozen=True, slots=True)
class _Start:
    """A route with its path filled in; becomes a question of the type its function promises."""

    route: Route
    path: str

    def question(
        self,
        body: msgspec.Struct | None = None,
        *,
        repeatable: bool = False,
        query: dict[str, str] | None = None,
        wait_s: int = 0,
        document: bool = False,
    ) -> "Question[Any]":
        route = self.route
        answers = {route.status: route.response, **dict(route.also)}
        return Question(
            method=route.method,
            path=self.path,
            answers=dict.fromkeys(answers, bytes) if document else dict(answers),
            body=b"" if body is None else json.encode(body),
            query={name: value for name, value in (query or {}).items() if value},
            headers={fields.PREFER: f"wait={wait_s}"} if wait_s else {},
            repeatable=repeatable or route.method in _REPEATABLE_METHODS,
            wait_s=float(wait_s),
        )


# ---- components


def register_component(request: session.RegisterRequest) -> Question[session.Component]:
    """Ask the gateway to read the card at a URL and admit it. The same URL again is the same
    one.
    """
    return _of("register_component").question(request, repeatable=True)


def list_components() -> Question[gateway_calls.ComponentPage]:
    return _of("list_components").question()


def get_component(component_id: str) -> Question[session.Component]:
    return _of("get_component", component_id=component_id).question()


def remove_component(component_id: str) -> Question[None]:
    return _of("remove_component", component_id=component_id).question()


def heartbeat(component_id: str, signals: Signals | None = None) -> Question[session.Component]:
    """Renew the lease, with load figures where there are any."""
    start = _of("heartbeat_component", component_id=component_id)
    return start.question(session.Heartbeat(signals=signals), repeatable=True)


def drain_component(component_id: str) -> Question[session.Component]:
    return _of("drain_component", component_id=component_id).question(repeatable=True)


# ---- workflows


def validate_workflow(source: bytes) -> Question[session.Validation]:
    """Check a workflow file (YAML or JSON); nothing is stored."""
    return _with_source(_of("validate_workflow").question(repeatable=True), source)


def put_workflow(
    name: str, version: str, *, source: bytes
) -> Question[gateway_calls.WorkflowVersion]:
    """Store a version; the same bytes again change nothing, others are refused."""
    return _with_source(_of("put_workflow", name=name, version=version).question(), source)


def list_workflows(name: str = "") -> Question[gateway_calls.WorkflowPage]:
    """All versions of all workflows, or of one."""
    if name:
        return _of("list_workflow_versions", name=name).question()
    return _of("list_workflows").question()


def get_workflow(name: str, version: str) -> Question[gateway_calls.WorkflowVersion]:
    return _of("get_workflow", name=name, version=version).question()


def activate_workflow(name: str, version: str) -> Question[gateway_calls.WorkflowVersion]:
    return _of("activate_workflow", name=name, version=version).question(repeatable=True)


# ---- sessions


def open_session(
    request: session.OpenSession, *, wait_s: int = 0
) -> "Question[session.Opened | session.SessionView]":
    """Open a session; with `wait_s` the answer is the ended session if it ends in that time."""
    repeatable = bool(request.session_key)
    return _of("open_session").question(request, repeatable=repeatable, wait_s=wait_s)


def get_session(session_id: str, *, min_version: str = "") -> Question[session.SessionView]:
    return _of("get_session", session_id=session_id).question(query={"min_version": min_version})


def list_sessions(
    *, status: str = "", workflow: str = "", after: str = "", limit: int = 0
) -> Question[session.SessionPage]:
    asked = {"status": status, "workflow": workflow, "after": after}
    return _of("list_sessions").question(query={**asked, "limit": str(limit) if limit else ""})


def delete_session(session_id: str) -> Question[None]:
    return _of("delete_session", session_id=session_id).question()


def cancel_session(session_id: str) -> Question[session.SessionView]:
    return _of("cancel_session", session_id=session_id).question(repeatable=True)


def execute_step(
    session_id: str, step: session.ManualStep, *, wait_s: int = 0
) -> Question[session.StepResult]:
    """One step of a MANUAL session; repeatable when it has a `step_key`."""
    start = _of("execute_step", session_id=session_id)
    return start.question(step, repeatable=bool(step.step_key), wait_s=wait_s)


def get_step(session_id: str, step_key: str) -> Question[session.StepResult]:
    return _of("get_step", session_id=session_id, step_key=step_key).question()


def finish_session(
    session_id: str, request: session.FinishRequest
) -> Question[session.SessionView]:
    return _of("finish_session", session_id=session_id).question(request)


def give_feedback(
    session_id: str, feedback: session.Feedback
) -> Question[session.FeedbackAccepted]:
    """Judge a call, a step or the session; repeatable when it has a `feedback_id`."""
    start = _of("give_feedback", session_id=session_id)
    return start.question(feedback, repeatable=bool(feedback.feedback_id))


def get_trajectory(session_id: str) -> Question[bytes]:
    """The whole record of a session, as the JSON text the gateway sent."""
    return _of("get_trajectory", session_id=session_id).question(document=True)


def get_lineage(lineage_id: str) -> Question[bytes]:
    """What was intended and what served, as JSON text."""
    return _of("get_lineage", lineage_id=lineage_id).question(document=True)


def complete_operation(
    call_id: str, result: session.CompleteOperation, *, token: str
) -> Question[gateway_calls.Empty]:
    """Report the end of a long operation with the call-back's own token."""
    asked = _of("complete_operation", call_id=call_id).question(result, repeatable=True)
    return replace(asked, headers={fields.AUTHORIZATION: f"Bearer {token}"})


def stream_events(session_id: str) -> Question[bytes]:
    """The event stream; `client.follow` reads it and resumes it."""
    return _of("stream_events", session_id=session_id).question(document=True)


def _with_source(question: Question[Any], source: bytes) -> Question[Any]:
    return replace(question, body=source, media_type=fields.YAML_TYPES[0])
