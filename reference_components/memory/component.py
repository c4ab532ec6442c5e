"""The observer: stores observations in their order and recalls what fits a query.

What belongs to one tenant and one customer (the session's label `customer`) is never shown to
another. A repeated call_id stores nothing and gets the first answer again, also after a restart.
"""

from pathlib import Path

from acp_spec import Call, Component, SideEffect
from acp_spec.model.calls import ObserveRequest, ObserveResponse
from acp_spec.model.errors import Reason
from reference_components.memory.notebook import Notebook, OtherBody, Owner


def make(path: Path) -> Component:
    """A memory that keeps its notebook in the file `path`."""
    component = Component("hotline-memory", "1.0.0")
    notebook = Notebook(path)

    @component.observe_idempotent
    def observe(request: ObserveRequest, call: Call) -> ObserveResponse:
        context = request.context
        owner = Owner(tenant=context.tenant, customer=context.labels.get("customer", ""))
        try:
            return notebook.observe(request, owner)
        except OtherBody:
            raise call.fail(
                Reason.IDEMPOTENCY_CONFLICT,
                f"Call {context.call_id} observed something else before.",
                side_effect=SideEffect.NONE,
            ) from None

    return component
