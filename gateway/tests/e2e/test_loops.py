"""What a reflector decides: again, otherwise, not at all; and what is never done twice.

Planner and judge are scripted strangers; the counter's own file tells how often a thing was done.
"""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import Stranger, card

Start = Callable[..., dict[str, Any]]
WORKFLOW = """
workflow: judged
version: 1.0.0
steps:
  - {name: plan, role: plan, component: script}
  - {name: act, role: execute, plan: plan, on_error: continue}
  - {name: judge, role: reflect, component: script, on: {REPLAN: plan, RETRY: act}}
output: judge.output
fallback: {output: '"somebody will call you"'}
limits: {max_loops: 3}
"""


class Script(Stranger):
    """A planner and judge that says what the test wrote down, in that order."""

    __slots__ = ("plans", "verdicts")

    def __init__(self) -> None:
        self.plans: list[list[dict[str, Any]]] = []
        self.verdicts: list[dict[str, Any] | Callable[[dict[str, Any]], dict[str, Any]]] = []
        super().__init__(
            card("script", "PLANNER", "REFLECTOR"), {"plan": self._plan, "reflect": self._reflect}
        )

    def _plan(self, body: str) -> str:
        return json.dumps({"plan": {"sub_goals": self.plans.pop(0)}})

    def _reflect(self, body: str) -> str:
        verdict = self.verdicts.pop(0)
        return json.dumps(verdict(json.loads(body)) if callable(verdict) else verdict)


@pytest.fixture(scope="module")
def started(client: Client, start_components: Start) -> dict[str, Any]:
    found = start_components("counter", "flaky")
    for one in found.values():
        client.register(one["url"])
    return found


@pytest.fixture(scope="module")
def one_script(
    client: Client, stranger: Callable[[Stranger], Stranger], started: dict[str, Any]
) -> Script:
    script = Script()
    stranger(script)
    client.register(script.url)
    client.put_workflow(WORKFLOW)
    return script


@pytest.fixture
def script(one_script: Script) -> Script:
    one_script.asked.clear()
    return one_script


def goal(action: str, name: str = "g", **arguments: object) -> dict[str, Any]:
    return {"id": name, "action": action, "arguments": arguments}


def executed(client: Client, session_id: str) -> list[Any]:
    rows = client.trajectory(session_id)["calls"]
    return [row for row in rows if row["role"] == "EXECUTE"]


def effects(started: dict[str, Any], call_id: str) -> int:
    file = Path(started["counter"]["log"]).parent / "state" / "counter" / "counter.db"
    with closing(sqlite3.connect(file)) as rows:
        asked = rows.execute("SELECT count(*) FROM effects WHERE call_id = ?", (call_id,))
        found: int = asked.fetchone()[0]
        return found


ACCEPT = {"verdict": "ACCEPT", "output": "done"}
REPLAN = {"verdict": "REPLAN", "critique": "not yet"}


def test_what_a_replan_asks_for_again_is_taken_over_and_not_done_again(
    client: Client, script: Script, started: dict[str, Any]
) -> None:
    script.plans = [[goal("counter.add_once", amount=5)], [goal("counter.add_once", amount=5)]]
    script.verdicts = [REPLAN, ACCEPT]
    view = client.run("judged").json
    assert view["status"] == "SUCCEEDED", view
    first, second = executed(client, view["session_id"])
    assert second["reused"] is True
    assert second["reused_from"] == first["call_id"]
    assert second["output"] == first["output"]
    assert effects(started, first["call_id"]) == 1
    assert effects(started, second["call_id"]) == 0
    replanned = json.loads(script.bodies("plan")[1])
    assert replanned["critique"] == "not yet"
    assert replanned["calls"][0]["call_id"] == first["call_id"]
    assert replanned["previous_plan"]["sub_goals"][0]["action"] == "counter.add_once"


def test_other_arguments_or_an_explicit_repeat_are_done(
    client: Client, script: Script, started: dict[str, Any]
) -> None:
    again = {**goal("counter.add_once", amount=5), "repeat": True}
    script.plans = [
        [goal("counter.add_once", amount=5)],
        [goal("counter.add_once", amount=6)],
        [again],
    ]
    script.verdicts = [REPLAN, REPLAN, ACCEPT]
    view = client.run("judged").json
    assert view["status"] == "SUCCEEDED", view
    rows = executed(client, view["session_id"])
    assert [effects(started, row["call_id"]) for row in rows] == [1, 1, 1]


def test_loops_are_bounded(client: Client, script: Script) -> None:
    script.plans = [[goal("counter.total")] for _ in range(5)]
    script.verdicts = [REPLAN] * 5
    view = client.run("judged").json
    assert view["status"] == "FAILED"
    assert view["error"]["reason"] == "LOOP_LIMIT"
    assert len(script.bodies("plan")) == 1 + 3, "three times back is four passes"


def retry_all(asked: dict[str, Any]) -> dict[str, Any]:
    return {"verdict": "RETRY", "retry_call_ids": [call["call_id"] for call in asked["calls"]]}


def test_a_retry_opens_a_new_call_for_what_certainly_did_nothing(
    client: Client, script: Script
) -> None:
    failing = goal("flaky.write", script=[{"do": "INVALID_REQUEST", "side_effect": "NONE"}])
    script.plans = [[failing]]
    script.verdicts = [retry_all, {"verdict": "FALLBACK"}]
    view = client.run("judged").json
    assert view["status"] == "SUCCEEDED", view
    assert (view["fell_back"], view["output"]) == (True, "somebody will call you")
    first, second = executed(client, view["session_id"])
    assert second["retry_of"] == first["call_id"] != second["call_id"]


def test_a_retry_of_what_may_have_been_done_is_refused_and_recorded(
    client: Client, script: Script, started: dict[str, Any]
) -> None:
    script.plans = [[goal("counter.add_once", then_fail="UNKNOWN")]]
    script.verdicts = [retry_all]
    view = client.run("judged").json
    assert view["status"] == "FAILED"
    assert view["error"]["reason"] == "RETRY_UNSAFE"
    (row,) = executed(client, view["session_id"])
    assert effects(started, row["call_id"]) == 1
    (reflection,) = client.trajectory(view["session_id"])["reflections"]
    assert reflection["refused_retries"] == [row["call_id"]]


def test_recovery_retries_what_is_safe_with_one_call_id_and_says_why(
    client: Client, script: Script
) -> None:
    told = {"do": "UNAVAILABLE", "side_effect": "NONE"}
    script.plans = [[goal("flaky.keyed", script=[told, "OVERLOADED"], output=1)]]
    script.verdicts = [ACCEPT]
    view = client.run("judged").json
    assert view["status"] == "SUCCEEDED", view
    rows = executed(client, view["session_id"])
    assert [row["attempt"] for row in rows] == [1, 2, 3]
    assert len({row["call_id"] for row in rows}) == 1
    decisions = client.trajectory(view["session_id"])["decisions"]
    assert [one["chosen"] for one in decisions] == ["RETRY", "RETRY"]
    assert all(one["policy"]["name"] == "backoff" for one in decisions)


def test_a_none_action_whose_effect_is_unknown_is_sent_once(
    client: Client, script: Script, started: dict[str, Any]
) -> None:
    script.plans = [[goal("flaky.write", script=["DIE"]), goal("counter.total", "t")]]
    script.verdicts = [ACCEPT]
    view = client.run("judged").json
    assert view["status"] == "SUCCEEDED", view
    died = [row for row in executed(client, view["session_id"]) if row["action"] == "flaky.write"]
    assert [row["attempt"] for row in died] == [1]
    assert died[0].get("side_effect", "UNKNOWN") == "UNKNOWN"


def test_an_abort_fails_with_the_critique_and_a_bad_plan_is_the_planners_fault(
    client: Client, script: Script
) -> None:
    script.plans = [[goal("counter.total")]]
    script.verdicts = [{"verdict": "ABORT", "critique": "this is no question"}]
    view = client.run("judged").json
    assert view["status"] == "FAILED"
    assert "this is no question" in view["error"]["message"]
    loop = [{**goal("counter.total", "a"), "depends_on": ["a"]}]
    script.plans, script.verdicts = [loop], [{"verdict": "FALLBACK"}]
    view = client.run("judged").json
    planned = client.trajectory(view["session_id"])["calls"][0]
    assert planned["error"]["reason"] == "PLAN_REJECTED", planned
    assert view["fell_back"] is True
