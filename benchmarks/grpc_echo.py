"""The cheapest honest echo components over gRPC: a unary server, and one that attaches.

They answer as echo.py does, from the parsed request, without an SDK, so that the gateway is what a
bench measures. `python benchmarks/grpc_echo.py` serves; with a gateway's address it attaches.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import uvloop
from echo import CARD

from acp_spec.codec import frames
from acp_spec.codec import json as acp_json
from acp_spec.codec.proto import to_proto
from acp_spec.model.attach import Hello, Welcome
from acp_spec.model.card import Card
from acp_spec.proto.v1 import acp_pb2 as pb
from acp_spec.sdk.attach import CALLS_RPC, CONTROL_RPC
from acp_spec.sdk.attach_outbox import Outbox, pump

NAMED = acp_json.decode_request(Card, json.dumps(CARD).encode())


def plan(request: Any) -> Any:
    goal = {"id": "a", "action": "bench.echo", "arguments": request.input}
    return pb.PlanResponse(plan={"root_goal": "echo", "sub_goals": [goal]})


def execute(request: Any) -> Any:
    return pb.ExecuteResponse(output=request.arguments, side_effect="SIDE_EFFECT_NONE")


def observe(request: Any) -> Any:
    return pb.ObserveResponse(stored=1)


def reflect(request: Any) -> Any:
    return pb.ReflectResponse(verdict="VERDICT_ACCEPT", rewards=[{"name": "ok", "value": 1.0}])


ANSWERS: dict[str, Callable[[Any], Any]] = {
    "plan": plan,
    "execute": execute,
    "observe": observe,
    "reflect": reflect,
}
METHODS = {
    "/acp.v1.Planner/Plan": (plan, pb.PlanRequest),
    "/acp.v1.Executor/Execute": (execute, pb.ExecuteRequest),
    "/acp.v1.Observer/Observe": (observe, pb.ObserveRequest),
    "/acp.v1.Reflector/Reflect": (reflect, pb.ReflectRequest),
}
FIXED = {
    "/acp.v1.Component/Describe": to_proto(NAMED),
    "/acp.v1.Component/Health": pb.Health(status="HEALTH_STATUS_SERVING").SerializeToString(),
}


class Handlers(grpc.GenericRpcHandler):
    """The unary methods of a component."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        path = handler_call_details.method
        if path in FIXED:
            return grpc.unary_unary_rpc_method_handler(fixed(FIXED[path]))
        answer, kind = METHODS[path]
        return grpc.unary_unary_rpc_method_handler(answering(answer, kind))


Serve = Callable[[bytes, Any], Awaitable[bytes]]


def fixed(body: bytes) -> Serve:
    async def serve(data: bytes, context: Any) -> bytes:
        return body

    return serve


def answering(answer: Callable[[Any], Any], kind: Any) -> Serve:
    async def serve(data: bytes, context: Any) -> bytes:
        body: bytes = answer(kind.FromString(data)).SerializeToString()
        return body

    return serve


async def serve() -> None:
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Handlers(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(json.dumps({"ready": True, "grpc": f"grpc://127.0.0.1:{port}"}), flush=True)
    await server.wait_for_termination()


async def attach(place: str) -> None:
    async with grpc.aio.insecure_channel(place) as channel:
        control = channel.stream_stream(CONTROL_RPC)()
        hello = Hello(instance_id="bench", incarnation=1, card=NAMED)
        await control.write(frames.control([frames.component_control_frame(hello)]))
        (welcome,) = frames.read_gateway_control(await control.read())
        assert isinstance(welcome, Welcome)
        calls = channel.stream_stream(CALLS_RPC)()
        outbox = Outbox(of_gateway=False)
        await calls.write(frames.component_calls([], attachment_id=welcome.attachment_id))
        outbox.put(frames.credits_frame(1000))
        writing = asyncio.create_task(pump(outbox, join=frames.component_calls, write=calls.write))
        beating = asyncio.create_task(beat(control, welcome.heartbeat_ms / 1000))
        print(json.dumps({"ready": True}), flush=True)
        while (data := await calls.read()) is not grpc.aio.EOF:
            answered = 0
            for frame in pb.GatewayCalls.FromString(data).frames:
                if frame.HasField("call"):
                    answered += 1
                    outbox.put(answer_frame(frame.call))
            if answered:
                outbox.put(frames.credits_frame(answered))
        writing.cancel()
        beating.cancel()


async def beat(control: Any, every_s: float) -> None:
    while True:
        await control.write(pb.ComponentControl(frames=[{"heartbeat": {}}]).SerializeToString())
        await asyncio.sleep(every_s)


def answer_frame(call: Any) -> bytes:
    name = call.WhichOneof("request")
    answer = pb.AnswerFrame(key=call.key, **{name: ANSWERS[name](getattr(call, name))})
    return frames.answer_frame(answer.SerializeToString())


def main() -> None:
    uvloop.run(attach(sys.argv[1]) if len(sys.argv) > 1 else serve())


if __name__ == "__main__":
    main()
