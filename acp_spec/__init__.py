"""ACP v1: the protocol as types, tables, codecs and an SDK; it knows nothing of the gateway.

The names below are what most programs need: `from acp_spec import Component`. Each is imported at
its first use, so that `import acp_spec` (and `acp_spec.model` below it) loads nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acp_spec.model.enums import Effect, Idempotency, Kind, SideEffect, Verdict
    from acp_spec.sdk.call import Call
    from acp_spec.sdk.component import Component
    from acp_spec.sdk.gateway_client import AsyncGatewayClient, GatewayClient
    from acp_spec.sdk.grpc_client import GrpcComponentClient
    from acp_spec.sdk.http_client import HttpComponentClient
    from acp_spec.sdk.outcome_file import FileOutcomes
    from acp_spec.sdk.testing import InProcess, ManualClock, build_context
    from acp_spec.sdk.values import JsonText

__all__ = [
    # writing a component
    "Component",
    "Call",
    "JsonText",
    "FileOutcomes",
    "Effect",
    "Idempotency",
    "Kind",
    "SideEffect",
    "Verdict",
    # calling one
    "HttpComponentClient",
    "GrpcComponentClient",
    # using a gateway
    "GatewayClient",
    "AsyncGatewayClient",
    # testing
    "InProcess",
    "ManualClock",
    "build_context",
]

_HOME = {
    "acp_spec.model.enums": ("Effect", "Idempotency", "Kind", "SideEffect", "Verdict"),
    "acp_spec.sdk.call": ("Call",),
    "acp_spec.sdk.component": ("Component",),
    "acp_spec.sdk.gateway_client": ("AsyncGatewayClient", "GatewayClient"),
    "acp_spec.sdk.grpc_client": ("GrpcComponentClient",),
    "acp_spec.sdk.http_client": ("HttpComponentClient",),
    "acp_spec.sdk.outcome_file": ("FileOutcomes",),
    "acp_spec.sdk.testing": ("InProcess", "ManualClock", "build_context"),
    "acp_spec.sdk.values": ("JsonText",),
}


def __getattr__(name: str) -> object:
    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'acp_spec' has no attribute {name!r}")
