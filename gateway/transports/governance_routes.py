"""Governance parameters and live targets over HTTP: `/v1/governance`. The gateway's own.

Parameters hold for the whole gateway, whoever's sessions they are: operators read them, only an
admin changes them.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from acp_spec.bindings.routes import Route
from acp_spec.codec import json
from acp_spec.model import gateway_calls as calls
from gateway.runtime.parameters import ParameterChange, ParameterHistory, ParameterVersion
from gateway.runtime.target_views import TargetPage
from gateway.transports.http_request import HttpRequest, count, query_values
from gateway.transports.http_routes import Builder, HttpLimits
from gateway.transports.operations import EMPTY, Caller, Done, Operation

HISTORY_DEFAULT: Final = 20
HISTORY_MAX: Final = 100
_PARAMETERS: Final = "/v1/governance/parameters"


class HistoryRange(msgspec.Struct, frozen=True, kw_only=True):
    """The newest `limit` versions."""

    limit: int = 0


GOVERNANCE_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="get_parameters",
        method="GET",
        path=_PARAMETERS,
        response=ParameterVersion,
        scope="operate",
    ),
    Route(
        name="put_parameters",
        method="PUT",
        path=_PARAMETERS,
        request=ParameterChange,
        response=ParameterVersion,
        scope="admin",
    ),
    Route(
        name="list_parameters",
        method="GET",
        path=f"{_PARAMETERS}/history",
        response=ParameterHistory,
        query=("limit",),
        scope="operate",
    ),
    Route(
        name="list_targets",
        method="GET",
        path="/v1/governance/targets",
        response=TargetPage,
        scope="operate",
    ),
)


async def get_parameters(caller: Caller, asked: calls.Empty) -> Done:
    return Done(caller.services.parameters.current)


async def put_parameters(caller: Caller, asked: ParameterChange) -> Done:
    return Done(await caller.services.parameters.change(asked, caller.principal))


async def list_parameters(caller: Caller, asked: HistoryRange) -> Done:
    limit = min(asked.limit or HISTORY_DEFAULT, HISTORY_MAX)
    return Done(ParameterHistory(versions=caller.services.parameters.history(limit=limit)))


async def list_targets(caller: Caller, asked: calls.Empty) -> Done:
    return Done(TargetPage(targets=caller.services.targets()))


def _empty(request: HttpRequest, limits: HttpLimits) -> calls.Empty:
    return EMPTY


def _change(request: HttpRequest, limits: HttpLimits) -> ParameterChange:
    return json.decode_request(ParameterChange, request.body, max_bytes=limits.body_bytes)


def _range(request: HttpRequest, limits: HttpLimits) -> HistoryRange:
    values = query_values(request.query, ("limit",)) if request.query else {}
    return HistoryRange(limit=count(values.get("limit", ""), "query limit"))


GOVERNANCE_OPERATIONS: Final[Mapping[str, Operation]] = {
    "get_parameters": get_parameters,
    "put_parameters": put_parameters,
    "list_parameters": list_parameters,
    "list_targets": list_targets,
}
GOVERNANCE_BUILDERS: Final[Mapping[str, Builder]] = {
    "get_parameters": _empty,
    "put_parameters": _change,
    "list_parameters": _range,
    "list_targets": _empty,
}
