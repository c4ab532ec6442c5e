"""The records over HTTP: `/v1/records`. SQL that only reads, how the store stands, comparing it.

The store holds every tenant's sessions, and SQL has no borders within it: whoever's token is of
a tenant of its own asks for sessions by their ids and pages instead.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.bindings.routes import Route
from acp_spec.codec import json
from acp_spec.model import gateway_calls as calls
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.payload import ABSENT, Payload
from gateway.runtime.principal import DEFAULT_TENANT
from gateway.runtime.records import RecordsQuery, RecordsState
from gateway.runtime.records_versions import must_have
from gateway.transports.http_request import HttpRequest
from gateway.transports.http_routes import Builder, HttpLimits
from gateway.transports.operations import EMPTY, Caller, Done, Operation


class RecordsColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of an answer; `type` is ClickHouse's."""

    name: str
    type: str


class RecordsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`rows`: an array of values for each row, in the order of `columns`."""

    columns: tuple[RecordsColumn, ...]
    rows: Payload
    row_count: int


class RecordsStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`feed`: how far the store has come, as its process tells it; absent while none runs."""

    state: RecordsState
    starts: int = 0
    problem: str = ""
    feed: Payload = ABSENT


RECORDS_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="query_records",
        method="POST",
        path="/v1/records/query",
        request=RecordsQuery,
        response=RecordsAnswer,
        scope="operate",
    ),
    Route(
        name="get_records",
        method="GET",
        path="/v1/records/status",
        response=RecordsStatus,
        scope="operate",
    ),
    Route(
        name="verify_records",
        method="POST",
        path="/v1/records/verify",
        response=RecordsStatus,
        status=202,
        scope="operate",
    ),
    Route(
        name="backfill_records",
        method="POST",
        path="/v1/records/backfill",
        response=RecordsStatus,
        status=202,
        scope="operate",
    ),
)


async def query_records(caller: Caller, asked: RecordsQuery) -> Done:
    _check(caller, "SQL sees")
    await must_have(caller.services.records, asked.min_versions)
    answer = await caller.services.records.query(
        asked.sql, rows=asked.max_rows, timeout_ms=asked.timeout_ms
    )
    columns = tuple(RecordsColumn(name=one.name, type=one.type) for one in answer.meta)
    return Done(RecordsAnswer(columns=columns, rows=answer.data, row_count=answer.rows))


async def get_records(caller: Caller, asked: calls.Empty) -> Done:
    _check(caller, "how the records stand tells of")
    records = caller.services.records
    if records.state is not RecordsState.UP:
        return Done(
            RecordsStatus(state=records.state, starts=records.starts, problem=records.problem)
        )
    return await _told(caller, "status")


async def verify_records(caller: Caller, asked: calls.Empty) -> Done:
    _check(caller, "a comparison reads and names")
    return await _told(caller, "verify")


async def backfill_records(caller: Caller, asked: calls.Empty) -> Done:
    _check(caller, "a backfill reads")
    return await _told(caller, "backfill")


def _check(caller: Caller, what: str) -> None:
    """Refuse whoever may see one tenant only: there is one store, of all of them."""
    if caller.principal.tenant == DEFAULT_TENANT:
        return
    message = (
        f"{what} every tenant's sessions, and this token is of one tenant: use"
        " GET /v1/sessions and GET /v1/sessions/{id}/trajectory"
    )
    raise AcpFailure(error(Reason.PERMISSION_DENIED, message))


async def _told(caller: Caller, path: str) -> Done:
    records = caller.services.records
    feed = msgspec.Raw(await records.told(path))
    return Done(RecordsStatus(state=records.state, starts=records.starts, feed=feed))


def _query(request: HttpRequest, limits: HttpLimits) -> RecordsQuery:
    return json.decode_request(RecordsQuery, request.body, max_bytes=limits.body_bytes)


def _nothing(request: HttpRequest, limits: HttpLimits) -> calls.Empty:
    return EMPTY


RECORDS_OPERATIONS: Final[Mapping[str, Operation]] = {
    "query_records": query_records,
    "get_records": get_records,
    "verify_records": verify_records,
    "backfill_records": backfill_records,
}
RECORDS_BUILDERS: Final[Mapping[str, Builder]] = {
    "query_records": _query,
    "get_records": _nothing,
    "verify_records": _nothing,
    "backfill_records": _nothing,
}
