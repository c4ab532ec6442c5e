"""A component that asks the next one, and tries again when that fails: one level of a storm.

`python benchmarks/relay.py NAME NEXT_URL TRY_MS [--naive]`. It goes by the retry budget of the
context: no more retries than it was lent, of which it lends on what it does not need itself, and it
tells what was spent (SPEC section 2). `--naive` is what people write: three tries, whatever the
context says, and not a word about them.
"""

import asyncio
import json
import socket
import sys
import time
from dataclasses import dataclass

import msgspec
import uvicorn
from bounded import whole_body
from echo import Receive, Send
from load import answer, post

TRIES = 3
PAUSE_S = 0.01
NAIVE_BUDGET = 99


class Context(msgspec.Struct):
    call_id: str
    timeout_ms: int
    attempt: int = 1
    retry_budget: int = 0


class Request(msgspec.Struct):
    context: Context
    arguments: msgspec.Raw = msgspec.Raw(b"{}")


class Body(msgspec.Struct):
    """What matters of an answer."""

    output: msgspec.Raw = msgspec.Raw(b"null")
    retries_spent: int = 0


@dataclass(slots=True)
class Tried:
    """What came of a call: the last answer, and the retries it cost here and below."""

    status: int
    body: bytes
    spent: int


class App:
    """One level. `next_url`: the base path of the component below."""

    def __init__(self, name: str, next_url: str, *, try_ms: int, is_naive: bool) -> None:
        _, _, place = next_url.partition("//")
        host, _, base = place.partition("/")
        self._port = int(host.rsplit(":", 1)[1])
        self._path, self._below = f"/{base}/acp/v1/execute", base
        self._name, self._is_naive, self._try_ms = name, is_naive, try_ms
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def __call__(self, scope: dict[str, str], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = await whole_body(receive)
        status, text = await self._answer(scope["path"], body)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(text))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text})

    async def _answer(self, path: str, body: bytes) -> tuple[int, bytes]:
        call = path.split("/", 2)[2]
        if call == "acp/v1/component":
            action = {"name": f"{self._name}.do", "effect": "READ", "idempotency": "NATURAL"}
            card = {"name": self._name, "version": "1.0.0", "acp_versions": ["1.0"]}
            return 200, json.dumps({**card, "roles": ["EXECUTOR"], "actions": [action]}).encode()
        if call == "acp/v1/health":
            return 200, b'{"status":"SERVING"}'
        if call.startswith("acp/v1/calls/"):
            return 200, b'{"state":"UNKNOWN_CALL"}'
        tried = await self._try(msgspec.json.decode(body, type=Request))
        return tried.status, _reported(tried)

    async def _try(self, request: Request) -> Tried:
        """Up to three times, or as often as the budget allows."""
        until = time.monotonic() + request.context.timeout_ms / 1000
        budget = NAIVE_BUDGET if self._is_naive else request.context.retry_budget
        spent = 0
        for number in range(1, TRIES + 1):
            lent = max(0, budget - spent - 1)  # the last retry stays here: it is needed most
            status, body, below = await self._once(request, number, lent=lent, until=until)
            spent += below
            is_over = spent >= budget or time.monotonic() >= until
            if status < 400 or number == TRIES or is_over:
                break
            spent += 1
            await asyncio.sleep(PAUSE_S)
        return Tried(status, body, 0 if self._is_naive else spent)

    async def _once(
        self, request: Request, number: int, *, lent: int, until: float
    ) -> tuple[int, bytes, int]:
        """Status, body, and the retries that were spent below."""
        left_ms = min(self._try_ms, int((until - time.monotonic()) * 1000))
        if left_ms <= 0:
            return 504, b"", 0
        try:
            async with asyncio.timeout(left_ms / 1000):
                status, body = await self._send(request, number, lent=lent, timeout_ms=left_ms)
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            return 504, b"", lent  # a lost answer has spent all it was lent
        return status, body, msgspec.json.decode(body, type=Body).retries_spent

    async def _send(
        self, request: Request, number: int, *, lent: int, timeout_ms: int
    ) -> tuple[int, bytes]:
        action = f"{self._below}.do"
        context = {
            "call_id": f"{request.context.call_id}.{request.context.attempt}.{self._name}",
            "attempt": number,
            "timeout_ms": timeout_ms,
            "retry_budget": lent,
        }
        text = json.dumps({"context": context, "action": action}).encode()[:-1]
        whole = text + b',"arguments":' + bytes(request.arguments) + b"}"
        connection = self._idle.pop() if self._idle else None
        reader, writer = connection or await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write(post(self._path, whole))
            status, body = await answer(reader)
        except BaseException:
            writer.close()  # it may still be worked on below: that is what a storm is made of
            raise
        self._idle.append((reader, writer))
        return status, body


def _reported(tried: Tried) -> bytes:
    """The answer of the level below as this one's, with what was spent in all."""
    if tried.status < 400:
        output = bytes(msgspec.json.decode(tried.body, type=Body).output)
        return b'{"output":%b,"side_effect":"NONE","retries_spent":%d}' % (output, tried.spent)
    failure = {
        "code": "UNAVAILABLE",
        "reason": "UNAVAILABLE",
        "message": "the component below failed",
        "retryable": True,
        "side_effect": "NONE",
        "boundary": "DOWNSTREAM",
    }
    return json.dumps({"error": failure, "retries_spent": tried.spent}).encode()


def main() -> None:
    name, next_url, try_ms = sys.argv[1:4]
    app = App(name, next_url, try_ms=int(try_ms), is_naive="--naive" in sys.argv)
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    port = listener.getsockname()[1]
    print(json.dumps({"ready": True, "http": f"http://127.0.0.1:{port}"}), flush=True)
    config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="off")
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
