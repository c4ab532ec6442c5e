"""What both component clients write beside the body, and how long they wait (SPEC section 2)."""

from typing import Final

from acp_spec.bindings import fields
from acp_spec.model.context import Context

ANSWER_SLACK_MS: Final = 250
"""Waited beyond `timeout_ms`, so that a component's own TIMEOUT (which knows its side effect)
arrives.
"""
QUESTION_TIMEOUT_MS: Final = 5000
"""For Describe, Health, Cancel and operations, which a component answers without working."""


def beside(context: Context | None, token: str | None) -> dict[str, str]:
    """The headers, or metadata, of one call; of a question when there is no context."""
    carried = {fields.ACP_VERSION: fields.VERSION}
    if token is not None:
        carried[fields.AUTHORIZATION] = f"Bearer {token}"
    if context is None:
        return carried
    carried[fields.IDEMPOTENCY_KEY] = context.call_id
    traced = zip(
        fields.TRACE_FIELDS,
        (context.traceparent, context.tracestate, context.baggage),
        strict=True,
    )
    carried.update({name: value for name, value in traced if value})
    return carried
