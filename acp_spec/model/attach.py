"""What passes over the streams of an attached component (SPEC section 10), beside the calls.

A component that opens no port dials the gateway: one stream for control, one for calls. Everything
in flight is addressed by (call_id, attempt).
"""

import msgspec

from acp_spec.model.bounds import Count, NonEmpty
from acp_spec.model.calls import CancelResponse, OperationState
from acp_spec.model.card import Card
from acp_spec.model.context import Signals
from acp_spec.model.errors import AcpError

Key = tuple[str, int]
"""(call_id, attempt), as tables of what is in flight hold it."""


class AttemptKey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    call_id: NonEmpty
    attempt: Count = 0

    @property
    def key(self) -> Key:
        return (self.call_id, self.attempt)


class Hello(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first frame of the control stream. The highest incarnation of an instance wins."""

    instance_id: NonEmpty
    incarnation: Count = 0
    card: Card
    in_flight: tuple[AttemptKey, ...] = ()
    finished_unacked: tuple[AttemptKey, ...] = ()
    acp_version: str = ""


class Welcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The gateway's answer to a hello: whom it takes the instance for, and what it promises."""

    component_id: str = ""
    acp_version: str = ""
    reattach_grace_ms: Count = 0
    heartbeat_ms: Count = 0
    max_frame_bytes: Count = 0
    attachment_id: str = ""


class AttachHeartbeat(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Proof of life with load figures; the gateway answers with an empty one."""

    signals: Signals | None = None


class Drain(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """No new calls please (a component), or: the gateway leaves, or sends no call any more."""

    grace_ms: Count = 0


class CancelOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a cancel; `attempt` as it was asked (0 = all)."""

    key: AttemptKey
    response: CancelResponse


class OperationOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a question about a long operation: one of the three."""

    call_id: NonEmpty
    state: OperationState | None = None
    cancelled: CancelResponse | None = None
    error: AcpError | None = None
