"""What governance costs: the row per call, a recovery decision, and a hundred thousand targets.

Prints one JSON object as its last line: `row_us` (check, take and observe of a call that goes
well), `decision_us` (one recovery decision with features, guards and draw), `targets`, and the
resident memory of their states (`targets_rss_mb`). Times are CPU times of this process, medians of
several rounds: what others do on the machine is no cost of the row.
"""

import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from acp_spec.model.card import Card, Limits
from acp_spec.model.enums import SideEffect
from acp_spec.model.recovery import Trigger
from gateway.engine import recovery
from gateway.engine.around import Around
from gateway.engine.backoff_policy import BackoffPolicy
from gateway.engine.states import CallState, SessionState
from gateway.engine.tests.casting import START_MS, Cast
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import CATALOG, ONE_ACTION, failed, troupe, workflow_of
from gateway.governance.governor import Row
from gateway.governance.outcome import Outcome
from gateway.governance.parameters import Override, Parameters, rules_for
from gateway.governance.rules import RateRules, Rules
from gateway.governance.verdicts import Admit
from gateway.governance.wish import Wish

ROUNDS = 7
CALLS = 20_000
DECISIONS = 5_000
TARGETS = 100_000
BREAKERS_OPENED = 10
"""Every so many-th target fails, so that not only healthy states are counted."""


def rules() -> Rules:
    """A target with everything declared: a card's rate, an action's rate, slots, a breaker."""
    rate = {"quote": RateRules(per_second=1_000_000, burst=1_000_000)}
    parameters = Parameters(components={"fees": Override(actions=rate)})
    limits = Limits(max_concurrency=1_000, max_rate_per_s=1_000_000)
    return rules_for(parameters, Card(name="fees", version="1.0.0", limits=limits), version=1)


def wish(held: Rules, *, number: int, now_ms: float) -> Wish:
    return Wish(
        rules=held,
        step_type="TOOL",
        instance=f"cmp_{number:020x}",
        pin="fees@1.0.0",
        action="quote",
        left_ms=5_000,
        now_ms=now_ms,
    )


def median_us(once: Callable[[int], None], count: int) -> float:
    """Median over the rounds of the mean cost of one call."""
    figures = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for number in range(count):
            once(number)
        figures.append((time.process_time() - began) / count * 1e6)
    return statistics.median(figures)


def row_us() -> float:
    row, held = Row(), rules()

    def once(number: int) -> None:
        asking = wish(held, number=number % 64, now_ms=number * 0.1)
        assert type(row.check(asking)) is Admit
        permit = row.take(asking)
        row.observe(permit, Outcome.SUCCEEDED, now_ms=asking.now_ms + 5)

    return median_us(once, CALLS)


def deciding() -> tuple[SessionState, CallState]:
    """A session whose read has just failed."""
    cast = Cast(component=troupe(read=failed(side_effect=SideEffect.NONE)))
    play = Play(workflow_of(ONE_ACTION % "read"), CATALOG, cast).open().run()
    (call,) = play.state.calls.values()
    return play.state, call


def decision_us() -> float:
    (state, call), policy, now = deciding(), BackoffPolicy(), Around(at_ms=START_MS)

    def once(number: int) -> None:
        recovery.decide(state, call, policy=policy, trigger=Trigger.FAILED, around=now)

    return median_us(once, DECISIONS)


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def targets_rss_mb() -> float:
    """Every target called once, each with a state of its own in every column; nothing forgotten."""
    gc.collect()
    before = resident_mb()
    row, held = Row(), rules()
    for number in range(TARGETS):
        asking = Wish(
            rules=held,
            step_type="TOOL",
            instance=f"cmp_{number:020x}",
            pin=f"fees{number}@1.0.0",
            action="quote",
            left_ms=5_000,
            now_ms=float(number),
        )
        for _ in range(5 if number % BREAKERS_OPENED == 0 else 1):
            failed_ = number % BREAKERS_OPENED == 0
            outcome = Outcome.FAILED if failed_ else Outcome.SUCCEEDED
            row.observe(row.take(asking), outcome, now_ms=float(number) - 1)
        row.take(asking)  # one in flight everywhere
    gc.collect()
    print(f"{len(row):,} states of {TARGETS:,} targets, one call in flight at each", flush=True)
    return resident_mb() - before


def main() -> None:
    print(f"load average {os.getloadavg()[0]:.2f}", flush=True)
    found = {
        "row_us": round(row_us(), 2),
        "decision_us": round(decision_us(), 2),
        "targets": TARGETS,
        "targets_rss_mb": round(targets_rss_mb(), 1),
    }
    bounds = {"row_us": 15, "decision_us": 50, "targets_rss_mb": 300}
    for name, bound in bounds.items():
        print(f"{name}: {found[name]} (promised: under {bound})", flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
