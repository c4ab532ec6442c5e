"""Lineage over HTTP, for operators: `/v1/lineage`. The gateway's own, beside ACP's page of one run.

From an id to everything that a run stood on, from a version or an input to all runs that had it,
and from two runs to what they differ in. A caller sees its own tenant's sessions only.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from acp_spec.bindings.errors import invalid_request
from acp_spec.bindings.routes import Route
from gateway.runtime.lineage import LineageDiff, LineageRun
from gateway.runtime.lineage_search import LIMIT_MAX, FindLineages, LineageMatches
from gateway.transports.http_request import HttpRequest, count, query_values
from gateway.transports.http_routes import Builder, HttpLimits
from gateway.transports.operations import Caller, Done, Operation

_QUERY: Final = (
    *("id", "component", "workflow", "policy", "input_sha256"),
    *("since", "until", "after", "limit"),
)

LINEAGE_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="find_lineages",
        method="GET",
        path="/v1/lineage",
        query=_QUERY,
        response=LineageMatches,
        scope="operate",
    ),
    Route(
        name="get_lineage_run",
        method="GET",
        path="/v1/lineage/{lineage_id}/run",
        response=LineageRun,
        scope="operate",
    ),
    Route(
        name="compare_lineages",
        method="GET",
        path="/v1/lineage/{lineage_id}/against/{other_id}",
        response=LineageDiff,
        scope="operate",
    ),
)


class LineageName(msgspec.Struct, frozen=True, kw_only=True):
    """Which run, by its session's or its lineage's id."""

    lineage_id: str


class TwoLineages(msgspec.Struct, frozen=True, kw_only=True):
    """Which two runs."""

    lineage_id: str
    other_id: str


async def find_lineages(caller: Caller, asked: FindLineages) -> Done:
    if asked.limit > LIMIT_MAX:
        raise invalid_request(f"query limit: at most {LIMIT_MAX} sessions fit one page")
    return Done(await caller.services.lineages.find(asked, caller.principal))


async def get_lineage_run(caller: Caller, asked: LineageName) -> Done:
    return Done(await caller.services.lineages.run(asked.lineage_id, caller.principal))


async def compare_lineages(caller: Caller, asked: TwoLineages) -> Done:
    found = await caller.services.lineages.against(
        asked.lineage_id, asked.other_id, principal=caller.principal
    )
    return Done(found)


def _find(request: HttpRequest, limits: HttpLimits) -> FindLineages:
    values = query_values(request.query, _QUERY)
    limit = count(values.pop("limit", ""), "query limit")
    return FindLineages(**values, limit=limit)


def _one(request: HttpRequest, limits: HttpLimits) -> LineageName:
    return LineageName(lineage_id=request.params[0])


def _two(request: HttpRequest, limits: HttpLimits) -> TwoLineages:
    return TwoLineages(lineage_id=request.params[0], other_id=request.params[1])


LINEAGE_OPERATIONS: Final[Mapping[str, Operation]] = {
    "find_lineages": find_lineages,
    "get_lineage_run": get_lineage_run,
    "compare_lineages": compare_lineages,
}
LINEAGE_BUILDERS: Final[Mapping[str, Builder]] = {
    "find_lineages": _find,
    "get_lineage_run": _one,
    "compare_lineages": _two,
}
