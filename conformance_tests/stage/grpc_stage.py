"""One actor on a gRPC port of its own, for what a gateway says as a gRPC caller."""

import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc

from acp_spec.bindings.fields import ACP_ERROR_TRAILER
from acp_spec.bindings.routes import COMPONENT_ROUTES
from conformance_tests.messages.tree import Tree, from_proto, to_proto
from conformance_tests.stage.actors import MESSAGES, Actor, Heard

_DO = {route.rpc: route.name for route in COMPONENT_ROUTES}
_STATUS = {code.name: code for code in grpc.StatusCode}


class GrpcStage(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc ships no types
    """Every method of a component, answered by one actor."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def service(self, handler_call_details: Any) -> Any:
        do = _DO.get(handler_call_details.method)
        return None if do is None else grpc.unary_unary_rpc_method_handler(self._serve(do))

    def _serve(self, do: str) -> Any:
        async def serve(data: bytes, context: Any) -> bytes:
            metadata = {k: v for k, v in context.invocation_metadata() or () if isinstance(v, str)}
            left_s = context.time_remaining()
            heard = Heard(
                do=do,
                tree=from_proto(data, MESSAGES[do][0]) or {},
                headers=metadata,
                at_ms=time.monotonic() * 1000,
                binding="grpc",
                grpc_deadline_ms=None if left_s is None else left_s * 1000,
            )
            said = await self._actor.answer(heard)
            if "error" in said.tree:
                await _fail(said.tree, context)
            return said.raw if said.raw is not None else to_proto(said.tree, MESSAGES[do][1])

        return serve


async def _fail(tree: Tree, context: Any) -> None:
    error = tree["error"]
    assert isinstance(error, dict)
    trailing = () if error.get("bare") else ((ACP_ERROR_TRAILER, to_proto(tree, "ErrorBody")),)
    await context.abort(_STATUS[str(error["code"])], str(error.get("message", "")), trailing)


@contextlib.asynccontextmanager
async def serve_grpc(actor: Actor) -> AsyncIterator[str]:
    """The URL of the actor while it serves."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((GrpcStage(actor),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"grpc://127.0.0.1:{port}"
    finally:
        await server.stop(0)
