"""Sessions of every kind, with faults, so that all a gateway counts has been counted once."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Asked, Stranger, card, serving
from gateway.tests.governance.desk import desk, wrong

WORKFLOWS = (
    """
workflow: shop
version: 1.0.0
steps:
  - {name: act, role: execute, action: look, input_mapping: {intent: input.intent}}
output: act.output
contract:
  semantics:
    domains: {intent: {values: {REFUND: [money back]}}}
    fields: [{in: input, at: /intent, domain: intent}]
""",
    """
workflow: rejected
version: 1.0.0
steps:
  - {name: act, role: execute, action: reject}
output: act.output
""",
    """
workflow: narrow
version: 1.0.0
steps:
  - {name: act, role: execute, action: squeeze}
output: act.output
""",
    """
workflow: promised
version: 1.0.0
steps:
  - {name: act, role: execute, action: fail, recovery: {policy: backoff, base_ms: 1}}
output: act.output
fallback: {output: {n: 0}}
contract:
  sla:
    broken: {min_success_rate: 0.5, min_samples: 3, window_ms: 600000, on_breach: fallback}
""",
    """
workflow: ruled
version: 1.0.0
steps:
  - {name: act, role: execute, action: fail, recovery: {policy: backoff, base_ms: 1}}
output: act.output
contract:
  fallback:
    after_failures: 2
    probe_every: 3
    rules: [{name: all, output: {n: 0}}]
    drill: {inputs: [{input: {}, rule: all}]}
""",
)
BROKEN = (500, json.dumps({"error": {"code": "INTERNAL", "reason": "INTERNAL", "message": "no"}}))
# It answers, so no breaker opens: it fails in every round.
REJECTED = (
    422,
    json.dumps({"error": {"code": "FAILED_PRECONDITION", "reason": "NOT_HERE", "message": "no"}}),
)
NARROW_S = 0.02
TIMES = 6


class Loaded(Stranger):
    """A component that says how busy it is."""

    def answer(self, asked: Asked) -> tuple[int, str]:
        if asked.path == "/acp/v1/health":
            signals = {"component": self.card["name"], "inflight": 1, "queue_length": 2}
            return 200, json.dumps({"status": "SERVING", "signals": signals})
        return super().answer(asked)


@dataclass(slots=True)
class Town:
    """The components behind one gateway."""

    client: Client

    def look(self, body: str) -> str:
        return '{"output": {"found": 1}}'

    def squeeze(self, body: str) -> str:
        threading.Event().wait(NARROW_S)
        return '{"output": 1}'

    def fail(self, body: str) -> tuple[int, str]:
        return BROKEN

    def reject(self, body: str) -> tuple[int, str]:
        return REJECTED

    def run(self, workflow: str, given: object, **headers: str) -> Any:
        body = {"workflow": workflow, "input": given}
        return self.client.post("/v1/sessions", body, prefer="wait=30", **headers).json

    def usual(self) -> None:
        """What goes well, what waits, and what is refused."""
        for _ in range(TIMES):
            self.run("shop", {"intent": "money back"})
            self.run("rejected", {})
        refused = self.client.post("/v1/sessions", {"workflow": "shop", "input": {"intent": "x"}})
        assert refused.status == 422, refused.text
        with ThreadPoolExecutor(TIMES) as callers:
            list(callers.map(lambda _: self.run("narrow", {}), range(TIMES)))

    def failing(self) -> None:
        """A component that fails: an SLA is broken, rules take over, its breaker opens."""
        for _ in range(TIMES):
            self.run("ruled", {})
        for _ in range(TIMES):
            self.run("promised", {})

    def rolled_back(self) -> None:
        """A version whose answers differ: its twins find that, and it is taken back."""
        with desk(self.client, "desk") as one:
            one.hire("2.0.0", wrong)
            patient = {"quantile": 0.5, "margin": 1.0, "slack_ms": 60_000}
            rollout = one.start(latency=patient)  # a busy machine is nothing that this is about
            view = one.serve_until(rollout, lambda found: found["status"] == "ROLLED_BACK")
            assert view["stage"] == "SHADOW", view


@contextmanager
def town(client: Client) -> Iterator[Town]:
    """Components and workflows, registered."""
    one = Town(client)
    answers: dict[str, Callable[[str], str | tuple[int, str]]] = {
        "look": one.look,
        "squeeze": one.squeeze,
        "fail": one.fail,
        "reject": one.reject,
    }
    names = {"look": "looker", "squeeze": "narrow", "fail": "broken", "reject": "closed"}
    with ExitStack() as stack:
        for action, answer in answers.items():
            told = card(names[action], "EXECUTOR", actions={action: READ})
            told["limits"] = {"max_concurrency": 1 if action == "squeeze" else 16}
            stranger = stack.enter_context(serving(Loaded(told, {"execute": answer})))
            client.register(stranger.url, lease_seconds=0)
        for text in WORKFLOWS:
            client.put_workflow(text)
        yield one
