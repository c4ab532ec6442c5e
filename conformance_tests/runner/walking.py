"""One planned case, step by step, check by check, until one cannot go on.

What a step sends is a subclass's matter. A step that is `given` and fails ends the case with the
check `<step>.given`: the requirement was not reached. Every answer goes to the log that the
watches read.
"""

import asyncio
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import cast

from conformance_tests.messages.tree import Inexpressible, Text, Tree, Value
from conformance_tests.raw.http1 import Unreachable
from conformance_tests.runner.answers import Exchange
from conformance_tests.runner.checks import run_checks
from conformance_tests.runner.expansion import Planned
from conformance_tests.runner.judges import JUDGES, NotSeen
from conformance_tests.runner.library import Step
from conformance_tests.runner.requests import HarnessError
from conformance_tests.runner.results import Finding, Outcome, Result, settle
from conformance_tests.runner.scope import Scope, UnknownName
from conformance_tests.runner.subject import NotDeclared, Subject, Untestable


class CannotGoOn(Exception):
    """A step before the one that is checked did not work."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


@dataclass(slots=True)
class Tally:
    """What a running case has checked so far."""

    done: int
    findings: list[Finding]
    not_seen: list[str]


class Walk(ABC):
    """Runs the steps of one planned case."""

    def __init__(self, planned: Planned, *, subject: Subject, seed: int) -> None:
        self.planned = planned
        self.subject = subject
        self.scope = Scope(random.Random(f"{seed}/{planned.id}"), planned.values)
        self._tally = Tally(0, [], [])
        self._said: dict[str, Exchange] = {}
        self.log: list[Exchange] = []

    @abstractmethod
    async def exchange(self, step: Step) -> Exchange:
        """Send what the step says. Raises Unreachable, UnknownName, Inexpressible, Untestable."""

    async def prepare(self) -> None:
        """What must stand before the first step; a stage for the cases of a gateway."""
        self.log.clear()

    async def run(self) -> Result:
        """The result of the case; never raises for what the target does."""
        begun = time.monotonic()
        outcome, reason = Outcome.PASSED, ""
        try:
            await self.prepare()
            for step in self.planned.case.steps:
                await self._step(step)
        except CannotGoOn as stopped:
            self._tally.findings.append(stopped.finding)
        except Untestable as lack:
            outcome, reason = Outcome.NOT_TESTED, str(lack)
        except NotDeclared as lack:
            outcome, reason = Outcome.NOT_APPLICABLE, str(lack)
        except HarnessError as own:
            outcome, reason = Outcome.HARNESS_ERROR, str(own)
        if outcome is Outcome.PASSED and self._tally.findings:
            outcome = Outcome.FAILED
        elif outcome is Outcome.PASSED and self._tally.not_seen:
            outcome, reason = Outcome.NOT_APPLICABLE, "; ".join(self._tally.not_seen)
        result = replace(
            self.planned.result(outcome, reason=reason),
            checks_done=self._tally.done,
            findings=tuple(self._tally.findings),
            elapsed_ms=(time.monotonic() - begun) * 1000,
        )
        return settle(result)

    async def _step(self, step: Step) -> None:
        if step.together:
            await asyncio.gather(*(self._step(inner) for inner in step.together))
            return
        if "ms" in step.options:
            await asyncio.sleep(float(cast("int", step.options["ms"])) / 1000)
        if step.do == "wait":
            return
        if "only_if" in step.options and not self._holds(step.options["only_if"]):
            self._tally.not_seen.append(f"step {step.label} was not reached")
            self._tally.done += step.checks
            return
        seen = await self._seen(step)
        self._said[step.label] = seen
        self.scope.keep(step.label, kept(seen))
        for finding in self._findings(step, seen):
            self._tally.done += 1
            if finding is not None and step.given:
                raise CannotGoOn(replace(finding, check=f"{step.label}.given"))
            if finding is not None:
                self._tally.findings.append(finding)

    async def _seen(self, step: Step) -> Exchange:
        if step.do == "look":
            return self._said[str(step.options["to"])]
        try:
            seen = await self.exchange(step)
        except Unreachable as problem:
            raise self._stopped(step, "reachable", problem=problem) from None
        except UnknownName as problem:
            raise self._stopped(step, "given", problem=problem) from None
        except Inexpressible as problem:
            raise HarnessError(f"step {step.label}: {problem}") from None
        self.log.append(seen)
        return seen

    @staticmethod
    def _stopped(step: Step, what: str, *, problem: Exception) -> CannotGoOn:
        return CannotGoOn(Finding(check=f"{step.label}.{what}", message=str(problem)))

    def _holds(self, condition: Value) -> bool:
        """`{value: $x, is: wanted}`, or `$x`: it is there and not empty."""
        try:
            found = self.scope.fill(condition)
        except UnknownName:
            return False
        if isinstance(condition, dict) and isinstance(found, dict):
            return found["value"] == found["is"]
        return bool(found)

    def _findings(self, step: Step, seen: Exchange) -> Iterator[Finding | None]:
        try:
            expect = cast("Tree", self.scope.fill(step.expect))
        except UnknownName as problem:
            raise self._stopped(step, "given", problem=problem) from None
        yield from run_checks(expect, seen.answer, label=step.label)
        if "judge" in expect:
            yield self._judged(step, seen, names=expect["judge"])

    def _judged(self, step: Step, seen: Exchange, *, names: Value) -> Finding | None:
        for name in names if isinstance(names, list) else [names]:
            try:
                problem = JUDGES[str(name)](seen, self.subject)
            except NotSeen as unseen:
                self._tally.not_seen.append(str(unseen))
                continue
            if problem is not None:
                return Finding(check=f"{step.label}.{name}", message=problem)
        return None


def kept(seen: Exchange) -> Value:
    """What later steps may name: `$first/answer/output`, `$first/call_id`, `$first/request`."""
    request: Tree = {k: v for k, v in seen.request.items() if k != "@output"}
    return {
        "request": request,
        "answer": seen.answer.tree or {},
        "call_id": seen.context.get("call_id", ""),
        "body": Text(seen.answer.body),
    }
