"""The context that rides in every request (SPEC section 2).

Time travels as *time left* (`timeout_ms`), never as a clock reading: clocks differ between machines.
"""

import msgspec


class Signals(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Load figures of one component (mission R12). None = not reported, never zero."""

    component: str = ""
    queue_length: int | None = None
    queue_ms: float | None = None
    service_ms: float | None = None
    cpu_percent: float | None = None
    gpu_queue_length: int | None = None
    inflight: int | None = None


class Callback(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the end of a long operation may be reported; the token is single use, for this call."""

    url: str
    token: str


class Context(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Identity, time left, budget and position of one attempt. `(call_id, attempt)` addresses it."""

    session_id: str
    lineage_id: str
    call_id: str
    attempt: int
    body_digest: str
    timeout_ms: int
    retry_budget: int = 0
    traceparent: str = ""
    tracestate: str = ""
    baggage: str = ""
    workflow: str = ""
    step: str = ""
    state_version: str = ""
    priority: int = 0
    tenant: str = ""
    labels: dict[str, str] = {}
    via: tuple[str, ...] = ()
    callback: Callback | None = None
    signals: tuple[Signals, ...] = ()
