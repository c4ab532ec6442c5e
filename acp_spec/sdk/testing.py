"""What tests of components use: a client without sockets, a clock whose hands you turn, contexts.

Ships with the SDK, so that anybody's component can be tested in milliseconds. The pair encodes and
decodes every message as HTTP would, so a payload that survives here survives the wire.
"""

import asyncio
import heapq
import itertools
from collections.abc import Callable
from types import TracebackType
from typing import TypedDict, Unpack

import httpx

from acp_spec.model.context import Callback, Context
from acp_spec.model.ids import body_digest, call_id, session_id
from acp_spec.model.session import CompleteOperation
from acp_spec.sdk.clock import Clock
from acp_spec.sdk.component import Component
from acp_spec.sdk.dispatch import Dispatcher
from acp_spec.sdk.http_client import HttpComponentClient
from acp_spec.sdk.http_server import HttpFront
from acp_spec.sdk.operations import CallBackFailed
from acp_spec.sdk.values import write


class ManualTimer:
    """A wake-up of a `ManualClock`."""

    def __init__(self, wake: Callable[[], object]) -> None:
        self.wake: Callable[[], object] | None = wake

    def cancel(self) -> None:
        self.wake = None


class ManualClock:
    """Time that stands still until a test moves it."""

    def __init__(self, *, wall_ms: float = 1_700_000_000_000.0) -> None:
        self._elapsed_ms = 0.0
        self._wall_ms = wall_ms
        self._order = itertools.count()
        self._timers: list[tuple[float, int, ManualTimer]] = []

    def monotonic_ms(self) -> float:
        return self._elapsed_ms

    def wall_ms(self) -> float:
        return self._wall_ms + self._elapsed_ms

    def call_later(self, delay_ms: float, wake: Callable[[], object]) -> ManualTimer:
        timer = ManualTimer(wake)
        due_ms = self._elapsed_ms + max(delay_ms, 0)
        heapq.heappush(self._timers, (due_ms, next(self._order), timer))
        return timer

    def advance(self, by_ms: float) -> None:
        """Move the hands; timers that come due fire in their order, each at its own time."""
        until_ms = self._elapsed_ms + by_ms
        while self._timers and self._timers[0][0] <= until_ms:
            due_ms, _, timer = heapq.heappop(self._timers)
            self._elapsed_ms = due_ms
            if timer.wake is not None:
                timer.wake()
        self._elapsed_ms = until_ms


async def settle_loop(turns: int = 20) -> None:
    """Let everything that is ready run; waits for no time."""
    for _ in range(turns):
        await asyncio.sleep(0)


class InProcess:
    """A component and a client wired together: `async with InProcess(component) as client`.

    The client writes HTTP as on the wire; only the sockets are left out. Progress arrives all at
    the end, because nothing here streams.
    """

    def __init__(
        self, component: Component, *, clock: Clock | None = None, token: str | None = None
    ) -> None:
        self._component = component
        self._clock = clock
        self._token = token
        self.call_backs = CallBacksKept()

    async def __aenter__(self) -> HttpComponentClient:
        self.dispatcher = Dispatcher(
            self._component, clock=self._clock, token=self._token, call_back=self.call_backs
        )
        self.client = HttpComponentClient(
            "http://in-process",
            token=self._token,
            transport=httpx.ASGITransport(HttpFront(self.dispatcher)),
        )
        return self.client

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.client.close()
        self.dispatcher.stop_all()
        self.dispatcher.close()


class ContextOptions(TypedDict, total=False):
    session_id: str
    call_id: str
    attempt: int
    timeout_ms: int
    retry_budget: int
    body_digest: str
    callback: Callback
    traceparent: str
    tenant: str
    labels: dict[str, str]


_COUNTED = itertools.count(1)


def build_context(
    action: str = "", arguments: object = None, **stated: Unpack[ContextOptions]
) -> Context:
    """A context as a gateway would write it; what is not stated is fresh and valid."""
    number = next(_COUNTED)
    session = stated.get("session_id", session_id(1_700_000_000_000 + number, 1, random_64=number))
    text = b"" if arguments is None else bytes(write(arguments))
    return Context(
        session_id=session,
        lineage_id=f"{session}.000000000000",
        call_id=stated.get("call_id", call_id(session, "test", sub_goal="", generation=0, redo=0)),
        attempt=stated.get("attempt", 1),
        body_digest=stated.get("body_digest", body_digest(action, text)),
        timeout_ms=stated.get("timeout_ms", 10_000),
        retry_budget=stated.get("retry_budget", 0),
        callback=stated.get("callback"),
        traceparent=stated.get("traceparent", ""),
        tenant=stated.get("tenant", ""),
        labels=stated.get("labels", {}),
    )


class CallBacksKept:
    """A call-back port that keeps what it was given; `failures` makes the first ones fail."""

    def __init__(self, *, failures: int = 0) -> None:
        self.received: list[tuple[Callback, CompleteOperation]] = []
        self.tried = 0
        self._failures = failures

    async def __call__(self, to: Callback, result: CompleteOperation) -> None:
        self.tried += 1
        if self.tried <= self._failures:
            raise CallBackFailed("the caller cannot be reached")
        self.received.append((to, result))
