"""The archive over HTTP: `/v1/records/archive`. How it stands, and a pass at once.

It holds every tenant's sessions: as the records it is for operators of the default tenant.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.bindings.routes import Route
from acp_spec.codec import json
from acp_spec.model import gateway_calls as calls
from acp_spec.model.errors import AcpFailure, Reason
from gateway.runtime.archive import ArchiveStatus
from gateway.runtime.principal import DEFAULT_TENANT
from gateway.transports.http_request import HttpRequest
from gateway.transports.http_routes import Builder, HttpLimits
from gateway.transports.operations import EMPTY, Caller, Done, Operation


class ArchivePass(msgspec.Struct, frozen=True, kw_only=True):
    """`check`: read all of the archive, compare it with its checksums, and heal what can be."""

    check: bool = False


ARCHIVE_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="get_archive",
        method="GET",
        path="/v1/records/archive",
        response=ArchiveStatus,
        scope="operate",
    ),
    Route(
        name="run_archive",
        method="POST",
        path="/v1/records/archive",
        request=ArchivePass,
        response=ArchiveStatus,
        status=202,
        scope="operate",
    ),
)


async def get_archive(caller: Caller, asked: calls.Empty) -> Done:
    _check(caller)
    return Done(caller.services.archive.status)


async def run_archive(caller: Caller, asked: ArchivePass) -> Done:
    _check(caller)
    caller.services.archive.ask(check=asked.check)
    return Done(caller.services.archive.status)


def _check(caller: Caller) -> None:
    if caller.principal.tenant != DEFAULT_TENANT:
        message = "the archive holds every tenant's sessions, and this token is of one tenant"
        raise AcpFailure(error(Reason.PERMISSION_DENIED, message))


def _pass(request: HttpRequest, limits: HttpLimits) -> ArchivePass:
    return json.decode_request(ArchivePass, request.body or b"{}", max_bytes=limits.body_bytes)


def _nothing(request: HttpRequest, limits: HttpLimits) -> calls.Empty:
    return EMPTY


ARCHIVE_OPERATIONS: Final[Mapping[str, Operation]] = {
    "get_archive": get_archive,
    "run_archive": run_archive,
}
ARCHIVE_BUILDERS: Final[Mapping[str, Builder]] = {
    "get_archive": _nothing,
    "run_archive": _pass,
}
