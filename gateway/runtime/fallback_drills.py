"""Drills: the rules of every business fallback answer recorded inputs again, on a schedule (R15).

A fallback that nobody has tried fails on the day it is needed. Inputs come from the contract and
from the latest sessions of the same tenant. Rules are evaluated and nothing else: no session opens,
nothing is sent. The result is kept, counted, logged, and an error when it is not good.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.codec.json_text import CanonicalError, canonical
from acp_spec.model.enums import Word
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.payload import payload
from acp_spec.model.times import rfc3339
from gateway.engine.contract_checks import input_problem
from gateway.engine.definition import Workflow
from gateway.engine.events import Opened
from gateway.governance.business_fallback import Answer, BusinessFallback, Case, DrillInput
from gateway.governance.fallback_track import Standing, Terms, Track
from gateway.runtime.clock import Clock
from gateway.runtime.fallbacks import Fallbacks, answered, case_of, rules_of
from gateway.runtime.kept_rows import kept_rows
from gateway.runtime.lasting import broken_off, lasting, survived
from gateway.runtime.principal import DEFAULT_TENANT
from gateway.runtime.workflows import Workflows
from gateway.stores.durable import Durable
from gateway.stores.errors import RecordError, StoreError
from gateway.stores.event_codec import Sealer
from gateway.stores.journal import read_events
from gateway.stores.ports import Store, Table
from gateway.stores.tables import text_part
from gateway.telemetry.logs import get_log
from gateway.telemetry.metrics import Metrics

log = get_log("gateway.fallbacks")

FAILURES_KEPT: Final = 20
TICK_MS: Final = 1_000
DRILLS_A_TICK: Final = 4
"""A drill is some hundred evaluations on the loop; so many at once hold it for some 10 ms."""
LOOP: Final = "drills"
_KIND: Final = b"drill\0"
Key = tuple[str, str]


class DrillOutcome(Word):
    """EMPTY: there was nothing to try, which proves nothing."""

    PASSED = "PASSED"
    FAILED = "FAILED"
    EMPTY = "EMPTY"


class DrillFailure(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One input that was not answered as it should be. `source`: a session, or `contract[i]`."""

    source: str
    rule: str
    message: str


class DrillResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What a drill found. `answered_by`: how often each rule answered."""

    outcome: DrillOutcome
    workflow: str
    rules_version: str
    at: str
    at_ms: int
    by: str
    inputs: int = 0
    failed: int = 0
    answered_by: dict[str, int] = {}
    never_asked: tuple[str, ...] = ()
    failures: tuple[DrillFailure, ...] = ()


class FallbackView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one workflow stands for the caller's tenant, and what its last drill found."""

    workflow: str
    version: str
    rules_version: str
    standing: Standing
    since: str = ""
    failures: int = 0
    successes: int = 0
    trips: int = 0
    terms: Terms = Terms()
    drill: DrillResult | None = None


class FallbackPage(msgspec.Struct, frozen=True, kw_only=True):
    fallbacks: tuple[FallbackView, ...] = ()


class DrillAnswer(msgspec.Struct, frozen=True, kw_only=True):
    drill: DrillResult


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillParts:
    """What drills stand on."""

    fallbacks: Fallbacks
    workflows: Workflows
    store: Store
    sealer: Sealer
    durable: Durable
    clock: Clock
    metrics: Metrics


class Drills:
    """The drills of one gateway. `start` it on the loop, `close` it before the store."""

    def __init__(self, parts: DrillParts) -> None:
        self._parts = parts
        self._has_rules: dict[str, bool] = {}
        self._raised: dict[Key, int] = {}
        self._loop_task: asyncio.Task[None] | None = None
        self._results: dict[Key, DrillResult] = {}
        for row, result in kept_rows(parts.store, _KIND, kind=DrillResult):
            workflow, tenant = row.split(b"\0")[:2]
            self._results[workflow.decode(), tenant.decode()] = result

    # ---- for people ------------------------------------------------------------------------------

    def page(self, tenant: str) -> FallbackPage:
        """Every active workflow with rules."""
        views = (self._view(one, tenant) for one in self._with_rules())
        return FallbackPage(fallbacks=tuple(views))

    def one(self, workflow: str, *, tenant: str) -> FallbackView:
        """One workflow with rules; raises NOT_FOUND."""
        return self._view(self._named(workflow), tenant)

    def failing(self) -> int:
        """How many last drills of active versions, counted per workflow and tenant, were not good.
        What another version was found to be is over with it."""
        active = {f"{one.name}@{one.version}" for one in self._with_rules()}
        failed = (one for one in self._results.values() if one.outcome is DrillOutcome.FAILED)
        return sum(one.workflow in active for one in failed)

    def answering(self) -> int:
        """How many active workflows, counted per tenant, are answered by their rules now."""
        return self._parts.fallbacks.answering({one.name for one in self._with_rules()})

    async def run(self, workflow: str, *, tenant: str, by: str) -> DrillResult:
        """A drill now; answered once its result is durable."""
        result = self._drill(self._named(workflow), tenant, by=by)
        await self._parts.durable.synced()
        return result

    # ---- on schedule -----------------------------------------------------------------------------

    def start(self) -> None:
        looks = lasting(
            self.tick,
            every_s=TICK_MS / 1000,
            loop=LOOP,
            failed=self._parts.metrics.loop_failed,
        )
        self._loop_task = asyncio.get_running_loop().create_task(looks)

    async def close(self) -> None:
        if self._loop_task is not None:
            await broken_off(self._loop_task)

    def tick(self) -> int:
        """Do the drills that are due, a few at a time; how many were tried. One that raises keeps
        no other from its turn, and has its own again after all others."""
        due = sorted(self._due(), key=lambda one: self._raised.get((one[0].name, one[1]), 0))
        for workflow, tenant in due[:DRILLS_A_TICK]:
            key = (workflow.name, tenant)
            self._raised[key] = self._raised.get(key, 0) + 1
            look = partial(self._scheduled, workflow, tenant)
            survived(look, loop=LOOP, failed=self._parts.metrics.loop_failed)
        return len(due[:DRILLS_A_TICK])

    def _scheduled(self, workflow: Workflow, tenant: str) -> None:
        self._drill(workflow, tenant, by="schedule")
        del self._raised[workflow.name, tenant]

    def _due(self) -> Iterator[tuple[Workflow, str]]:
        now_ms = self._parts.clock.now_ms()
        for workflow in self._with_rules():
            rules = rules_of(workflow)
            assert rules is not None, "only those with rules are listed"
            tenants = self._parts.fallbacks.tenants(workflow.name) or {DEFAULT_TENANT}
            for tenant in sorted(tenants):
                last = self._results.get((workflow.name, tenant))
                reference = f"{workflow.name}@{workflow.version}"
                is_new = last is None or last.workflow != reference
                # A clock that went back makes it due: the next would come that much later.
                if is_new or (last and not 0 <= now_ms - last.at_ms < rules.drill.every_ms):
                    yield workflow, tenant

    # ---- inside ----------------------------------------------------------------------------------

    def _with_rules(self) -> Iterator[Workflow]:
        """Active workflows that have rules; each version is parsed once to know."""
        for name, version, digest in self._parts.workflows.active_digests():
            if digest not in self._has_rules:
                workflow = self._parts.workflows.exact(name, version)
                self._has_rules[digest] = rules_of(workflow) is not None
            if self._has_rules[digest]:
                yield self._parts.workflows.exact(name, version)

    def _named(self, workflow: str) -> Workflow:
        found = self._parts.workflows.resolve(workflow)
        if rules_of(found) is None:
            message = f"{found.name}@{found.version} has no rules: its contract has no `fallback`"
            raise AcpFailure(error(Reason.NOT_FOUND, message))
        return found

    def _view(self, workflow: Workflow, tenant: str) -> FallbackView:
        rules = rules_of(workflow)
        assert rules is not None, "only those with rules are shown"
        track: Track = self._parts.fallbacks.track(workflow.name, tenant)
        return FallbackView(
            workflow=workflow.name,
            version=workflow.version,
            rules_version=rules.version,
            standing=track.standing,
            since=rfc3339(track.since_ms) if track.since_ms else "",
            failures=track.failures,
            successes=track.successes,
            trips=track.trips,
            terms=rules.terms,
            drill=self._results.get((workflow.name, tenant)),
        )

    def _drill(self, workflow: Workflow, tenant: str, *, by: str) -> DrillResult:
        rules = rules_of(workflow)
        assert rules is not None, "only those with rules are drilled"
        answers = [
            (source, given, answered(workflow, rules, case=case))
            for source, given, case in self._cases(workflow, rules, tenant=tenant)
        ]
        result = _judged(workflow, answers, at_ms=self._parts.clock.now_ms(), by=by)
        key = (workflow.name, tenant)
        self._results[key] = result
        row = _KIND + text_part(workflow.name) + text_part(tenant)
        self._parts.durable.put(Table.GOVERNANCE, row, msgspec.json.encode(result))
        self._parts.metrics.fallback_drilled(workflow.name, result.outcome.value)
        if result.outcome is not DrillOutcome.PASSED:
            say = log.error if result.outcome is DrillOutcome.FAILED else log.warning
            say(
                "fallback_drill",
                outcome=result.outcome.value,
                workflow=result.workflow,
                tenant=tenant,
                inputs=result.inputs,
                failed=result.failed,
            )
        return result

    def _cases(
        self, workflow: Workflow, rules: BusinessFallback, *, tenant: str
    ) -> Iterator[tuple[str, DrillInput | None, Case]]:
        """Recorded inputs that this version does not take any more would open no session."""
        reference = f"{workflow.name}@{workflow.version}"
        for index, given in enumerate(rules.drill.inputs):
            case = Case(input=payload(given.input), tenant=tenant, workflow=reference)
            yield f"contract[{index}]", given, case
        for session_id in self._parts.fallbacks.recent(workflow.name, tenant)[: rules.drill.keep]:
            opened = self._opened(session_id)
            if opened is not None and not input_problem(workflow, bytes(opened.input)):
                case = msgspec.structs.replace(case_of(opened), workflow=reference)
                yield session_id, None, case

    def _opened(self, session_id: str) -> Opened | None:
        """How a session was opened; None once it was deleted, or where it cannot be read."""
        events = read_events(self._parts.store, self._parts.sealer, session_id=session_id)
        try:
            _, first = next(events, (0, None))
        except (RecordError, StoreError):
            return None
        return first if isinstance(first, Opened) else None


Answered = tuple[str, DrillInput | None, Answer]


def _judged(workflow: Workflow, answers: list[Answered], *, at_ms: int, by: str) -> DrillResult:
    rules = rules_of(workflow)
    assert rules is not None, "only those with rules are drilled"
    counts: dict[str, int] = {}
    failures: list[DrillFailure] = []
    for source, given, found in answers:
        counts[found.rule] = counts.get(found.rule, 0) + 1
        message = wrong(given, found)
        if message:
            failures.append(DrillFailure(source=source, rule=found.rule, message=message))
    good = DrillOutcome.PASSED if answers else DrillOutcome.EMPTY
    return DrillResult(
        outcome=DrillOutcome.FAILED if failures else good,
        workflow=f"{workflow.name}@{workflow.version}",
        rules_version=rules.version,
        at=rfc3339(at_ms),
        at_ms=at_ms,
        by=by,
        inputs=len(answers),
        failed=len(failures),
        answered_by=counts,
        never_asked=tuple(rule.name for rule in rules.rules if rule.name not in counts),
        failures=tuple(failures[:FAILURES_KEPT]),
    )


def wrong(given: DrillInput | None, found: Answer) -> str:
    """What is wrong with an answer; nothing if it is as it should be."""
    if found.error is not None:
        return found.error.message
    if given is None:
        return ""
    if given.rule and given.rule != found.rule:
        return f"rule {found.rule!r} answered, it should have been {given.rule!r}"
    if given.output and _plain(given.output) != _plain(bytes(found.output)):
        shown = bytes(found.output)[:200].decode("utf-8", "replace")
        return f"the answer was {shown}"
    return ""


def _plain(text: bytes) -> bytes:
    """Equal JSON has equal text; what cannot be written canonically is compared as it stands."""
    try:
        return canonical(msgspec.json.decode(text or b"null"))
    except (CanonicalError, msgspec.DecodeError):
        return text
