"""Calls an ASGI application without a socket: what goes in and what comes out, as values."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.transports.http_app import HttpApp
from gateway.transports.http_request import Message, Scope

Headers = Mapping[str, str]


@dataclass
class Answer:
    """What the application sent."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_whole: bool = False

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def reason(self) -> str:
        """Of an error in the ACP shape; fails on any other body."""
        problem = self.json["error"]
        assert {"code", "reason", "message", "boundary"} <= problem.keys() | {"boundary"}
        reason: str = problem["reason"]
        return reason

    @property
    def message(self) -> str:
        text: str = self.json["error"]["message"]
        return text


class Client:
    """Sends requests as a browser-less client on loopback would."""

    def __init__(self, app: HttpApp, headers: Headers | None = None) -> None:
        self.app = app
        self._headers = {"host": "localhost:8080", **(headers or {})}

    async def ask(
        self,
        method: str,
        target: str,
        *,
        body: bytes | Mapping[str, object] = b"",
        headers: Headers | None = None,
    ) -> Answer:
        """One request, answered."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {**self._headers, **(headers or {})}
        if content and "content-type" not in given:
            given["content-type"] = "application/json"
        if given.get("content-type") == "":
            del given["content-type"]
        call = Call(method, target, given, body=content)
        await call.run(self.app)
        return call.answer


class Call:
    """One request under way; `hang_up` ends it from the client's side."""

    def __init__(self, method: str, target: str, headers: Headers, *, body: bytes = b"") -> None:
        path, _, query = target.partition("?")
        self.answer = Answer()
        self.changed = asyncio.Event()
        self.scope: Scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        self._messages: asyncio.Queue[Message] = asyncio.Queue()
        self._messages.put_nowait({"type": "http.request", "body": body, "more_body": False})

    async def run(self, app: HttpApp) -> None:
        await app(self.scope, self._messages.get, self._send)

    def hang_up(self) -> None:
        self._messages.put_nowait({"type": "http.disconnect"})

    async def until(self, text: bytes) -> None:
        """Return once the body holds `text`."""
        while text not in self.answer.body:
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), 15)

    async def _send(self, message: Message) -> None:
        answer = self.answer
        if message["type"] == "http.response.start":
            assert not answer.status, "two heads for one request"
            answer.status = message["status"]
            for name, value in message["headers"]:
                assert name.decode() not in answer.headers, f"{name} twice"
                answer.headers[name.decode()] = value.decode()
        else:
            assert answer.status, "a body before its head"
            answer.body += message.get("body", b"")
            answer.is_whole = not message.get("more_body", False)
        self.changed.set()
