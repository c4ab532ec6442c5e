"""Business fallbacks over HTTP: `/v1/fallbacks`. The gateway's own, not part of ACP v1.

How a workflow stands is told per tenant: each caller sees its own. A drill evaluates rules and
calls nobody.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from acp_spec.bindings.routes import Route
from acp_spec.model import gateway_calls as calls
from gateway.runtime.fallback_drills import DrillAnswer, FallbackPage, FallbackView
from gateway.transports.http_request import HttpRequest
from gateway.transports.http_routes import Builder, HttpLimits
from gateway.transports.operations import EMPTY, Caller, Done, Operation

_ONE: Final = "/v1/fallbacks/{workflow}"


class FallbackName(msgspec.Struct, frozen=True, kw_only=True):
    workflow: str


FALLBACK_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="list_fallbacks",
        method="GET",
        path="/v1/fallbacks",
        response=FallbackPage,
        scope="operate",
    ),
    Route(
        name="get_fallback",
        method="GET",
        path=_ONE,
        response=FallbackView,
        scope="operate",
    ),
    Route(
        name="drill_fallback",
        method="POST",
        path=f"{_ONE}/drill",
        response=DrillAnswer,
        scope="operate",
    ),
)


async def list_fallbacks(caller: Caller, request: calls.Empty) -> Done:
    """Every active workflow with rules: who answers now, and what the last drill found."""
    return Done(caller.services.drills.page(caller.principal.tenant))


async def get_fallback(caller: Caller, asked: FallbackName) -> Done:
    """One workflow with rules."""
    return Done(caller.services.drills.one(asked.workflow, tenant=caller.principal.tenant))


async def drill_fallback(caller: Caller, asked: FallbackName) -> Done:
    """Try the rules on recorded inputs now; nothing is sent."""
    principal = caller.principal
    result = await caller.services.drills.run(
        asked.workflow, tenant=principal.tenant, by=principal.subject
    )
    return Done(DrillAnswer(drill=result))


def _nothing(request: HttpRequest, limits: HttpLimits) -> calls.Empty:
    return EMPTY


def _name(request: HttpRequest, limits: HttpLimits) -> FallbackName:
    return FallbackName(workflow=request.params[0])


FALLBACK_OPERATIONS: Final[Mapping[str, Operation]] = {
    "list_fallbacks": list_fallbacks,
    "get_fallback": get_fallback,
    "drill_fallback": drill_fallback,
}
FALLBACK_BUILDERS: Final[Mapping[str, Builder]] = {
    "list_fallbacks": _nothing,
    "get_fallback": _name,
    "drill_fallback": _name,
}
