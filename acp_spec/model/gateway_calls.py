"""What the gateway's own API says beside `session.py`: pages, workflows, events, rpc requests.

Over HTTP the ids of a request stand in the path and its filters in the query; over gRPC the same
call is one message that carries them with the body. The `...Request` types here are those messages.
"""

import msgspec

from acp_spec.model.bounds import Count, NonEmpty
from acp_spec.model.context import Signals
from acp_spec.model.payload import ABSENT, Payload
from acp_spec.model.session import (
    CompleteOperation,
    Component,
    Feedback,
    ManualStep,
    Opened,
    OpenSession,
    SessionView,
)


class ComponentPage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    components: tuple[Component, ...] = ()


class WorkflowVersion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stored version. `source` (the file as it was put) only where one version is read."""

    name: NonEmpty
    version: NonEmpty
    active: bool = False
    sha256: str = ""
    stored_at: str = ""
    source: str = ""


class WorkflowPage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    workflows: tuple[WorkflowVersion, ...] = ()


class SessionEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event of a session's stream; `id` counts from 1 without gaps, per session."""

    id: Count
    type: NonEmpty
    time: str = ""
    data: Payload = ABSENT


class Document(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A JSON document as one payload: how gRPC carries a trajectory or a lineage page."""

    json: Payload


class Empty(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Nothing to say: an empty request, or an answer that is only a success."""


class ComponentIdRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    component_id: NonEmpty


class HeartbeatRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    component_id: NonEmpty
    signals: Signals | None = None


class WorkflowRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: NonEmpty
    version: NonEmpty


class ListWorkflowsRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`name` empty = every workflow."""

    name: str = ""


class PutWorkflowRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`source`: the workflow file, YAML or JSON (JSON is YAML)."""

    name: NonEmpty
    version: NonEmpty
    source: NonEmpty


class ValidateWorkflowRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    source: NonEmpty


class OpenSessionRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`wait_s` is `Prefer: wait=N`: answer with the ended session if it ends in that time."""

    session: OpenSession
    wait_s: Count = 0


class OpenSessionResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`opened` (201 over HTTP), or `session` when it ended within the wait (200)."""

    opened: Opened | None = None
    session: SessionView | None = None


class SessionIdRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    session_id: NonEmpty


class GetSessionRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    session_id: NonEmpty
    min_version: str = ""


class ListSessionsRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Filters and the keyset `after`; `limit` 0 = the gateway's default page."""

    status: str = ""
    workflow: str = ""
    after: str = ""
    limit: Count = 0


class StreamEventsRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`last_event_id` resumes after that event; 0 = from the first."""

    session_id: NonEmpty
    last_event_id: Count = 0


class ExecuteStepRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    session_id: NonEmpty
    step: ManualStep
    wait_s: Count = 0


class GetStepRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    session_id: NonEmpty
    step_key: NonEmpty


class FinishSessionRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    session_id: NonEmpty
    output: Payload = ABSENT


class GiveFeedbackRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    session_id: NonEmpty
    feedback: Feedback


class LineageRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    lineage_id: NonEmpty


class CompleteOperationRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`token` is the call-back's (over HTTP the bearer token of the request)."""

    call_id: NonEmpty
    token: NonEmpty
    result: CompleteOperation
