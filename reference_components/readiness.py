"""Asks a component on loopback whether it serves: one question, a yes or no, no waiting."""

import http.client
import json

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from acp_spec.model.enums import Transport
from reference_components.recipe import ComponentSpec

ASK_TIMEOUT_S = 2.0


def is_serving(spec: ComponentSpec, port: int) -> bool:
    """True when the component on that port says that it is ready."""
    if spec.transport is Transport.GRPC:
        return _serves_grpc(port)
    return _serves_http(port, spec.ready)


def _serves_http(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ASK_TIMEOUT_S)
    try:
        connection.request("GET", f"/{path}")
        answer = connection.getresponse()
        return answer.status == 200 and json.loads(answer.read()).get("status") == "SERVING"
    except (OSError, ValueError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _serves_grpc(port: int) -> bool:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        health = health_pb2_grpc.HealthStub(channel)
        try:
            answer = health.Check(health_pb2.HealthCheckRequest(), timeout=ASK_TIMEOUT_S)
        except grpc.RpcError:
            return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)
