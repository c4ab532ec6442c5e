"""A stranger who read only the protocol's pages: a component on http.server, a workflow, a session.

The workflow file is that of protocol section 8, with every kind of step and mapping it shows.
"""

import json
from collections.abc import Callable

import pytest

from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card, member

HOTLINE = """
workflow: stranger           # name
version: 1.0.0               # semver; stored once, never changed
contract: {}                 # optional, inline or a file beside it
steps:                       # in list order; only a plan's sub-goals run in parallel
  - name: plan               # [a-z][a-z0-9_]*
    role: plan
    component: strange-planner
    input_mapping: {goal: input.query}
  - name: act
    role: execute
    plan: plan
  - name: fee
    role: execute
    component: strange-fees
    action: quote
    condition: "size(act.results) > 0 && input.channel == 'branch'"
    input_mapping: {amount: "act.results[0].output.amount"}
    output_mapping: {fee_cents: output.cents}
  - name: remember
    role: observe
    component: strange-memory
  - name: judge
    role: reflect
    component: strange-judge
    on: {REPLAN: plan}
    input_mapping: {draft: vars.fee_cents}
output: judge.output
limits: {max_loops: 3, max_sub_goals: 10, deadline_ms: 30000}
recovery: {policy: backoff}
"""
INPUT = '{"query": "what does it cost?", "channel": "branch"}'
Serve = Callable[[Stranger], Stranger]


def plan(body: str) -> str:
    goal = json.loads(body)["goal"]
    goals = [
        {"id": "look", "description": "find it", "action": "look", "arguments": {"for": goal}},
        {
            "id": "weigh",
            "action": "weigh",
            "arguments": {"what": None},
            "depends_on": ["look"],
            "bindings": [{"to": "/what", "from": "look", "pointer": "/amount"}],
        },
    ]
    return json.dumps({"plan": {"root_goal": goal, "sub_goals": goals}})


def execute(body: str) -> str:
    outputs = {"look": {"amount": 12.5}, "weigh": {"kg": 1}, "quote": {"cents": 250}}
    return json.dumps({"output": outputs[json.loads(body)["action"]], "side_effect": "NONE"})


def judge(body: str) -> str:
    said = json.loads(body)
    looked = next(call for call in said["calls"] if call["action"] == "look")
    claim = {
        "text": "It weighs as much as it costs.",
        "value": looked["output"]["amount"],
        "sources": [f"/calls/{looked['call_id']}/output/amount"],
    }
    output = {"fee": said["draft"], "steps": sorted({call["step"] for call in said["calls"]})}
    return json.dumps({"verdict": "ACCEPT", "output": output, "claims": [claim]})


@pytest.fixture(scope="module")
def registered(client: Client, stranger: Serve) -> dict[str, Stranger]:
    """Programs of somebody else, each registered with one POST."""
    actions = {"look": READ, "weigh": READ}
    made = {
        "planner": Stranger(card("strange-planner", "PLANNER"), {"plan": plan}),
        "tools": Stranger(card("strange-tools", "EXECUTOR", actions=actions), {"execute": execute}),
        "fees": Stranger(
            card("strange-fees", "EXECUTOR", actions={"quote": READ}), {"execute": execute}
        ),
        "memory": Stranger(
            card("strange-memory", "OBSERVER"), {"observe": lambda body: '{"stored": 2}'}
        ),
        "judge": Stranger(card("strange-judge", "REFLECTOR"), {"reflect": judge}),
    }
    for one in made.values():
        answer = client.register(stranger(one).url)
        assert answer["card"]["name"] == one.card["name"]
    return made


@pytest.fixture
def strangers(registered: dict[str, Stranger]) -> dict[str, Stranger]:
    """The same, with nothing asked yet."""
    for one in registered.values():
        one.asked.clear()
    return registered


def test_a_stranger_registers_raw_http_components_and_runs_the_workflow_of_the_page(
    client: Client, strangers: dict[str, Stranger]
) -> None:
    client.put_workflow(HOTLINE)
    view = client.run("stranger", INPUT).json
    assert view["status"] == "SUCCEEDED", view
    assert view["output"] == {"fee": 250, "steps": ["act", "fee"]}
    assert [step["name"] for step in view["steps"]] == ["plan", "act", "fee", "remember", "judge"]
    assert {step["status"] for step in view["steps"]} == {"SUCCEEDED"}
    (second,) = [b for b in strangers["tools"].bodies("execute") if "weigh" in b]
    assert member(second, "arguments").replace(" ", "") == '{"what":12.5}'
    (quoted,) = strangers["fees"].bodies("execute")
    assert json.loads(quoted)["arguments"] == {"amount": 12.5}
    (observed,) = strangers["memory"].bodies("observe")
    actions = [row["data"]["action"] for row in json.loads(observed)["observations"]]
    assert actions == ["look", "weigh", "quote"]


def test_a_request_carries_what_the_page_promises(
    client: Client, strangers: dict[str, Stranger]
) -> None:
    client.put_workflow(HOTLINE)
    view = client.run("stranger", INPUT).json
    asked = [one for peer in strangers.values() for one in peer.asked if one.body]
    assert len(asked) == 6
    for one in asked:
        context, headers = one.context, {k.lower(): v for k, v in one.headers.items()}
        assert context["session_id"] == view["session_id"]
        assert context["lineage_id"] == view["lineage_id"]
        assert len(context["session_id"]) == 26
        assert context["attempt"] == 1
        assert 0 < context["timeout_ms"] <= 30_000
        assert headers["idempotency-key"] == context["call_id"]
        assert headers["acp-version"] == "1.0"
        assert int(headers["acp-timeout-ms"]) > 0
    assert len({one.context["call_id"] for one in asked}) == 6


def test_the_trajectory_and_the_lineage_tell_the_whole_story(
    client: Client, strangers: dict[str, Stranger]
) -> None:
    client.put_workflow(HOTLINE)
    view = client.run("stranger", INPUT).json
    told = client.trajectory(view["session_id"])
    assert [row["action"] for row in told["calls"] if row["role"] == "EXECUTE"] == [
        "look", "weigh", "quote",
    ]  # fmt: skip
    assert told["rewards"]["operational"]["succeeded"] is True
    (claim,) = told["claims"]
    by_id = {row["call_id"]: row for row in told["calls"]}
    _, _, call_id, *rest = claim["sources"][0].split("/")
    assert by_id[call_id]["output"][rest[-1]] == claim["value"]
    lineage = client.get(f"/v1/lineage/{view['lineage_id']}").json
    assert "strange-planner@1.0.0" in json.dumps(lineage)
    assert client.get(f"/v1/lineage/{view['session_id']}.000000000000").status == 404


def test_a_condition_that_is_false_skips_its_step_and_its_variable_is_missing(
    client: Client, strangers: dict[str, Stranger]
) -> None:
    client.put_workflow(HOTLINE)
    reply = client.run("stranger", '{"query": "q", "channel": "phone"}')
    view = reply.json
    steps = {step["name"]: step["status"] for step in view["steps"]}
    assert steps["fee"] == "SKIPPED"
    # `draft: vars.fee_cents` names what nothing wrote: the contract is broken, and it is said where
    assert view["status"] == "FAILED"
    assert view["error"]["reason"] == "CONTRACT_VIOLATION"
    assert "draft" in view["error"]["message"]
    assert "vars.fee_cents" in view["error"]["message"]
