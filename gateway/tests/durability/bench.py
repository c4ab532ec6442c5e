"""A whole gateway inside the test's process, over a store that a test may cut off at any moment.

The parts are those of `acp serve`, wired by the same `build`; only the store and the component are
the test's. Requests go through the real HTTP server, so that a promise is bytes that came out.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import uvloop

from gateway.assembly.building import Gateway, build
from gateway.config.settings import Settings
from gateway.engine.events import AnyEvent
from gateway.runtime.principal import LOCAL
from gateway.stores.errors import KeyGone
from gateway.stores.event_codec import Sealer
from gateway.stores.forgetful import ForgetfulStore
from gateway.stores.journal import read_events
from gateway.stores.ports import Store
from gateway.tests.durability.witness import CARD, Witness
from gateway.transports.http_server import HttpServer

T = TypeVar("T")
STORY_S_MAX = 40.0


def run(story: Callable[[], Awaitable[T]]) -> T:
    """Run a test's story on the loop that the gateway uses."""

    async def bounded() -> T:
        async with asyncio.timeout(STORY_S_MAX):
            return await story()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(bounded())


def settings_in(folder: Path, *, sync: bool = True, **limits: int) -> Settings:
    return Settings.model_validate(
        {
            "data_dir": folder,
            "http": {"bind": "127.0.0.1:0"},
            "grpc": {"bind": "127.0.0.1:0"},
            "journal": {"sync": sync},
            "limits": limits,
            "grace": {"cancel_grace_ms": 200},
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One running gateway, its only component, and a client of it."""

    gateway: Gateway
    store: ForgetfulStore
    witness: Witness
    client: httpx.AsyncClient

    async def put_workflow(self, source: str) -> httpx.Response:
        """Store a workflow of one line `workflow: name`, version 1.0.0."""
        name = source.split("workflow:")[1].split()[0]
        return await self.client.put(
            f"/v1/workflows/{name}/versions/1.0.0",
            content=source,
            headers={"content-type": "application/yaml"},
        )

    async def open(self, workflow: str, *, wait: int = 0, **fields: object) -> Any:
        """Open a session: the answer's JSON."""
        headers = {"prefer": f"wait={wait}"} if wait else {}
        body = {"workflow": workflow, "input": {"n": 1}, **fields}
        answer = await self.client.post("/v1/sessions", json=body, headers=headers)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()


@asynccontextmanager
async def serving(
    store: ForgetfulStore, folder: Path, *, sync: bool = True, **limits: int
) -> AsyncIterator[Bench]:
    """Serve a gateway over `store` until the block ends."""
    gateway = build(settings_in(folder, sync=sync, **limits), store=store)
    http = HttpServer(gateway.services, gateway.gate, settings=gateway.settings)
    gateway.contexts.public_url = http.url
    tasks = [asyncio.ensure_future(http.serve()), asyncio.ensure_future(gateway.outbox.run())]
    await http.started()
    gateway.unready.discard("recovering sessions")
    witness = Witness()
    gateway.registry.attach(CARD, witness, instance_id="witness", principal=LOCAL)
    async with httpx.AsyncClient(base_url=http.url, timeout=30, trust_env=False) as client:
        yield Bench(gateway=gateway, store=store, witness=witness, client=client)
    http.stop()
    gateway.driver.timers.close()
    await gateway.executors.close()
    gateway.outbox.stop()
    await asyncio.gather(*tasks, return_exceptions=True)
    await gateway.registry.close()
    await gateway.committer.close()


def reopened(store: ForgetfulStore, folder: Path) -> Gateway:
    """A gateway that finds `store` at its start; it does not serve, it is asked."""
    return build(settings_in(folder), store=store)


def events_in(store: Store, session_id: str) -> list[AnyEvent]:
    """The events of a session that stand in this store; none when it or its key is not there."""
    try:
        found = read_events(store, Sealer(store), session_id=session_id)
        return [event for _, event in found]
    except KeyGone:
        return []
