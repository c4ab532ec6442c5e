"""The context that rides in every request (SPEC section 2).

Time travels as *time left* (`timeout_ms`), never as a clock reading: two machines' clocks differ.
"""

import msgspec

from acp_spec.model.bounds import AtLeastOne, Count, NonEmpty, Signed


class Signals(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Load figures of one component (mission R12). None = not reported, never zero."""

    component: str = ""
    queue_length: Count | None = None
    queue_ms: float | None = None
    service_ms: float | None = None
    cpu_percent: float | None = None
    gpu_queue_length: Count | None = None
    inflight: Count | None = None


class Callback(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the end of a long operation may be reported; the token is single use, for this call."""

    url: NonEmpty
    token: NonEmpty


class Context(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Identity, time left, budget, position of one attempt. `(call_id, attempt)` addresses it."""

    session_id: NonEmpty
    lineage_id: NonEmpty
    call_id: NonEmpty
    attempt: AtLeastOne
    body_digest: NonEmpty
    timeout_ms: AtLeastOne
    retry_budget: Count = 0
    traceparent: str = ""
    tracestate: str = ""
    baggage: str = ""
    workflow: str = ""
    step: str = ""
    state_version: str = ""
    priority: Signed = 0
    tenant: str = ""
    labels: dict[str, str] = {}
    via: tuple[str, ...] = ()
    callback: Callback | None = None
    signals: tuple[Signals, ...] = ()
