"""A grpc.aio server that no method path stops. Components and the gateway listen with it.

grpc.aio decodes the path of each call in the one task that accepts calls; bytes that are no UTF-8
end that task and with it the server, for everybody, without any token (seen with grpcio 1.80 to
1.85). Here every method that is served is registered by its path, each with its own accepting loop,
and whatever else comes is UNIMPLEMENTED without its path ever being read.

It must be given every method: a generic handler that is added later is not asked.
"""

import importlib
import logging
from collections.abc import Mapping, Sequence
from typing import Final

import grpc

log = logging.getLogger(__name__)

Options = Sequence[tuple[str, int | str]]
# What this stands on beside the public API; a grpcio without one of them serves as it is.
NEEDED: Final = (
    "grpc.aio._server:Server",
    "grpc.aio._server:_augment_channel_arguments",
    "grpc._cython.cygrpc:get_working_loop",
    "grpc._cython.cygrpc:_RequestCallError",
    "grpc._cython.cygrpc:_handle_rpc",
    "grpc._cython.cygrpc:_schedule_rpc_coro",
    "grpc._cython.cygrpc:_MethodResolver",
    "grpc._cython.cygrpc:AioServer",
    "grpc._cython.cygrpc:AioServer._make_request_call_future",
    "grpc._cython.cygrpc:AioServer._request_call",
    "grpc._cython.cygrpc:AioServer._request_registered_call",
)
_LOGGER_OF_GRPC: Final = "grpc._cython.cygrpc"
# Metadata that are no text; messages that a library's service (health, reflection) cannot read, and
# methods that it names and does not have. Our own methods raise neither.
_FAULTS_OF_CALLERS: Final = (
    "Invalid encoding on",
    "Unexpected [DecodeError] raised by",
    "Unexpected [NotImplementedError] raised by servicer method [/grpc.",
)


def steady_server(
    handlers: Mapping[str, grpc.RpcMethodHandler], *, options: Options = ()
) -> grpc.aio.Server:
    """A server of these methods (path -> handler); services of libraries may be added to it."""
    logging.getLogger(_LOGGER_OF_GRPC).addFilter(_of_ours)
    gone = missing_parts()
    if not gone:
        from acp_spec.sdk.grpc_inside import SteadyServer  # only where all it needs is there

        return SteadyServer(handlers, options)
    log.warning(
        "grpcio %s has no %s: a wrong method path can end the gRPC port",
        grpc.__version__,
        ", ".join(gone),
    )
    server = grpc.aio.server(options=options)
    server.add_generic_rpc_handlers((_ByPath(handlers),))
    return server


def missing_parts() -> tuple[str, ...]:
    """What the protection needs and this grpcio has not; nothing is missing: it is steady."""
    return tuple(name for name in NEEDED if not _is_there(name))


def _is_there(name: str) -> bool:
    module, _, path = name.partition(":")
    try:
        found: object = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return False
    return True


def _of_ours(record: logging.LogRecord) -> bool:
    """Leaves out grpc's tracebacks for what is a caller's fault: with them anybody could fill the
    log, and some would hold what was sent, a token perhaps.
    """
    return not record.getMessage().startswith(_FAULTS_OF_CALLERS)


class _ByPath(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc ships no types
    """The same methods for a server that has only grpc's own accepting loop."""

    def __init__(self, handlers: Mapping[str, grpc.RpcMethodHandler]) -> None:
        self._handlers = handlers

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler | None:
        return self._handlers.get(handler_call_details.method)
