"""A house whose sessions may be answered by the rules of its workflow's contract."""

from typing import Any

from acp_spec.model.enums import SessionStatus
from acp_spec.model.errors import Reason
from acp_spec.model.payload import payload
from acp_spec.model.session import SessionView
from gateway.engine.tests.stage import ONE_ACTION, failed, gave
from gateway.governance.fallback_track import Standing
from gateway.runtime.fallback_drills import DrillParts, DrillResult, Drills
from gateway.runtime.fallbacks import Fallbacks
from gateway.runtime.observing import Observers
from gateway.runtime.principal import LOCAL, Principal
from gateway.runtime.tests.house import House
from gateway.runtime.tests.virtual_time import SkewedClock
from gateway.stores.memory import MemoryStore
from gateway.telemetry.metrics import Metrics

RULES = """
contract:
  output_schema: {type: object, required: [to]}
  fallback:
    version: "r1"
    after_failures: 3
    probe_every: 4
    return_after: 2
    rules:
      - {name: small, when: "input.n < 10", output: {to: clerk}}
      - {name: odd, when: "input.n == 666", output: "input.missing"}
      - {name: loose, when: "input.n == 777", output: {from: nobody}}
      - {name: rest, output: "{'to': input.branch}"}
    drill:
      every_ms: 60000
      keep: 3
      inputs:
        - {input: {n: 1}, rule: small, output: {to: clerk}}
        - {input: {n: 50, branch: north}, rule: rest, output: {to: north}}
"""
WORKFLOW = ONE_ACTION % "read" + "recovery: {policy: backoff, base_ms: 1}\n" + RULES
BROKEN = failed(Reason.UNAVAILABLE)
DEADLINE_MS = 30_000
GIVEN = payload(b'{"n":5}')


class Bank:
    """A house whose sessions may be answered by rules."""

    def __init__(self, *, store: MemoryStore | None = None) -> None:
        self.clock = SkewedClock()
        self.house = House(store=store, clock=self.clock)
        self.metrics = Metrics()
        self.fallbacks = Fallbacks(
            self.house.store,
            self.house.committer,
            clock=self.house.clock,
            metrics=self.metrics,
            session_deadline_ms=DEADLINE_MS,
        )
        self.house.driver._observer = Observers(self.house.seen, self.fallbacks)
        self.house.service._openings.fallbacks = self.fallbacks
        self.drills = Drills(
            DrillParts(
                fallbacks=self.fallbacks,
                workflows=self.house.workflows,
                store=self.house.store,
                sealer=self.house.sealer,
                durable=self.house.committer,
                clock=self.house.clock,
                metrics=self.metrics,
            )
        )

    def breaks(self, *, broken: bool = True) -> None:
        self.house.targets.connection.lines["read"] = BROKEN if broken else gave({"to": "agent"})

    @property
    def sent(self) -> int:
        return len(self.house.targets.connection.sent)

    async def ask(
        self, text: bytes = b'{"n":5}', *, principal: Principal = LOCAL, **fields: object
    ) -> SessionView:
        """One session, to its end."""
        given: Any = {"input": payload(text), **fields}
        session = await self.house.open(WORKFLOW, principal=principal, **given)
        return await self.house.ended(session, principal)

    async def name(self) -> str:
        return (await self.house.learn(WORKFLOW)).partition("@")[0]

    async def standing(self, tenant: str = LOCAL.tenant) -> Standing:
        return self.fallbacks.track(await self.name(), tenant).standing

    async def renew(self, version: str, found: str, becomes: str) -> None:
        """Another version of the workflow becomes active."""
        name = await self.name()
        source = self.house.workflows.stored(name, "1.0.0").source
        newer = source.replace("version: 1.0.0", f"version: {version}", 1)
        newer = newer.replace(found, becomes, 1)
        await self.house.workflows.put(name, version, source=newer.encode())
        await self.house.workflows.activate(name, version)

    async def drill(self) -> DrillResult:
        return await self.drills.run(await self.name(), tenant=LOCAL.tenant, by="me")

    async def trip(self) -> None:
        self.breaks()
        for _ in range(3):
            assert (await self.ask()).status is SessionStatus.FAILED
        assert await self.standing() is Standing.RULES
