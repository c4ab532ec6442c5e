"""What rollouts cost, and what their tests need: time per session, samples per verdict, alarms.

`idle_ns`: a session's opening asks whether any rollout runs. With one: `opening_us` per opening,
`counted_us` per counted end (with its row), `judged_us` per look. `needs`: candidates until a
verdict (median of the runs). `false_alarms`: share of equal versions that were ever
stopped. One core.
"""

import asyncio
import json
import os
import random
import statistics
import time
from collections.abc import Callable
from typing import Final

from acp_spec.model.session import OpenSession
from gateway.board.audit import AuditLog
from gateway.engine.catalog import Catalog, Offer
from gateway.engine.tests.test_recording import offer
from gateway.engine.workflow_file import parse_stored
from gateway.governance.rollout import (
    Moment,
    Order,
    Pair,
    Rollout,
    Status,
    begun,
    counted,
    paired,
    ticked,
)
from gateway.governance.rollout_judging import Arm, Outcome, Sample
from gateway.governance.rollout_spec import RolloutSpec, Stage, StageRule, Subject
from gateway.runtime.clock import SystemClock
from gateway.runtime.principal import LOCAL
from gateway.runtime.rollout_traffic import Intent, Opening, RolloutTraffic
from gateway.runtime.rollout_versions import PolicyVersions, Versions, WorkflowVersions
from gateway.runtime.rollouts import RolloutParts, Rollouts
from gateway.runtime.tests.test_rollouts import Planners
from gateway.runtime.workflows import Workflows
from gateway.stores.durable import WriteThrough
from gateway.stores.memory import MemoryStore
from gateway.telemetry.metrics import Metrics

ROUNDS: Final = 20_000
WORKFLOW: Final = b"""
workflow: town
version: 1.0.0
steps:
  - {name: a, role: execute, component: planner, action: go}
  - {name: b, role: execute, component: other, action: look}
"""
SUBJECT: Final = Subject(name="planner", candidate="2.0.0", baseline="1.0.0")
GOOD: Final = Sample(succeeded=True, fell_back=False, work_ms=40.0)


def per_call_us(act: Callable[[], object], rounds: int = ROUNDS) -> float:
    begin = time.perf_counter()
    for _ in range(rounds):
        act()
    return (time.perf_counter() - begin) / rounds * 1e6


def costs() -> dict[str, float]:
    """One rollout in CONTROLLED, over a store in memory."""
    store = MemoryStore()
    durable, clock, metrics = WriteThrough(store), SystemClock(), Metrics()
    audit = AuditLog(store, durable, now_ms=clock.now_ms)
    workflows = Workflows(store, durable, clock=clock, catalog=Catalog)
    policies = PolicyVersions(store, durable)
    versions = Versions(Planners(), WorkflowVersions(workflows), policies=policies)
    parts = RolloutParts(store=store, durable=durable, audit=audit, clock=clock, metrics=metrics)
    rollouts = Rollouts(parts, versions)
    traffic = RolloutTraffic(rollouts, workflows, policies=policies, metrics=metrics)
    idle_us = per_call_us(lambda: traffic.is_idle, 200_000)
    spec = RolloutSpec(subject=Subject(name="planner", candidate="2.0.0"))
    rollout_id = asyncio.run(rollouts.start(spec, LOCAL)).rollout_id
    for order in (Order.PROMOTE, Order.PROMOTE):
        asyncio.run(rollouts.order(rollout_id, order, reason="", principal=LOCAL))
    workflow, _ = parse_stored(WORKFLOW)
    offers: tuple[Offer, ...] = (
        offer("planner", "1.0.0", "go"),
        offer("planner", "2.0.0", "go"),
        offer("other", "1.0.0", "look"),
    )
    catalog = Catalog(offers)
    pins = {"step:a": "planner@1.0.0", "step:b": "other@1.0.0"}
    intent = Intent(session_id="01J0000000000000000000000A", workflow=workflow, pins=pins)
    opening = Opening(tenant="t", request=OpenSession(workflow="town"), pins_of=lambda _: pins)
    chance = random.Random(1)

    def end() -> None:
        sample = Sample(succeeded=True, fell_back=False, work_ms=chance.lognormvariate(4, 1))
        rollouts.update(
            rollout_id,
            lambda one: counted(one, Stage.CONTROLLED, arm=Arm.CANDIDATE, sample=sample),
        )

    opening_us = per_call_us(lambda: traffic.placed(intent, opening, catalog=catalog))
    counted_us = per_call_us(end, 5_000)
    one = rollouts.running(rollout_id)
    assert one is not None
    moment = Moment(at_ms=0, elapsed_ms=1.0)
    judged_us = per_call_us(lambda: ticked(one, moment), 500)
    return {
        "idle_ns": round(idle_us * 1000, 1),
        "opening_us": round(opening_us, 2),
        "counted_us": round(counted_us, 2),
        "judged_us": round(judged_us, 1),
    }


def until(
    outcome: Outcome, *, baseline: float, candidate: float, seed: int, most: int = 20_000
) -> int:
    """Candidates until `success` has this verdict, with a look after every pair of ten."""
    chance = random.Random(seed)
    rollout = begun(RolloutSpec(subject=SUBJECT), by="", at_ms=0)
    for number in range(1, most + 1):
        ends = (chance.random() < rate for rate in (baseline, candidate))
        primary, twin = (Sample(succeeded=e, fell_back=False, work_ms=40.0) for e in ends)
        rollout = paired(rollout, rollout.stage, pair=Pair(primary=primary, twin=twin))
        if number % 10 == 0:
            verdicts = ticked(rollout, Moment(at_ms=0, elapsed_ms=0.0)).verdicts
            if next(v for v in verdicts if v.metric == "success").outcome is outcome:
                return number
    return most


def needs(runs: int = 5) -> dict[str, int]:
    cases = {
        "fine_100_vs_100": (Outcome.FINE, 1.0, 1.0),
        "fine_99_vs_99": (Outcome.FINE, 0.99, 0.99),
        "worse_100_vs_0": (Outcome.WORSE, 1.0, 0.0),
        "worse_99_vs_80": (Outcome.WORSE, 0.99, 0.80),
        "worse_95_vs_85": (Outcome.WORSE, 0.95, 0.85),
    }
    return {
        name: int(
            statistics.median(
                until(outcome, baseline=b, candidate=c, seed=seed) for seed in range(runs)
            )
        )
        for name, (outcome, b, c) in cases.items()
    }


def noisy(chance: random.Random) -> Sample:
    return Sample(
        succeeded=chance.random() < 0.9,
        fell_back=chance.random() < 0.1,
        work_ms=chance.lognormvariate(4, 0.5),
        reward=chance.random(),
    )


def false_alarms(runs: int = 100, pairs: int = 1_000) -> float:
    """Equal versions, margins of nothing, a look after every tenth pair: how many are stopped."""
    nothing = {"margin": 0.0}
    text = {
        "subject": {"name": "planner", "candidate": "2.0.0"},
        "success": nothing,
        "fallback": nothing,
        "reward": nothing,
        "latency": {"margin": 0.0, "slack_ms": 0.0},
    }
    spec = _spec(text)
    chance, stopped = random.Random("equal"), 0
    for _ in range(runs):
        rollout: Rollout = begun(spec, by="", at_ms=0)
        for number in range(pairs):
            pair = Pair(primary=noisy(chance), twin=noisy(chance))
            rollout = paired(rollout, Stage.CANARY, pair=pair)
            if number % 10 == 0:
                rollout = ticked(rollout, Moment(at_ms=0, elapsed_ms=0.0))
        stopped += rollout.status is not Status.RUNNING
    return stopped / runs


def _spec(text: dict[str, object]) -> RolloutSpec:
    import msgspec

    spec: RolloutSpec = msgspec.convert(text, RolloutSpec)
    return msgspec.structs.replace(spec, canary=StageRule(share=0.01, min_samples=10**9))


def main() -> None:
    found: dict[str, object] = {**costs(), "needs": needs(), "false_alarms": false_alarms()}
    found |= {"alpha": 0.05, "load": round(os.getloadavg()[0], 2)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
