"""Reviewing over HTTP: `/v1/reviews`, for annotators. The gateway's own, not part of ACP v1.

A reviewer is the token's subject; whoever shares a token is one reviewer. Everything is of the
caller's tenant only.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from acp_spec.bindings.routes import Route
from acp_spec.codec import json
from acp_spec.model import gateway_calls as calls
from gateway.runtime.review_views import (
    NextReview,
    Opened,
    Opening,
    ReviewPage,
    ReviewView,
    Score,
    Scored,
)
from gateway.transports.http_request import HttpRequest, count, query_values
from gateway.transports.http_routes import Builder, HttpLimits
from gateway.transports.operations import EMPTY, Caller, Done, Operation

_ALL, _ONE = "/v1/reviews", "/v1/reviews/{session_id}"


class ReviewRange(msgspec.Struct, frozen=True, kw_only=True):
    """The part of the queue beyond `after`, the `next` of an earlier page."""

    after: str = ""
    limit: int = 0


class OpenSource(msgspec.Struct, frozen=True, kw_only=True):
    session_id: str
    opening: Opening


class GiveScore(msgspec.Struct, frozen=True, kw_only=True):
    session_id: str
    score: Score


REVIEW_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="list_reviews",
        method="GET",
        path=_ALL,
        response=ReviewPage,
        query=("after", "limit"),
        scope="annotate",
    ),
    Route(
        name="next_review",
        method="POST",
        path=f"{_ALL}/next",
        response=NextReview,
        scope="annotate",
    ),
    Route(name="get_review", method="GET", path=_ONE, response=ReviewView, scope="annotate"),
    Route(
        name="open_source",
        method="POST",
        path=f"{_ONE}/openings",
        request=Opening,
        response=Opened,
        scope="annotate",
    ),
    Route(
        name="score_review",
        method="POST",
        path=f"{_ONE}/score",
        request=Score,
        response=Scored,
        scope="annotate",
    ),
    Route(
        name="skip_review",
        method="POST",
        path=f"{_ONE}/skip",
        response=NextReview,
        scope="annotate",
    ),
)


async def list_reviews(caller: Caller, asked: ReviewRange) -> Done:
    """What waits for a person, the next one first."""
    reviews = caller.services.reviews
    return Done(await reviews.page(caller.principal, after=asked.after, limit=asked.limit))


async def next_review(caller: Caller, asked: calls.Empty) -> Done:
    """Take the next one; the caller's own, if they are at one."""
    return Done(await caller.services.reviews.next(caller.principal))


async def get_review(caller: Caller, asked: calls.SessionIdRequest) -> Done:
    """One session with its claims, and what the caller has opened."""
    return Done(await caller.services.reviews.view(asked.session_id, caller.principal))


async def open_source(caller: Caller, asked: OpenSource) -> Done:
    """Open a source of a claim."""
    reviews = caller.services.reviews
    return Done(await reviews.open(asked.session_id, asked.opening, principal=caller.principal))


async def score_review(caller: Caller, asked: GiveScore) -> Done:
    """Say how right it is, once every source was opened."""
    reviews = caller.services.reviews
    return Done(await reviews.score(asked.session_id, asked.score, principal=caller.principal))


async def skip_review(caller: Caller, asked: calls.SessionIdRequest) -> Done:
    """Leave it for later."""
    return Done(await caller.services.reviews.skip(asked.session_id, caller.principal))


def _range(request: HttpRequest, limits: HttpLimits) -> ReviewRange:
    values = query_values(request.query, ("after", "limit")) if request.query else {}
    return ReviewRange(
        after=values.get("after", ""), limit=count(values.get("limit", ""), "query limit")
    )


def _nothing(request: HttpRequest, limits: HttpLimits) -> calls.Empty:
    return EMPTY


def _session(request: HttpRequest, limits: HttpLimits) -> calls.SessionIdRequest:
    return calls.SessionIdRequest(session_id=request.params[0])


def _opening(request: HttpRequest, limits: HttpLimits) -> OpenSource:
    body = json.decode_request(Opening, request.body, max_bytes=limits.body_bytes)
    return OpenSource(session_id=request.params[0], opening=body)


def _score(request: HttpRequest, limits: HttpLimits) -> GiveScore:
    body = json.decode_request(Score, request.body, max_bytes=limits.body_bytes)
    return GiveScore(session_id=request.params[0], score=body)


REVIEW_OPERATIONS: Final[Mapping[str, Operation]] = {
    "list_reviews": list_reviews,
    "next_review": next_review,
    "get_review": get_review,
    "open_source": open_source,
    "score_review": score_review,
    "skip_review": skip_review,
}
REVIEW_BUILDERS: Final[Mapping[str, Builder]] = {
    "list_reviews": _range,
    "next_review": _nothing,
    "get_review": _session,
    "open_source": _opening,
    "score_review": _score,
    "skip_review": _session,
}
