"""Feedback in bulk over HTTP: `POST /v1/feedback`. The gateway's own, beside ACP v1's single call.

For systems that learn in one go what came of many sessions. Each judgement stands for itself: what
is wrong with one keeps no other from being taken.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from acp_spec.bindings.errors import invalid_request
from acp_spec.bindings.routes import Route
from acp_spec.codec import json
from acp_spec.model import gateway_calls as calls
from gateway.runtime.judging import JudgedMany
from gateway.transports.http_request import HttpRequest
from gateway.transports.http_routes import Builder, HttpLimits
from gateway.transports.operations import Caller, Done, Operation

FEEDBACK_IN_BULK_MAX: Final = 1_000
"""Judgements in one request: some 0.1 s of the gateway's time, in small pieces."""


class FeedbackInBulk(msgspec.Struct, frozen=True, kw_only=True):
    """Judgements, each with the session that it is about."""

    feedback: tuple[calls.GiveFeedbackRequest, ...]


FEEDBACK_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="give_feedback_in_bulk",
        method="POST",
        path="/v1/feedback",
        request=FeedbackInBulk,
        response=JudgedMany,
        scope="annotate",
    ),
)


async def give_feedback_in_bulk(caller: Caller, asked: FeedbackInBulk) -> Done:
    """Take them, each or its error in the order they came; what is taken is on disk."""
    if not 0 < len(asked.feedback) <= FEEDBACK_IN_BULK_MAX:
        message = f"feedback: {len(asked.feedback)} judgements; send 1 to {FEEDBACK_IN_BULK_MAX}"
        raise invalid_request(message)
    sessions, principal = caller.services.sessions, caller.principal
    return Done(await sessions.feedback_in_bulk(asked.feedback, principal=principal))


def _in_bulk(request: HttpRequest, limits: HttpLimits) -> FeedbackInBulk:
    return json.decode_request(
        FeedbackInBulk, request.body, max_bytes=limits.body_bytes, lower_case_enums=True
    )


FEEDBACK_OPERATIONS: Final[Mapping[str, Operation]] = {
    "give_feedback_in_bulk": give_feedback_in_bulk,
}
FEEDBACK_BUILDERS: Final[Mapping[str, Builder]] = {"give_feedback_in_bulk": _in_bulk}
