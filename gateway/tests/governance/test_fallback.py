"""A fallback as operators meet it: components fail, rules answer over a kill, and give way."""

import json
from collections.abc import Callable, Iterator

import pytest
from typer.testing import CliRunner, Result

from acp_spec.sdk.cli import Exit
from gateway.cli.fallback import app
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card, serving
from gateway.tests.served import Served

WORKFLOW = """
workflow: teller
version: 1.0.0
steps:
  - name: act
    role: execute
    component: strange-teller
    action: decide
    input_mapping: {amount: input.amount}
    recovery: {policy: backoff, base_ms: 1}
output: act.output
contract:
  fallback:
    version: rules-3
    after_failures: 2
    probe_every: 3
    return_after: 2
    rules:
      - {name: small, when: "input.amount < 100", output: {decision: accept}}
      - {name: rest, output: {decision: refer}}
    drill:
      inputs: [{input: {amount: 5}, rule: small}, {input: {amount: 500}, output: {decision: refer}}]
"""
BROKEN = (500, json.dumps({"error": {"code": "INTERNAL", "reason": "INTERNAL", "message": "no"}}))
ACCEPT, REFER, BY_AGENT = {"decision": "accept"}, {"decision": "refer"}, {"decision": "agent"}
Serve = Callable[..., Served]


class Teller:
    """A component that can be broken and mended; `decided` counts what reached it."""

    def __init__(self) -> None:
        self.well, self.decided = False, 0
        self.stranger = Stranger(
            card("strange-teller", "EXECUTOR", actions={"decide": READ}), {"execute": self._say}
        )

    def _say(self, body: str) -> str | tuple[int, str]:
        self.decided += 1
        return json.dumps({"output": BY_AGENT}) if self.well else BROKEN


@pytest.fixture
def teller() -> Iterator[Teller]:
    made = Teller()
    with serving(made.stranger):
        yield made


def acp(served: Served, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--gateway", served.url])


def test_rules_answer_after_failures_over_a_kill_and_the_components_come_back(
    serve: Serve, teller: Teller
) -> None:
    served = serve()
    with Client(served.url) as client:
        client.register(teller.stranger.url)
        client.put_workflow(WORKFLOW)
        for _ in range(2):
            assert client.run("teller", '{"amount":5}').json["status"] == "FAILED"
        asked = teller.decided
        view = client.run("teller", '{"amount":5}').json
        assert (view["status"], view["fell_back"], view["output"]) == ("SUCCEEDED", True, ACCEPT)
        assert teller.decided == asked, "nobody is called"
        record = client.trajectory(view["session_id"])
        assert record["fallback"] == {"rule": "small", "version": "rules-3"}
        metrics = client.get("/metrics").text
        assert 'acp_fallback_sessions_total{route="RULES",workflow="teller"} 1.0' in metrics
        assert "acp_fallback_rules_answering 1.0" in metrics
    assert '"event":"fallback_answers"' in served.log().replace(" ", "")
    served.kill()

    served = serve()
    with Client(served.url) as client:
        client.register(teller.stranger.url)
        shown = json.loads(acp(served, "status", "teller", "--json").output)
        assert (shown["standing"], shown["failures"], shown["trips"]) == ("RULES", 2, 1)
        teller.well = True
        outputs = [client.run("teller", '{"amount":500}').json["output"] for _ in range(6)]
        assert outputs == [REFER, REFER, BY_AGENT] * 2
        assert client.run("teller", '{"amount":500}').json["output"] == BY_AGENT
        assert "AGENTIC" in acp(served, "status").output
        assert client.get("/v1/fallbacks/teller").json["standing"] == "AGENTIC"


def test_a_drill_is_done_by_itself_and_on_demand_and_its_failure_is_an_alarm(
    serve: Serve, teller: Teller
) -> None:
    served = serve()
    wrong = WORKFLOW.replace("version: 1.0.0", "version: 1.1.0", 1).replace(
        "{input: {amount: 5}, rule: small}", "{input: {amount: 5}, rule: rest}"
    )
    with Client(served.url) as client:
        client.register(teller.stranger.url)
        client.put_workflow(WORKFLOW)
        passed = acp(served, "drill", "teller")
        assert passed.exit_code == Exit.OK, passed.output
        assert "PASSED: 2 of 2 right" in passed.output
        client.put_workflow(wrong)
        activated = client.post("/v1/workflows/teller/versions/1.1.0/activate")
        assert activated.status == 200, activated.text
        failed = acp(served, "drill", "teller")
        assert failed.exit_code == Exit.FAILED
        assert "contract[0]: rule 'small' answered, it should have been 'rest'" in failed.output
        drill = client.get("/v1/fallbacks").json["fallbacks"][0]["drill"]
        assert (drill["outcome"], drill["failed"], drill["inputs"]) == ("FAILED", 1, 2)
        metrics = client.get("/metrics").text
        assert 'acp_fallback_drills_total{outcome="FAILED",workflow="teller"}' in metrics
        assert "acp_fallback_drills_failing 1.0" in metrics
        assert teller.decided == 0, "a drill calls nobody"
        assert acp(served, "drill", "nobody").exit_code == Exit.NOT_FOUND
    assert '"event":"fallback_drill"' in served.log().replace(" ", "")
