"""Peers that break one rule of gRPC: services, trailers, streams, absent payloads."""

from collections.abc import Callable
from dataclasses import replace

from conformance_tests.broken import wire_rules
from conformance_tests.broken.grpc_layer import GrpcForward, GrpcReply, GrpcRequest, GrpcRule
from conformance_tests.broken.peer import BrokenPeer
from conformance_tests.messages.tree import Tree, from_proto, to_proto


def _maker(rule: GrpcRule) -> Callable[[], GrpcRule]:
    return lambda: rule


def _error(code: str, reason: str) -> GrpcReply:
    said: Tree = {
        "code": code,
        "reason": reason,
        "message": "Refused by a broken peer.",
        "side_effect": "NONE",
    }
    trailer = to_proto({"error": said}, "ErrorBody")
    return GrpcReply(status=code, message="Refused by a broken peer.", trailer=trailer)


async def _demands_arguments(request: GrpcRequest, forward: GrpcForward) -> GrpcReply:
    if request.do == "Execute":
        tree = from_proto(request.data, "ExecuteRequest")
        if tree is not None and "action" in tree and "arguments" not in tree:
            return _error("INVALID_ARGUMENT", "INVALID_REQUEST")
    return await forward(request)


async def _no_reflector(request: GrpcRequest, forward: GrpcForward) -> GrpcReply:
    if request.do == "Reflect" and not request.data:
        return _error("UNIMPLEMENTED", "UNIMPLEMENTED")
    return await forward(request)


async def _not_found(request: GrpcRequest, forward: GrpcForward) -> GrpcReply:
    if request.do == "NoSuchMethod":
        return GrpcReply(status="NOT_FOUND", message="no such method")
    return await forward(request)


async def _no_trailer(request: GrpcRequest, forward: GrpcForward) -> GrpcReply:
    reply = await forward(request)
    return replace(reply, trailer=None) if request.do == "GetOperation" else reply


async def _long_trailer(request: GrpcRequest, forward: GrpcForward) -> GrpcReply:
    reply = await forward(request)
    tree = from_proto(reply.trailer or b"", "ErrorBody")
    if b"LONG_DETAILS" not in request.data or tree is None:
        return reply
    error = tree["error"]
    assert isinstance(error, dict)
    longer: Tree = {**tree, "error": {**error, "message": "long " * 1000}}
    return replace(reply, trailer=to_proto(longer, "ErrorBody"))


async def _response_twice(request: GrpcRequest, forward: GrpcForward) -> GrpcReply:
    reply = await forward(request)
    if request.do != "ExecuteStream" or not reply.items:
        return reply
    return replace(reply, items=(*reply.items, reply.items[-1]))


async def _another_card(request: GrpcRequest, forward: GrpcForward) -> GrpcReply:
    reply = await forward(request)
    tree = from_proto(reply.items[0], "Card") if request.do == "Describe" and reply.items else None
    if tree is None:
        return reply
    return replace(reply, items=(to_proto({**tree, "docs_url": "http://other/"}, "Card"),))


PEERS = (
    BrokenPeer(
        requirement="GRP-011",
        does="holds on to a connection that is no HTTP/2",
        because=wire_rules.NOT_CLOSED,
        tcp=wire_rules.holds_on,
    ),
    BrokenPeer(
        requirement="GRP-012",
        does="answers a message that is longer than it says",
        because=wire_rules.ANSWERED,
        tcp=wire_rules.answers_anything,
    ),
    BrokenPeer(
        requirement="GRP-013",
        does="turns the next client away after a storm",
        because=wire_rules.NOT_SERVED,
        tcp=wire_rules.turns_away,
    ),
    BrokenPeer(
        requirement="PAY-004",
        does="reads a payload without bytes as a wrong one",
        because=r"ok: expected success",
        grpc=_maker(_demands_arguments),
    ),
    BrokenPeer(
        requirement="GRP-001",
        does="does not serve the service of a role of its card",
        because=r"grpc: gRPC status UNIMPLEMENTED",
        grpc=_maker(_no_reflector),
    ),
    BrokenPeer(
        requirement="GRP-002",
        does="answers an unknown method with NOT_FOUND",
        because=r"grpc: expected UNIMPLEMENTED, got NOT_FOUND",
        grpc=_maker(_not_found),
    ),
    BrokenPeer(
        requirement="GRP-003",
        does="does not serve grpc.health.v1.Health",
        because=r"grpc: expected OK, got UNIMPLEMENTED",
        without_health=True,
        fails_with=("GRP-013",),
        why_with="That the next client is served is asked of health, over the raw wire.",
    ),
    BrokenPeer(
        requirement="GRP-005",
        does="ends a failed call without acp-error-bin",
        because=r"trailer_is_error_body: NOT_FOUND without a readable acp-error-bin",
        grpc=_maker(_no_trailer),
    ),
    BrokenPeer(
        requirement="GRP-006",
        does="sends a trailer of 5 KiB",
        because=r"trailer_max_bytes: acp-error-bin has \d{4} bytes",
        grpc=_maker(_long_trailer),
    ),
    BrokenPeer(
        requirement="GRP-007",
        does="sends the response twice",
        because=r"one_response_last: the stream had progress, response, response",
        grpc=_maker(_response_twice),
    ),
    BrokenPeer(
        requirement="GRP-010",
        does="has another card over gRPC",
        because=r"cards_are_equal: the bindings' cards differ in docs_url",
        grpc=_maker(_another_card),
    ),
)
