"""One planned case against one component: step by step, check by check, until one cannot go on.

A step that is `given` and fails ends the case with the check `<step>.given`: the requirement was
not reached. Every answer goes to the log that the watches read.
"""

import asyncio
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, cast

from conformance_tests.messages.tree import Inexpressible, Text, Tree, Value
from conformance_tests.raw.http1 import Unreachable
from conformance_tests.runner import requests
from conformance_tests.runner.answers import Answer, Exchange
from conformance_tests.runner.checks import run_checks
from conformance_tests.runner.expansion import Planned
from conformance_tests.runner.judges import JUDGES, NotSeen
from conformance_tests.runner.library import Step
from conformance_tests.runner.peers import GRACE_S, Ask, Peer, body_of
from conformance_tests.runner.requests import HarnessError
from conformance_tests.runner.results import Finding, Outcome, Result, settle
from conformance_tests.runner.scope import Scope, UnknownName
from conformance_tests.runner.subject import ROLE_OF_CALL, Subject, Untestable

POLL_MS: Final = 20
POLLS_MAX: Final = 500


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


class Scenario:
    """Runs the steps of one planned case."""

    def __init__(self, planned: Planned, peer: Peer, *, subject: Subject, seed: int) -> None:
        self._planned = planned
        self._peer = peer
        self._subject = subject
        chance = random.Random(f"{seed}/{planned.id}")
        self._scope = Scope(chance, planned.values)
        self._tally = Tally(0, [], [])
        self._said: dict[str, Exchange] = {}
        self.log: list[Exchange] = []

    async def run(self) -> Result:
        begun = time.monotonic()
        outcome, reason = Outcome.PASSED, ""
        try:
            for step in self._planned.case.steps:
                await self._step(step)
        except CannotGoOn as stopped:
            self._tally.findings.append(stopped.finding)
        except Untestable as lack:
            outcome, reason = Outcome.NOT_TESTED, str(lack)
        except HarnessError as own:
            outcome, reason = Outcome.HARNESS_ERROR, str(own)
        if outcome is Outcome.PASSED and self._tally.findings:
            outcome = Outcome.FAILED
        elif outcome is Outcome.PASSED and self._tally.not_seen:
            outcome, reason = Outcome.NOT_APPLICABLE, "; ".join(self._tally.not_seen)
        result = replace(
            self._planned.result(outcome, reason=reason),
            checks_done=self._tally.done,
            findings=tuple(self._tally.findings),
            elapsed_ms=(time.monotonic() - begun) * 1000,
        )
        return settle(result)

    async def _step(self, step: Step) -> None:
        if step.together:
            await asyncio.gather(*(self._step(inner) for inner in step.together))
            return
        if step.do == "wait":
            await asyncio.sleep(float(cast("int", step.options["ms"])) / 1000)
            return
        if "ms" in step.options:
            await asyncio.sleep(float(cast("int", step.options["ms"])) / 1000)
        if "only_if" in step.options and not self._holds(step.options["only_if"]):
            self._tally.not_seen.append(f"step {step.label} was not reached")
            self._tally.done += step.checks
            return
        seen = (
            self._said[str(step.options["to"])] if step.do == "look" else await self._exchange(step)
        )
        if step.do != "look":
            self.log.append(seen)
        self._said[step.label] = seen
        self._scope.keep(step.label, _kept(seen))
        for finding in self._findings(step, seen):
            self._tally.done += 1
            if finding is not None and step.given:
                raise CannotGoOn(replace(finding, check=f"{step.label}.given"))
            if finding is not None:
                self._tally.findings.append(finding)

    def _holds(self, condition: Value) -> bool:
        """`{value: $x, is: wanted}`, or `$x`: it is there and not empty."""
        try:
            found = self._scope.fill(condition)
        except UnknownName:
            return False
        if isinstance(condition, dict) and isinstance(found, dict):
            return found["value"] == found["is"]
        return bool(found)

    async def _exchange(self, step: Step) -> Exchange:
        try:
            do, tree, ask = self._ask(step)
            if not step.wrong and ask.body is None:
                requests.check_own(do, tree)
            answer = await (self._poll(ask) if step.do == "poll" else self._peer.ask(ask))
        except Unreachable as problem:
            raise CannotGoOn(
                Finding(check=f"{step.label}.reachable", message=str(problem))
            ) from None
        except UnknownName as problem:
            raise CannotGoOn(Finding(check=f"{step.label}.given", message=str(problem))) from None
        except Inexpressible as problem:
            raise HarnessError(f"step {step.label} over {self._peer.binding}: {problem}") from None
        return Exchange(
            case=self._planned.id,
            request=tree,
            answer=answer,
            wrong=step.wrong,
            accepts_stream=ask.stream,
            secrets=_secrets(tree, ask),
        )

    def _ask(self, step: Step) -> tuple[str, Tree, Ask]:
        options = step.options
        do = str(self._scope.fill(step.do))
        do = "get_operation" if do == "poll" else do
        own = cast("Tree", self._scope.fill(options.get(self._peer.binding, {})))
        if do == "raw":
            return do, {}, _raw(own)
        tree = requests.build(do, options, scope=self._scope, subject=self._subject)
        stated = cast("dict[str, str | None]", self._scope.fill(options.get("headers", {})))
        to = self._scope.fill(options.get("to", ""))
        body = body_of(self._scope.fill(options.get("body", own.get("body"))))
        if "pad" in options:
            most = self._subject.max_request_bytes + cast("int", options["pad"])
            body = requests.padded(do, tree, size=most, binding=self._peer.binding)
        wanted = (
            self._scope.fill(example.get("output"))
            if (example := _example(options, self._scope))
            else None
        )
        ask = Ask(
            do=do,
            tree=tree,
            headers={**stated, **cast("dict[str, str | None]", own.get("headers", {}))},
            call_id=str(to),
            body=body,
            stream=bool(options.get("stream", False)),
            timeout_s=_patience_s(tree),
        )
        return do, tree if wanted is None else {**tree, "@output": wanted}, ask

    async def _poll(self, ask: Ask) -> Answer:
        """Ask again until the operation has ended or an error comes."""
        for _ in range(POLLS_MAX):
            answer = await self._peer.ask(ask)
            if not answer.ok or (answer.tree or {}).get("status") != "RUNNING":
                return answer
            await asyncio.sleep(POLL_MS / 1000)
        raise Unreachable(f"the operation still runs after {POLLS_MAX} polls")

    def _findings(self, step: Step, seen: Exchange) -> Iterator[Finding | None]:
        expect = cast("Tree", self._scope.fill(step.expect))
        yield from run_checks(expect, seen.answer, label=step.label)
        if "judge" in expect:
            yield self._judged(step, seen, names=expect["judge"])

    def _judged(self, step: Step, seen: Exchange, *, names: Value) -> Finding | None:
        for name in names if isinstance(names, list) else [names]:
            try:
                problem = JUDGES[str(name)](seen, self._subject)
            except NotSeen as unseen:
                self._tally.not_seen.append(str(unseen))
                continue
            if problem is not None:
                return Finding(check=f"{step.label}.{name}", message=problem)
        return None


def _example(options: Tree, scope: Scope) -> Tree:
    stated = scope.fill(options.get("example", {}))
    return stated if isinstance(stated, dict) else {}


def _raw(own: Tree) -> Ask:
    return Ask(
        do="raw",
        method=str(own.get("method", "GET")),
        path=str(own.get("path", "/")),
        headers=cast("dict[str, str | None]", own.get("headers", {})),
        body=body_of(own.get("body")),
    )


def _patience_s(tree: Tree) -> float:
    context = tree.get("context")
    timeout_ms = context.get("timeout_ms") if isinstance(context, dict) else None
    return GRACE_S + (timeout_ms / 1000 if isinstance(timeout_ms, int) else 0)


def _kept(seen: Exchange) -> Value:
    """What later steps may name: `$first/answer/output`, `$first/call_id`, `$first/request`."""
    request: Tree = {k: v for k, v in seen.request.items() if k != "@output"}
    return {
        "request": request,
        "answer": seen.answer.tree or {},
        "call_id": seen.context.get("call_id", ""),
        "body": Text(seen.answer.body),
    }


def _secrets(tree: Tree, ask: Ask) -> tuple[str, ...]:
    context = tree.get("context")
    callback = context.get("callback") if isinstance(context, dict) else None
    token = callback.get("token") if isinstance(callback, dict) else None
    header = ask.headers.get("authorization") or ""
    return tuple(s for s in (str(token or ""), header.removeprefix("Bearer ")) if s)


assert set(ROLE_OF_CALL) == {"plan", "execute", "observe", "reflect"}
