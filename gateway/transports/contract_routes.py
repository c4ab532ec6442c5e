"""What contracts find at run time, for operators: `/v1/contracts`. The gateway's own, not ACP v1's.

Workflows belong to the gateway, not to a tenant, so what is counted of them is for operators.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from acp_spec.bindings.routes import Route
from acp_spec.model import gateway_calls as calls
from gateway.runtime.sla_watch import BreachRow, StandingRow
from gateway.transports.http_request import HttpRequest
from gateway.transports.http_routes import Builder, HttpLimits
from gateway.transports.operations import EMPTY, Caller, Done, Operation


class StandingPage(msgspec.Struct, frozen=True, kw_only=True):
    """By workflow version and component."""

    components: tuple[StandingRow, ...] = ()


class BreachPage(msgspec.Struct, frozen=True, kw_only=True):
    """Without `until` a breach stands."""

    breaches: tuple[BreachRow, ...] = ()


CONTRACT_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="list_standings",
        method="GET",
        path="/v1/contracts/standings",
        response=StandingPage,
        scope="operate",
    ),
    Route(
        name="list_breaches",
        method="GET",
        path="/v1/contracts/breaches",
        response=BreachPage,
        scope="operate",
    ),
)


async def list_standings(caller: Caller, request: calls.Empty) -> Done:
    """What was counted of components that were called lately under an SLA."""
    return Done(StandingPage(components=caller.services.sla.standings()))


async def list_breaches(caller: Caller, request: calls.Empty) -> Done:
    """Breaches of SLAs: those that stand, then those that ended last."""
    return Done(BreachPage(breaches=caller.services.sla.breaches()))


def _nothing(request: HttpRequest, limits: HttpLimits) -> calls.Empty:
    return EMPTY


CONTRACT_OPERATIONS: Final[Mapping[str, Operation]] = {
    "list_standings": list_standings,
    "list_breaches": list_breaches,
}
CONTRACT_BUILDERS: Final[Mapping[str, Builder]] = {
    "list_standings": _nothing,
    "list_breaches": _nothing,
}
