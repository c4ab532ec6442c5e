"""A small town for the dashboard: real components, and one session of every kind that a page shows.

Echo and flaky are the reference components; the teller plans, claims and is contradicted; the
stranger says what no page may run; the doorkeeper keeps a session open until it is let go.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.stores.records.tests.childhood import patiently
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card, serving

Start = Callable[..., dict[str, dict[str, Any]]]
ENVIRON: Final = {
    "ACP_LIMITS_MAX_REQUEST_BYTES": str(8 << 20),
    "ACP_LIMITS_MAX_RESPONSE_BYTES": str(8 << 20),
}
GREETINGS: Final = 60
"""More than a page of sessions."""
LARGE_BYTES: Final = 5_000_000

SECRET: Final = "hunter2hunter2hunter2hunter2"
SCRIPT: Final = "<script>window.ran = 'script'</script>"
IMAGE: Final = "<img src=x onerror=\"window.ran = 'image'\">"
HIDDEN: Final = "\x1b[31mred\x07 \u202egnp.exe\u202c end"
"""A terminal's codes, and an override that turns the text after it around."""
SHOWN: Final = "␛[31mred␇ ⟨U+202E⟩gnp.exe⟨U+202C⟩ end"

WORKFLOWS: Final = (
    """
workflow: greet
version: 1.0.0
steps:
  - {name: say, role: execute, component: echo, action: echo, input_mapping: {said: input}}
output: say.output
""",
    """
workflow: shaky
version: 1.0.0
steps:
  - name: try
    role: execute
    component: flaky
    action: flaky.read
    input_mapping: {script: input.script}
    recovery: {policy: backoff, base_ms: 1}
output: try.output
""",
    """
workflow: told
version: 1.0.0
steps:
  - {name: plan, role: plan, component: teller}
  - {name: act, role: execute, plan: plan}
  - {name: judge, role: reflect, component: teller, input_mapping: {goal: input.query}}
output: judge.output
""",
    """
workflow: hostile
version: 1.0.0
steps:
  - name: act
    role: execute
    component: stranger
    action: say
    input_mapping: {what: input.what}
output: act.output
""",
    """
workflow: held
version: 1.0.0
steps: [{name: wait, role: execute, component: doorkeeper, action: pass, timeout_ms: 110000}]
output: wait.output
""",
)


@dataclass
class Town:
    """The gateway's client, what was opened there by kind, and the door of the doorkeeper."""

    client: Client
    door: threading.Event = field(default_factory=threading.Event)
    sessions: dict[str, str] = field(default_factory=dict)

    def run(self, kind: str, workflow: str, input_text: str) -> str:
        """Run a session to its end; its id is kept under `kind`."""
        found: str = self.client.run(workflow, input_text).json["session_id"]
        self.sessions[kind] = found
        return found

    def open(self, kind: str) -> str:
        """A session that goes on until the door opens."""
        self.sessions[kind] = self.client.open("held", "{}")
        return self.sessions[kind]

    def until_recorded(self) -> None:
        """Return once the records have every session that has ended."""
        ended = sorted(one for kind, one in self.sessions.items() if kind != "open")
        asked = f"SELECT count() FROM v_sessions WHERE session_id IN {tuple(ended)}"
        for _ in patiently():
            reply = self.client.post("/v1/records/query", {"sql": asked})
            assert reply.status in (200, 503), reply.text
            if reply.status == 200 and reply.json["rows"] == [[len(ended)]]:
                return


@contextmanager
def settled(client: Client, start_components: Start) -> Iterator[Town]:
    """The town with everybody in it; the door opens at the end, so that nothing is left waiting."""
    town = Town(client)
    with ExitStack() as stack:
        stack.callback(town.door.set)
        for one in start_components("echo", "flaky").values():
            client.register(one["url"], one["transport"])
        for peer in (_teller(), _stranger(), _doorkeeper(town.door)):
            client.register(stack.enter_context(serving(peer)).url)
        for source in WORKFLOWS:
            client.put_workflow(source)
        yield town


def lived(town: Town) -> Town:
    """One session of every kind, and feedback on some."""
    client = town.client
    for number in range(GREETINGS):
        town.run(f"greeting {number}", "greet", json.dumps({"number": number}))
    town.run("exact", "greet", '{"count": 12345678901234567890, "rate": 1.0}')
    town.run("secret", "greet", json.dumps({"password": SECRET, "header": f"Bearer {SECRET}"}))
    town.run("retried", "shaky", '{"script": ["UNAVAILABLE", "OK"]}')
    town.run("failed", "shaky", '{"script": ["INVALID_REQUEST"]}')
    town.run("honest", "told", '{"query": "The balance is £1,250.10."}')
    town.run("invented", "told", '{"query": "The balance is £1,350.10."}')
    hostile = town.run("hostile", "hostile", json.dumps({"what": f"{SCRIPT} {IMAGE} {HIDDEN}"}))
    town.run("large", "hostile", json.dumps({"what": "large"}))
    comment = {"kind": "RATING", "score": 1, "author": "ann", "comment": f"{SCRIPT} {HIDDEN}"}
    reply = client.post(f"/v1/sessions/{hostile}/feedback", comment)
    assert reply.status in (200, 201), reply.text
    town.until_recorded()
    return town


def _teller() -> Stranger:
    """Says as the balance whatever the session's goal is, whether or not it is so."""

    def reflect(body: str) -> str:
        asked = json.loads(body)
        (call,) = asked["calls"]
        sources = [f"/calls/{call['call_id']}/output/{name}" for name in ("balance", "currency")]
        claim = {"text": asked["goal"], "sources": sources}
        output = {"answer": asked["goal"]}
        return json.dumps({"verdict": "ACCEPT", "output": output, "claims": [claim]})

    plan = {"plan": {"sub_goals": [{"id": "look", "action": "ledger.look"}]}}
    balance = {"output": {"account": "1000000001", "balance": 1250.10, "currency": "GBP"}}
    roles = ("PLANNER", "EXECUTOR", "REFLECTOR")
    return Stranger(
        card("teller", *roles, actions={"ledger.look": READ}),
        {
            "plan": lambda _: json.dumps(plan),
            "execute": lambda _: json.dumps(balance),
            "reflect": reflect,
        },
    )


def _stranger() -> Stranger:
    def say(body: str) -> str:
        what = json.loads(body)["arguments"]["what"]
        said = f"{SCRIPT}{'x' * LARGE_BYTES}" if what == "large" else what
        return json.dumps({"output": {"said": said, SCRIPT: IMAGE}})

    return Stranger(card("stranger", "EXECUTOR", actions={"say": READ}), {"execute": say})


def _doorkeeper(door: threading.Event) -> Stranger:
    def passing(body: str) -> str:
        door.wait(120)
        return '{"output": {"passed": true}}'

    answers = {"execute": passing, "cancel": lambda body: '{"state": "RUNNING"}'}
    return Stranger(card("doorkeeper", "EXECUTOR", actions={"pass": READ}), answers)
