"""The cheapest honest echo component: raw ASGI, all four roles, about 1 KB an answer.

It stands in for a fast component, so that the gateway is what a bench measures.
"""

import json
import socket
from collections.abc import Awaitable, Callable

import msgspec
import uvicorn

CARD = {
    "name": "bench-echo",
    "version": "1.0.0",
    "acp_versions": ["1.0"],
    "roles": ["PLANNER", "EXECUTOR", "OBSERVER", "REFLECTOR"],
    "actions": [{"name": "bench.echo", "effect": "READ", "idempotency": "NATURAL"}],
    "limits": {"max_concurrency": 1000},
}


class Request(msgspec.Struct):
    input: msgspec.Raw = msgspec.Raw(b"{}")
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


DECODE = msgspec.json.Decoder(Request).decode


def plan(request: Request) -> bytes:
    goal = b'{"plan":{"root_goal":"echo","sub_goals":[{"id":"a","action":"bench.echo","arguments":'
    return goal + bytes(request.input) + b"}]}}"


ANSWERS: dict[str, Callable[[Request], bytes]] = {
    "/acp/v1/plan": plan,
    "/acp/v1/execute": lambda r: b'{"output":' + bytes(r.arguments) + b',"side_effect":"NONE"}',
    "/acp/v1/observe": lambda r: b'{"stored":1}',
    "/acp/v1/reflect": lambda r: b'{"verdict":"ACCEPT","rewards":[{"name":"ok","value":1.0}]}',
}
FIXED = {
    "/acp/v1/component": json.dumps(CARD).encode(),
    "/acp/v1/health": b'{"status":"SERVING"}',
}


Receive = Callable[[], Awaitable[dict[str, object]]]
Send = Callable[[dict[str, object]], Awaitable[None]]


async def app(scope: dict[str, str], receive: Receive, send: Send) -> None:
    if scope["type"] != "http":
        return
    body = FIXED.get(scope["path"])
    if body is None:
        parts = []
        while True:
            message = await receive()
            parts.append(message.get("body", b""))
            if not message.get("more_body"):
                break
        body = ANSWERS[scope["path"]](DECODE(b"".join(parts)))  # type: ignore[arg-type]
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    print(json.dumps({"ready": True, "http": f"http://127.0.0.1:{port}"}), flush=True)
    # A slow engine leaves some of its connections idle for longer than uvicorn's five seconds.
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, lifespan="off", timeout_keep_alive=600
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
