"""Components of known capacity: so many calls at once, each so long; what comes beyond waits.

`python benchmarks/bounded.py NAME:SLOTS:MS ...` serves each under its own base path. `POST /down`
makes all of them fail at once, `POST /hang` answer nothing, `POST /up` mends them; what came while
they hung is worked off then, if its caller still waits. `GET /calls` says how many came.
"""

import asyncio
import json
import socket
import sys
import time
from dataclasses import dataclass, field

import msgspec
import uvicorn
from echo import ANSWERS, DECODE, Receive, Send

DOWN = json.dumps(
    {
        "error": {
            "code": "UNAVAILABLE",
            "reason": "UNAVAILABLE",
            "message": "down, as the bench said",
            "retryable": True,
            "side_effect": "NONE",
        }
    }
).encode()
LATE = DOWN.replace(
    b'"UNAVAILABLE", "reason": "UNAVAILABLE"', b'"DEADLINE_EXCEEDED", "reason": "TIMEOUT"'
)


class Deadline(msgspec.Struct, frozen=True):
    timeout_ms: int = 60_000


class Timed(msgspec.Struct, frozen=True):
    context: Deadline = Deadline()


@dataclass(slots=True)
class Place:
    """One component: `slots` at once, `service_s` each."""

    name: str
    slots: int
    service_s: float
    calls: int = 0
    gate: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self.gate = asyncio.Semaphore(self.slots)

    def card(self) -> bytes:
        return json.dumps(
            {
                "name": self.name,
                "version": "1.0.0",
                "acp_versions": ["1.0"],
                "roles": ["PLANNER", "EXECUTOR", "OBSERVER", "REFLECTOR"],
                "actions": [
                    {"name": f"{self.name}.do", "effect": "READ", "idempotency": "NATURAL"}
                ],
                "limits": {"max_concurrency": self.slots},
            }
        ).encode()


class App:
    """All places behind one port."""

    def __init__(self, places: list[Place]) -> None:
        self.places = {place.name: place for place in places}
        self.is_down = False
        self.runs = asyncio.Event()
        self.runs.set()

    async def __call__(self, scope: dict[str, str], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = await whole_body(receive)
        status, answer = await self._answer(scope["path"], body)
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(answer))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    async def _answer(self, path: str, body: bytes) -> tuple[int, bytes]:
        if path in ("/down", "/hang", "/up"):
            self.is_down = path == "/down"
            (self.runs.clear if path == "/hang" else self.runs.set)()
            return 200, b"{}"
        if path == "/calls":
            return 200, json.dumps({p.name: p.calls for p in self.places.values()}).encode()
        _, name, call = path.split("/", 2)
        place = self.places[name]
        if call == "acp/v1/component":
            return 200, place.card()
        if call == "acp/v1/health":
            return 200, b'{"status":"SERVING"}'
        if call.startswith("acp/v1/calls/"):
            return 200, b'{"state":"UNKNOWN_CALL"}'
        place.calls += 1
        if self.is_down:
            return 503, DOWN
        gone_at = time.monotonic() + msgspec.json.decode(body, type=Timed).context.timeout_ms / 1000
        async with place.gate:
            await self.runs.wait()
            if time.monotonic() >= gone_at:
                return 504, LATE  # the caller has gone: nothing is begun for it (SPEC section 2)
            await asyncio.sleep(place.service_s)
        return 200, ANSWERS[f"/{call}"](DECODE(body))


async def whole_body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)  # type: ignore[arg-type]


def places(texts: list[str]) -> list[Place]:
    """NAME:SLOTS:MS each."""
    found = []
    for text in texts:
        name, slots, ms = text.split(":")
        found.append(Place(name, int(slots), float(ms) / 1000))
    return found


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    port = listener.getsockname()[1]
    print(json.dumps({"ready": True, "http": f"http://127.0.0.1:{port}"}), flush=True)
    config = uvicorn.Config(
        App(places(sys.argv[1:])), log_level="warning", access_log=False, lifespan="off"
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
