"""All actors of a run behind one HTTP port: `http://127.0.0.1:port/<actor>/acp/v1/...`."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Iterator

import uvicorn

from acp_spec.bindings.routes import COMPONENT_ROUTES
from conformance_tests.broken.http_layer import App, Receive, Scope, Send
from conformance_tests.messages.tree import read_json
from conformance_tests.stage.actors import MESSAGES, Actor, Heard


class HttpStage:
    """An ASGI application; actors come and go with their cases."""

    def __init__(self) -> None:
        self.actors: dict[str, Actor] = {}
        self.strays: list[str] = []
        """Paths that were asked for and belong to nobody: where a redirect leads."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _body(receive)
        name, _, rest = scope["path"].lstrip("/").partition("/")
        actor, found = self.actors.get(name), _route(scope["method"], f"/{rest}")
        if actor is None or found is None:
            self.strays.append(scope["path"])
            await _send(send, 404, body=b'{"error":{"code":"NOT_FOUND","reason":"NOT_FOUND"}}')
            return
        do, call_id = found
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        tree = read_json(body, MESSAGES[do][0]) or {}
        if call_id:
            tree = {**tree, "call_id": call_id}
        heard = Heard(do=do, tree=tree, headers=headers, body=body, at_ms=time.monotonic() * 1000)
        said = await actor.answer(heard)
        await _send(send, said.status, body=said.body(), headers=said.headers)


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


async def _send(
    send: Send, status: int, *, body: bytes, headers: dict[str, str] | None = None
) -> None:
    stated = {"content-type": "application/json", **(headers or {})}
    encoded = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in stated.items()]
    encoded.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


def _route(method: str, path: str) -> tuple[str, str] | None:
    """Which call this is, and the call_id of its path."""
    parts = path.split("/")
    for route in COMPONENT_ROUTES:
        pattern = route.path.split("/")
        if route.method != method or len(parts) != len(pattern):
            continue
        if all(one in (given, "{call_id}") for one, given in zip(pattern, parts, strict=True)):
            held = dict(zip(pattern, parts, strict=True))
            return route.name, held.get("{call_id}", "")
    return None


class Quiet(uvicorn.Server):
    """Signals belong to whoever runs the suite."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def serve_app(app: App) -> AsyncIterator[str]:
    """The base URL of an ASGI application on a free port of loopback."""
    bound = socket.create_server(("127.0.0.1", 0), backlog=256)
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    server = Quiet(config)
    task = asyncio.create_task(server.serve(sockets=[bound]))
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
