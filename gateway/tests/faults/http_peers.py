"""Components over HTTP that are well until they are called: then they do one thing wrong."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from gateway.tests.e2e.stranger import card
from gateway.transports.tests.raw_peer import Behaviour, Peer, http

SHORT_MS = 500
"""Of each action of a peer that is to be late: short to wait for."""
LONG_MS = 10_000
"""Of all others: no busy machine makes them late, which would be another fault than theirs."""

RESPONSE_BYTES_MAX = 64 * 1024
"""What the gateway of these tests takes; oversized answers are a little more."""

GOOD = b'{"output": 1, "side_effect": "PERFORMED"}'

Misbehaviour = Callable[[Peer], Awaitable[bool]]
"""What a call gets; True where the connection goes on, as behind every whole answer."""


def actions(timeout_ms: int) -> dict[str, dict[str, object]]:
    """One of each kind."""
    return {
        "look": {"effect": "READ", "idempotency": "NATURAL", "timeout_ms": timeout_ms},
        "keyed": {"idempotency": "BY_KEY", "timeout_ms": timeout_ms},
        "once": {"timeout_ms": timeout_ms},
    }


@dataclass
class Wrong:
    """A component whose every answer to a call is `misbehave`; `called` counts them by action."""

    name: str
    misbehave: Misbehaviour
    timeout_ms: int = LONG_MS
    called: list[str] = field(default_factory=list)

    @property
    def card(self) -> dict[str, Any]:
        return card(self.name, "EXECUTOR", actions=actions(self.timeout_ms))

    async def behave(self, peer: Peer) -> None:
        """One connection: honest questions are answered, a call gets what is wrong."""
        while (request := await peer.request()) is not None:
            head, _, body = request.partition(b"\r\n\r\n")
            if head.startswith(b"POST /acp/v1/execute"):
                self.called.append(json.loads(body)["action"])
                if not await self.misbehave(peer):
                    return
            else:
                await peer.say(http(self._honest(head)))

    def _honest(self, head: bytes) -> bytes:
        if head.startswith(b"GET /acp/v1/component"):
            return json.dumps(self.card).encode()
        if head.startswith(b"GET /acp/v1/health"):
            return b'{"status": "SERVING"}'
        return b'{"state": "UNKNOWN_CALL"}'


def saying(*parts: bytes) -> Misbehaviour:
    """These bytes, then the end of the connection."""

    async def misbehave(peer: Peer) -> bool:
        for part in parts:
            await peer.say(part)
        return False

    return misbehave


def answering(whole: bytes) -> Misbehaviour:
    """A whole answer of HTTP, whatever it says."""

    async def misbehave(peer: Peer) -> bool:
        await peer.say(whole)
        return True

    return misbehave


async def hang(peer: Peer) -> bool:
    await asyncio.sleep(60)
    return False


async def reset(peer: Peer) -> bool:
    peer.slam()
    return False


DRIP_S = SHORT_MS / 1000 / 20


def dripping(data: bytes) -> Misbehaviour:
    """A byte now and then: never silent for long, never done."""

    async def misbehave(peer: Peer) -> bool:
        for byte in data:
            await peer.say(bytes([byte]))
            await asyncio.sleep(DRIP_S)
        return False

    return misbehave


async def reset_in_the_answer(peer: Peer) -> bool:
    await peer.say(http(GOOD)[:-5])
    peer.slam()
    return False


def is_behaviour(wrong: Wrong) -> Behaviour:
    return wrong.behave  # checked by mypy


PROXY_PAGE = b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
TLS_ALERT = b"\x15\x03\x01\x00\x02\x02\x46"
