"""Reviewing unknown values over HTTP: `/v1/semantics`. The gateway's own, not part of ACP v1.

Values were said in the sessions of one tenant, and only its operators see them; the workflow
version that their decisions make is, like every workflow, the whole gateway's.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from acp_spec.bindings.routes import Route
from acp_spec.codec import json
from acp_spec.model import gateway_calls as calls
from gateway.runtime.semantics_review import (
    Accepted,
    AcceptRequest,
    DismissAnswer,
    DismissRequest,
    ReviewPage,
    SemanticsPage,
)
from gateway.transports.http_request import HttpRequest
from gateway.transports.http_routes import Builder, HttpLimits
from gateway.transports.operations import EMPTY, Caller, Done, Operation

_ONE: Final = "/v1/semantics/{workflow}"


class WorkflowName(msgspec.Struct, frozen=True, kw_only=True):
    workflow: str


class Accept(msgspec.Struct, frozen=True, kw_only=True):
    workflow: str
    request: AcceptRequest


class Dismiss(msgspec.Struct, frozen=True, kw_only=True):
    workflow: str
    request: DismissRequest


SEMANTICS_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="list_unknown_values",
        method="GET",
        path="/v1/semantics",
        response=SemanticsPage,
        scope="operate",
    ),
    Route(
        name="review_semantics",
        method="GET",
        path=_ONE,
        response=ReviewPage,
        scope="operate",
    ),
    Route(
        name="accept_synonyms",
        method="POST",
        path=f"{_ONE}/synonyms",
        request=AcceptRequest,
        response=Accepted,
        status=201,
        scope="operate",
    ),
    Route(
        name="dismiss_values",
        method="POST",
        path=f"{_ONE}/dismiss",
        request=DismissRequest,
        response=DismissAnswer,
        scope="operate",
    ),
)


async def list_unknown_values(caller: Caller, request: calls.Empty) -> Done:
    """Workflows with values that no domain knew."""
    return Done(caller.services.semantics.page(caller.principal.tenant))


async def review_semantics(caller: Caller, asked: WorkflowName) -> Done:
    """The unknown values of one workflow, with those that come nearest."""
    tenant = caller.principal.tenant
    return Done(await caller.services.semantics.of(asked.workflow, tenant=tenant))


async def accept_synonyms(caller: Caller, asked: Accept) -> Done:
    """Store a new version of the workflow that knows these synonyms."""
    accepted = await caller.services.semantics.accept(
        asked.workflow, asked.request, principal=caller.principal
    )
    return Done(accepted)


async def dismiss_values(caller: Caller, asked: Dismiss) -> Done:
    """Forget values that mean nothing here."""
    answer = await caller.services.semantics.dismiss(
        asked.workflow, asked.request, principal=caller.principal
    )
    return Done(answer)


def _nothing(request: HttpRequest, limits: HttpLimits) -> calls.Empty:
    return EMPTY


def _name(request: HttpRequest, limits: HttpLimits) -> WorkflowName:
    return WorkflowName(workflow=request.params[0])


def _accept(request: HttpRequest, limits: HttpLimits) -> Accept:
    body = json.decode_request(AcceptRequest, request.body, max_bytes=limits.body_bytes)
    return Accept(workflow=request.params[0], request=body)


def _dismiss(request: HttpRequest, limits: HttpLimits) -> Dismiss:
    body = json.decode_request(DismissRequest, request.body, max_bytes=limits.body_bytes)
    return Dismiss(workflow=request.params[0], request=body)


SEMANTICS_OPERATIONS: Final[Mapping[str, Operation]] = {
    "list_unknown_values": list_unknown_values,
    "review_semantics": review_semantics,
    "accept_synonyms": accept_synonyms,
    "dismiss_values": dismiss_values,
}
SEMANTICS_BUILDERS: Final[Mapping[str, Builder]] = {
    "list_unknown_values": _nothing,
    "review_semantics": _name,
    "accept_synonyms": _accept,
    "dismiss_values": _dismiss,
}
