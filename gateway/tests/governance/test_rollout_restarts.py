"""A gateway killed in the middle of every stage: the rollout goes on where it was.

Nothing is counted twice, no time is counted in which nobody watched, nothing is posted twice, and a
twin that the kill cut off is dropped.
"""

from collections.abc import Callable
from time import monotonic
from typing import Any

from gateway.tests.e2e.client import Client
from gateway.tests.governance.desk import Desk, desk, good
from gateway.tests.governance.test_rollouts import in_stage, over, posted_once
from gateway.tests.served import Served

Serve = Callable[..., Served]
PARTS = ("stage", "status", "candidates", "baselines", "started_at", "stage_entered_at", "history")


def slower(**over: object) -> dict[str, object]:
    """Stages long enough to be killed in: 20 candidates and half a second each."""
    rule = {"share": 0.5, "min_samples": 20, "min_ms": 500}
    return {
        "time_scale": 1.0,
        "canary": rule,
        "shadow": rule,
        "controlled": {**rule, "steady_ms": 500},
        "full": {"share": 1.0, "min_samples": 20, "min_ms": 500, "prove": False},
        **over,
    }


def settled(one: Desk, rollout: str) -> Any:
    """The rollout once no twin is under way and it was looked at since: its samples are on disk."""
    looks = 0
    watched = -1
    for _ in range(5_000):
        text = one.client.get("/metrics").text
        if "acp_twins_running 0.0" in text and "acp_twins_waiting 0.0" in text:
            view = one.rollout(rollout)
            looks += view["observed_ms"] != watched
            watched = view["observed_ms"]
            if looks > 3:
                return view
    raise AssertionError("twins never ended")


def test_a_rollout_goes_on_after_a_kill_in_the_middle_of_each_stage(serve: Serve) -> None:
    served = serve()
    with Client(served.url) as client, desk(client, "killed") as one:
        one.hire("2.0.0", good)
        rollout = one.start(**slower())
        for stage in ("CANARY", "SHADOW", "CONTROLLED", "FULL"):
            one.serve_until(rollout, in_stage(stage))
            one.serve_until(rollout, lambda view: view["candidates"] >= 5 or over(view))
            before = settled(one, rollout)
            assert (before["stage"], before["status"]) == (stage, "RUNNING")
            served.kill()
            served = serve()
            ready_s = monotonic()
            one.client = stack = one.stack.enter_context(Client(served.url))
            after = stack.get(f"/v1/rollouts/{rollout}").json
            since_ms = (monotonic() - ready_s) * 1_000
            assert {part: after.get(part) for part in PARTS} == {
                part: before.get(part) for part in PARTS
            }
            # What it watched since it is back, and at most what it had watched before.
            assert after["observed_ms"] <= before["observed_ms"] + since_ms + 2_000
        view = one.serve_until(rollout, over, callers_max=2_000)
        assert view["status"] == "COMPLETED", view
        assert all(report["observed_ms"] >= 500 for report in view["history"])
        posted_once(one)
        intended = one.client.trajectory(one.serve()["session_id"])["lineage"]["intended"]
        assert intended["step:ask"] == "killed@2.0.0"


def test_a_twin_that_a_kill_cut_off_is_dropped_and_its_session_untouched(serve: Serve) -> None:
    served = serve()
    with Client(served.url) as client, desk(client, "cut") as one:
        reached = one.hangs("2.0.0")
        rollout = one.start(**slower())
        while not reached.is_set():
            one.serve()
        served.kill()
        served = serve()
        with Client(served.url) as again:
            view = again.get(f"/v1/rollouts/{rollout}").json
            assert view["dropped"] >= 1
            assert view["candidates"] == 0
            for reply in one.replies:
                assert again.session(reply["session_id"])["status"] == "SUCCEEDED"
        posted_once(one)
