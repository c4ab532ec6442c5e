"""The control plane: components and workflows, once for both bindings (SPEC section 6).

A COMPONENT token sees and moves only the names it may serve; to it, the others do not exist.
"""

from collections.abc import Mapping
from typing import Final

from acp_spec.bindings.errors import error
from acp_spec.model import gateway_calls as calls
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.session import Component, Heartbeat, RegisterRequest
from gateway.transports.operations import EMPTY, Caller, Done, Operation


async def register_component(caller: Caller, request: RegisterRequest) -> Done:
    component = await caller.services.components.register(request, caller.principal)
    return Done(component, location=f"/v1/components/{component.component_id}")


async def list_components(caller: Caller, request: calls.Empty) -> Done:
    return Done(calls.ComponentPage(components=caller.services.components.list()))


async def get_component(caller: Caller, request: calls.ComponentIdRequest) -> Done:
    return Done(own_component(caller, request.component_id))


async def heartbeat_component(caller: Caller, request: calls.HeartbeatRequest) -> Done:
    own_component(caller, request.component_id)
    beat = Heartbeat(signals=request.signals)
    return Done(await caller.services.components.heartbeat(request.component_id, beat))


async def drain_component(caller: Caller, request: calls.ComponentIdRequest) -> Done:
    permit = caller.services.board.permit_removal(
        own_component(caller, request.component_id), "drained", principal=caller.principal
    )
    drained = await caller.services.components.drain(request.component_id)
    permit.done()
    return Done(drained)


async def remove_component(caller: Caller, request: calls.ComponentIdRequest) -> Done:
    permit = caller.services.board.permit_removal(
        own_component(caller, request.component_id), "removed", principal=caller.principal
    )
    permit.done()
    await caller.services.components.delete(request.component_id)
    return Done(EMPTY)


def own_component(caller: Caller, component_id: str) -> Component:
    """The component, if this caller may serve its name; else NOT_FOUND, as for one that is not."""
    component = caller.services.components.get(component_id)
    if not caller.principal.may_serve(component.card.name):
        message = f"no component {component_id!r}: list them with GET /v1/components"
        raise AcpFailure(error(Reason.NOT_FOUND, message))
    return component


async def put_workflow(caller: Caller, request: calls.PutWorkflowRequest) -> Done:
    stored, created = await caller.services.workflows.put(
        request.name,
        request.version,
        source=request.source.encode(),
        principal=caller.principal,
    )
    location = f"/v1/workflows/{stored.name}/versions/{stored.version}"
    return Done(stored, 201 if created else 200, location)


async def list_workflows(caller: Caller, request: calls.ListWorkflowsRequest) -> Done:
    return Done(calls.WorkflowPage(workflows=caller.services.workflows.versions(request.name)))


async def get_workflow(caller: Caller, request: calls.WorkflowRequest) -> Done:
    return Done(caller.services.workflows.stored(request.name, request.version))


async def activate_workflow(caller: Caller, request: calls.WorkflowRequest) -> Done:
    return Done(
        await caller.services.workflows.activate(
            request.name, request.version, principal=caller.principal
        )
    )


async def validate_workflow(caller: Caller, request: calls.ValidateWorkflowRequest) -> Done:
    return Done(caller.services.workflows.validate(request.source.encode()))


ADMIN_OPERATIONS: Final[Mapping[str, Operation]] = {
    "register_component": register_component,
    "list_components": list_components,
    "get_component": get_component,
    "heartbeat_component": heartbeat_component,
    "drain_component": drain_component,
    "remove_component": remove_component,
    "put_workflow": put_workflow,
    "list_workflows": list_workflows,
    "list_workflow_versions": list_workflows,
    "get_workflow": get_workflow,
    "activate_workflow": activate_workflow,
    "validate_workflow": validate_workflow,
}
