"""Deleting a workflow version over HTTP. The gateway's own, not part of ACP v1.

The spec stores versions and never changes them; what an operator does with those that nobody wants
any more is this gateway's business.
"""

from collections.abc import Mapping
from typing import Final

from acp_spec.bindings.routes import Route
from acp_spec.model import gateway_calls as calls
from gateway.transports.http_request import HttpRequest
from gateway.transports.http_routes import Builder, HttpLimits
from gateway.transports.operations import EMPTY, Caller, Done, Operation

WORKFLOW_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="delete_workflow",
        method="DELETE",
        path="/v1/workflows/{name}/versions/{version}",
        status=204,
        scope="operate",
    ),
)


async def delete_workflow(caller: Caller, request: calls.WorkflowRequest) -> Done:
    """Take a version out of use that no open session and no rollout needs."""
    await caller.services.workflows.delete(
        request.name, request.version, principal=caller.principal
    )
    return Done(EMPTY)


def _delete(request: HttpRequest, limits: HttpLimits) -> calls.WorkflowRequest:
    name, version = request.params
    return calls.WorkflowRequest(name=name, version=version)


WORKFLOW_OPERATIONS: Final[Mapping[str, Operation]] = {"delete_workflow": delete_workflow}
WORKFLOW_BUILDERS: Final[Mapping[str, Builder]] = {"delete_workflow": _delete}
