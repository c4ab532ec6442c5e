"""A layer before an HTTP server that may change what goes in and what comes out.

`Rule` gets a request and the way on; most rules pass everything on and touch one thing. The layer
is ASGI, so that it stands before an SDK component in this process as well as before a proxied one.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from conformance_tests.messages.tree import parse, write_value

Json: TypeAlias = dict[str, Any]
# The ASGI specification's own shapes.
Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


def read(body: bytes) -> Json:
    """The JSON object of a body; empty for what is none."""
    try:
        found: Any = parse(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    path: str
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def tree(self) -> Json:
        return read(self.body)

    @property
    def do(self) -> str:
        """The last part of the path: `execute`, `health`, `cancel` ..."""
        return self.path.rpartition("/")[2]

    @property
    def action(self) -> str:
        return str(self.tree.get("action", ""))

    @property
    def context(self) -> Json:
        found = self.tree.get("context")
        return found if isinstance(found, dict) else {}

    @property
    def arguments(self) -> Json:
        found = self.tree.get("arguments")
        return found if isinstance(found, dict) else {}

    def with_tree(self, tree: Json) -> "Request":
        """The same request saying something else; its key header follows."""
        headers = dict(self.headers)
        context = tree.get("context")
        if headers.get("idempotency-key") == self.context.get("call_id", ""):
            headers["idempotency-key"] = str(context["call_id"]) if context else ""
        return replace(self, headers=headers, body=write_value(tree))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    status: int
    headers: dict[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    body: bytes = b""

    @property
    def tree(self) -> Json:
        return read(self.body)

    @property
    def error(self) -> Json:
        found = self.tree.get("error")
        return found if isinstance(found, dict) else {}

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def with_tree(self, tree: Json) -> "Reply":
        return replace(self, body=write_value(tree))


Forward: TypeAlias = Callable[[Request], Awaitable[Reply]]
Rule: TypeAlias = Callable[[Request, Forward], Awaitable[Reply]]


class HttpLayer:
    """The ASGI application `app` behind one rule."""

    def __init__(self, app: App, rule: Rule) -> None:
        self._app = app
        self._rule = rule

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = await _request(scope, receive)

        async def forward(changed: Request) -> Reply:
            return await _through(self._app, scope, request=changed)

        reply = await self._rule(request, forward)
        headers = {k: v for k, v in reply.headers.items() if k != "content-length"}
        headers["content-length"] = str(len(reply.body))
        encoded = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in headers.items()]
        await send({"type": "http.response.start", "status": reply.status, "headers": encoded})
        await send({"type": "http.response.body", "body": reply.body})


async def _request(scope: Scope, receive: Receive) -> Request:
    parts: list[bytes] = []
    more = True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
    return Request(
        method=scope["method"],
        path=raw_path.decode("latin-1"),
        query=scope.get("query_string", b"").decode("latin-1"),
        headers={k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]},
        body=b"".join(parts),
    )


async def _through(app: App, scope: Scope, *, request: Request) -> Reply:
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": request.body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = {k: v for k, v in request.headers.items() if k != "content-length"}
    headers["content-length"] = str(len(request.body))
    changed = {
        **scope,
        "method": request.method,
        "path": request.path,
        "raw_path": request.path.encode("latin-1"),
        "query_string": request.query.encode("latin-1"),
        "headers": [(k.encode("latin-1"), v.encode("latin-1")) for k, v in headers.items()],
    }
    await app(changed, receive, send)
    start = sent[0]
    return Reply(
        status=start["status"],
        headers={k.decode("latin-1"): v.decode("latin-1") for k, v in start["headers"]},
        body=b"".join(message.get("body", b"") for message in sent[1:]),
    )
