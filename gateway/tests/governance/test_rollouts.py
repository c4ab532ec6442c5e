"""Rollouts on a real gateway: good versions get everybody, bad ones nobody, for the right reason.

Callers never notice a canary or a shadow, and nothing that writes is ever sent twice: the books
count what reached them.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from acp_spec.sdk.cli import Exit
from gateway.cli.rollout import app as rollout_command
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card, serving
from gateway.tests.governance.desk import Desk, desk, failing, good, respelt, slow, small, wrong
from gateway.tests.served import Served, serve_gateway

Serve = Callable[..., Served]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("rollouts")
    served = serve_gateway(data_dir=folder / "data", log_file=folder / "log", environ={})
    with Client(served.url) as one:
        yield one
    served.stop()


def over(view: Any) -> bool:
    return view["status"] in ("COMPLETED", "ROLLED_BACK", "PAUSED")


def in_stage(stage: str) -> Callable[[Any], bool]:
    return lambda view: view["stage"] == stage or over(view)


def given_to_the_candidate(one: Desk) -> set[str]:
    """The sessions that the candidate served for real: a stage may begin before the last caller."""
    found = {view["session_id"]: one.client.trajectory(view["session_id"]) for view in one.replies}
    return {
        session_id
        for session_id, trajectory in found.items()
        if any(mark["arm"] == "CANDIDATE" for mark in trajectory.get("rollouts", ()))
    }


def nobody_noticed(one: Desk) -> None:
    """Every caller before CONTROLLED was served by the baseline, and posted exactly once."""
    given = given_to_the_candidate(one)
    assert len(given) <= 1
    for view in one.replies:
        if view["session_id"] in given:
            continue
        assert view["status"] == "SUCCEEDED", view
        trajectory = one.client.trajectory(view["session_id"])
        assert trajectory["lineage"]["intended"]["step:ask"] == f"{one.name}@1.0.0"
        assert view["output"]["answer"] == 2 * trajectory["input"]["q"]
    posted_once(one)


def posted_once(one: Desk) -> None:
    receipts = [view["output"]["receipt"] for view in one.replies if "output" in view]
    assert sorted(receipts) == list(range(1, len(receipts) + 1))
    assert len(one.books.posted) == len(receipts)


def test_a_good_version_goes_from_canary_to_everybody(client: Client) -> None:
    with desk(client, "good") as one:
        candidate = one.hire("2.0.0", respelt)
        rollout = one.start()
        one.serve_until(rollout, in_stage("CONTROLLED"))
        nobody_noticed(one)
        assert candidate.bodies("execute"), "the twins asked it"
        view = one.serve_until(rollout, over)
        assert view["status"] == "COMPLETED", view
        stages = [report["stage"] for report in view["history"]]
        assert stages == ["CANARY", "SHADOW", "CONTROLLED", "FULL"]
        shadow = {v["metric"]: v for v in view["history"][1]["verdicts"]}
        assert shadow["success"]["outcome"] == "FINE"
        assert shadow["success"]["candidate_samples"] == view["history"][1]["candidates"] >= 5
        assert shadow["output"]["candidate"] == 0.0
        last = one.client.trajectory(one.serve()["session_id"])
        assert last["lineage"]["intended"]["step:ask"] == "good@2.0.0"
        assert "rollouts" not in last
        posted_once(one)


@pytest.mark.parametrize(
    ("advise", "metric", "stage"),
    [
        (failing, "success", "CANARY"),
        (slow, "latency", "CANARY"),
        (wrong, "output", "SHADOW"),
    ],
)
def test_a_bad_version_is_taken_back_for_what_is_bad(
    client: Client, advise: Any, metric: str, stage: str
) -> None:
    with desk(client, f"bad-{metric}") as one:
        one.hire("2.0.0", advise)
        rollout = one.start(rollout=f"try-{metric}")
        view = one.serve_until(rollout, over)
        assert (view["status"], view["stage"]) == ("ROLLED_BACK", stage), view
        assert view["reason"] == f"worse than the baseline in {metric}"
        verdict = next(v for v in view["verdicts"] if v["metric"] == metric)
        assert (verdict["outcome"], verdict["candidate_samples"] > 0) == ("WORSE", True)
        nobody_noticed(one)
        if metric != "latency":
            what = {"success": "FAILED", "output": "DIFFERS"}[metric]
            example = view["examples"][0]
            assert example["what"] == what
            assert client.trajectory(example["twin"])["twin_of"] == example["primary"]
        if metric == "output":
            assert view["fields"] == {"/answer": verdict["candidate_samples"]}
        entries = client.get("/v1/audit").json["entries"]
        told = [e["action"] for e in entries if e["subject"] == f"rollout:{rollout}"]
        assert told[0] == "rollout.start"
        assert told[-1] == "rollout.rollback"


def test_a_version_that_fails_only_under_real_traffic_is_taken_back_there(client: Client) -> None:
    with desk(client, "late") as one:
        seen = [0]

        def worsening(question: int) -> Any:
            seen[0] += 1
            return failing(question) if is_real[0] else good(question)

        is_real = [False]
        one.hire("2.0.0", worsening)
        rollout = one.start()
        one.serve_until(rollout, in_stage("CONTROLLED"))
        is_real[0] = True
        view = one.serve_until(rollout, over)
        assert (view["status"], view["stage"]) == ("ROLLED_BACK", "CONTROLLED"), view
        assert one.serve()["status"] == "SUCCEEDED"
        marks = [client.trajectory(v["session_id"]).get("rollouts", []) for v in one.replies]
        arms = {mark["arm"] for found in marks for mark in found if mark["stage"] == "CONTROLLED"}
        assert arms == {"BASELINE", "CANDIDATE"}


def test_what_a_candidate_would_write_otherwise_is_uncovered_and_never_sent(
    client: Client,
) -> None:
    with desk(client, "other") as one:
        one.workflow("1.1.0", amount="ask.output.answer")
        client.post("/v1/workflows/other/versions/1.1.0/activate")
        one.hire("2.0.0", wrong)
        rollout = one.start(uncovered={"most": 0.3})
        view = one.serve_until(rollout, over)
        assert view["reason"] == "worse than the baseline in uncovered", view
        assert view["candidates"] == 0
        assert all(amount % 2 == 0 for amount in one.books.posted)
        posted_once(one)


def test_a_read_that_the_baseline_calls_a_write_is_not_sent(client: Client) -> None:
    """A candidate's card may be wrong; the books are where it would hurt."""
    with desk(client, "liar") as one:
        lying = card("liar-books", "EXECUTOR", actions={"liar.post": READ}) | {"version": "2.0.0"}
        liar = one.stack.enter_context(serving(Stranger(lying, {"execute": one.books.execute})))
        client.register(liar.url)
        rollout = one.start(subject={"name": "liar-books", "candidate": "2.0.0"})
        one.serve_until(rollout, in_stage("CONTROLLED"))
        assert len(liar.bodies("execute")) == len(given_to_the_candidate(one)) <= 1
        posted_once(one)


def test_twins_are_no_callers_sessions(client: Client) -> None:
    with desk(client, "twin") as one:
        one.hire("2.0.0", good)
        rollout = one.start()
        view = one.serve_until(rollout, lambda view: view["candidates"] >= 3 or over(view))
        assert not over(view), view
        trajectories = [client.trajectory(v["session_id"]) for v in one.replies]
        twins = [m["twin"] for t in trajectories for m in t.get("rollouts", ()) if "twin" in m]
        listed = client.get("/v1/sessions", workflow="twin", limit="500").json["sessions"]
        assert {s["session_id"] for s in listed} == {v["session_id"] for v in one.replies}
        # three have ended, not surely the first three
        twin = next(t for t in map(client.trajectory, twins) if t["status"] == "SUCCEEDED")
        assert twin["twin_of"] in {v["session_id"] for v in one.replies}
        assert [m["arm"] for m in twin["rollouts"]] == ["CANDIDATE"]
        posted = next(row for row in twin["calls"] if row["step"] == "post")
        assert posted["instance"].startswith("record:")
        metrics = client.get("/metrics").text
        assert f'acp_sessions_opened_total{{workflow="twin@1.0.0"}} {len(one.replies)}' in metrics
        primary = twin["twin_of"]
        assert client.delete(f"/v1/sessions/{primary}").status == 204
        assert client.get(f"/v1/sessions/{twin['session_id']}").status == 404


@pytest.mark.parametrize(
    ("over_", "said"),
    [
        ({"subject": {"name": "twin", "candidate": "9.9.9"}}, "9.9.9"),
        ({"subject": {"name": "nobody", "candidate": "2.0.0"}}, "nobody"),
        ({"canary": {"share": 2}}, "share"),
        ({"alpha": 0.9}, "alpha"),
        ({"surprise": 1, "shadow": {"share": 0.001}}, "share"),
    ],
)
def test_a_wrong_declaration_is_a_fault_of_the_caller(
    client: Client, over_: dict[str, object], said: str
) -> None:
    body = {"subject": {"name": "twin", "candidate": "2.0.0"}, **small(), **over_}
    reply = client.post("/v1/rollouts", body)
    assert 400 <= reply.status < 500
    assert said in reply.text


def test_one_thing_is_moved_by_one_rollout_and_orders_fit_its_state(client: Client) -> None:
    with desk(client, "orders") as one:
        one.hire("2.0.0", good)
        rollout = one.start()
        second = client.post(
            "/v1/rollouts",
            {"subject": {"name": "orders", "candidate": "2.0.0"}, "rollout": "second"},
        )
        assert (second.status, second.reason) == (400, "ROLLOUT_STATE")
        assert one.order(rollout, "pause")["status"] == "PAUSED"
        paused = one.serve()
        assert "rollouts" not in client.trajectory(paused["session_id"])
        assert client.post(f"/v1/rollouts/{rollout}/pause").reason == "ROLLOUT_STATE"
        assert one.order(rollout, "resume")["status"] == "RUNNING"
        for stage in ("SHADOW", "CONTROLLED", "FULL"):
            assert one.order(rollout, "promote")["stage"] == stage
        assert one.order(rollout, "rollback")["status"] == "ROLLED_BACK"
        back = client.trajectory(one.serve()["session_id"])
        assert back["lineage"]["intended"]["step:ask"] == "orders@1.0.0"
        assert client.get("/v1/rollouts/none").status == 404


def test_a_workflow_version_goes_the_same_way(client: Client) -> None:
    with desk(client, "flow") as one:
        one.workflow("2.0.0")
        rollout = one.start(subject={"kind": "WORKFLOW", "name": "flow", "candidate": "2.0.0"})
        one.serve_until(rollout, in_stage("CONTROLLED"))
        assert {view["workflow"] for view in one.replies[:-1]} == {"flow@1.0.0"}
        view = one.serve_until(rollout, over)
        assert view["status"] == "COMPLETED", view
        assert one.serve()["workflow"] == "flow@2.0.0"
        posted_once(one)
        asked = [client.open("flow@^1", '{"q": 1}') for _ in range(3)]
        assert {client.ended(one)["workflow"] for one in asked} == {"flow@1.0.0"}


def test_recovery_parameters_go_the_same_way_and_stand_in_each_sessions_lineage(
    client: Client,
) -> None:
    with desk(client, "retry") as one:
        subject = {"kind": "POLICY", "name": "backoff", "candidate": "quick"}
        rollout = one.start(
            subject={**subject, "params": {"base_ms": 3, "max_ms": 30}}, workflows=["retry"]
        )
        before = client.trajectory(one.serve()["session_id"])["lineage"]["policies"]
        one.serve_until(rollout, in_stage("FULL"))
        one.serve_until(rollout, over)
        after = client.trajectory(one.serve()["session_id"])["lineage"]["policies"]
        assert before != after
        assert one.rollout(rollout)["status"] == "COMPLETED"
        posted_once(one)


def test_the_command_starts_shows_and_orders(client: Client, tmp_path: Path) -> None:
    def acp(*words: str) -> Any:
        return CliRunner().invoke(rollout_command, [*words, "--gateway", client.url])

    with desk(client, "typed") as one:
        one.hire("2.0.0", good)
        subject = {"kind": "component", "name": "typed", "candidate": "2.0.0"}
        file = tmp_path / "typed.yaml"
        file.write_text(yaml.safe_dump({**small(), "subject": subject, "rollout": "typed"}))
        started = acp("start", str(file))
        assert started.exit_code == Exit.OK, started.output
        assert "typed: RUNNING in CANARY (50%), typed 1.0.0 -> 2.0.0" in started.stdout
        assert "waits for 5 more candidate sessions" in started.output
        assert json.loads(acp("promote", "typed", "--json").stdout)["stage"] == "SHADOW"
        for word, status in (("pause", "PAUSED"), ("resume", "RUNNING")):
            assert json.loads(acp(word, "typed", "--json").stdout)["status"] == status
        back = json.loads(acp("rollback", "typed", "--reason", "enough", "--json").stdout)
        assert (back["status"], back["reason"]) == ("ROLLED_BACK", "enough")
        assert "enough" in acp("status").stdout
        assert acp("status", "nobody").exit_code == Exit.NOT_FOUND
        assert acp("pause", "typed").exit_code == Exit.REFUSED
        assert acp("start").exit_code == Exit.USAGE
        assert acp("start", "--component", "typed").exit_code == Exit.USAGE
        assert acp("start", "--component", "typed@7.0.0").exit_code == Exit.USAGE


def test_a_candidate_that_leaves_takes_no_caller_with_it(client: Client) -> None:
    with desk(client, "gone") as one:
        one.hire("2.0.0", good)
        rollout = one.start()
        one.serve_until(rollout, in_stage("CONTROLLED"))
        assert client.post(f"/v1/components/{one.ids['2.0.0']}/drain").status == 200
        before = one.rollout(rollout)["observed_ms"]
        for _ in range(20):
            view = one.serve()
            assert view["status"] == "SUCCEEDED"
            assert "deviations" not in view
            intended = client.trajectory(view["session_id"])["lineage"]["intended"]
            assert intended["step:ask"] == "gone@1.0.0"
        after = one.serve_until(rollout, lambda view: view["steady_ms"] == 0)
        assert after["stage"] == "CONTROLLED"
        assert after["observed_ms"] <= before + 500
        refused = client.post(f"/v1/rollouts/{rollout}/promote", {"reason": "x" * 2_000})
        assert (refused.status, refused.reason) == (400, "INVALID_REQUEST")
        refused = client.post(f"/v1/rollouts/{rollout}/promote")
        assert (refused.status, refused.reason) == (400, "ROLLOUT_STATE")
