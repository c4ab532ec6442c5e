"""A hedge between two real replicas: the quick one answers, each attempt is told of truly."""

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card, serving
from gateway.tests.served import Served, serve_gateway

PARAMETERS = "/v1/governance/parameters"
WORKFLOW = """
workflow: rates
version: 1.0.0
steps: [{name: act, role: execute, component: rates, action: look}]
output: act.output
"""
TRIES = 40


class Replica:
    """One of two; it answers at once, or when it is let go."""

    def __init__(self, name: str) -> None:
        self.goes = threading.Event()
        self.goes.set()
        self.name = name
        answers = {"execute": self.look, "cancel": lambda body: '{"state": "RUNNING"}'}
        self.stranger = Stranger(card("rates", "EXECUTOR", actions={"look": READ}), answers)

    def look(self, body: str) -> str:
        self.goes.wait(20)
        return json.dumps({"output": self.name})


@pytest.fixture
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("gateway")
    gateway = serve_gateway(
        data_dir=folder / "d",
        log_file=folder / "log",
        environ={"ACP_LEASES_PROBE_INTERVAL_MS": "600000", "ACP_GRACE_CANCEL_GRACE_MS": "300"},
    )
    yield gateway
    gateway.stop()


def test_a_slow_replica_is_passed_by_and_told_to_stop(served: Served) -> None:
    slow, quick = Replica("slow"), Replica("quick")
    with ExitStack() as stack:
        stack.callback(slow.goes.set)
        for one in (slow, quick):
            stack.enter_context(serving(one.stranger))
        client = stack.enter_context(Client(served.url))
        ids = {one.name: client.register(one.stranger.url) for one in (slow, quick)}
        client.put_workflow(WORKFLOW)
        change = {"expected_version": 1, "parameters": {"hedge": {"share": 1, "after_ms": 100}}}
        reply = client.call("PUT", PARAMETERS, body=json.dumps(change).encode())
        assert reply.status == 200, reply.text
        slow.goes.clear()
        views = [client.run("rates").json for _ in range(TRIES)]
        assert {view["output"] for view in views} == {"quick"}
        told = [client.trajectory(view["session_id"])["calls"] for view in views]
        hedged = [calls for calls in told if len(calls) > 1]
        assert hedged, "no session stuck to the slow one"
        for first, second in hedged:
            assert (first.get("hedge", False), second["hedge"]) == (False, True)
            assert (first["attempt"], second["attempt"]) == (1, 2)
            assert first["error"]["reason"] == "CANCELLED"
            assert second["output"] == "quick"
            assert first["instance"] != second["instance"]
        contexts = [one.context for one in slow.stranger.asked if one.path.endswith("/execute")]
        beside = [one.context for one in quick.stranger.asked if one.path.endswith("/execute")]
        second_of = {one["call_id"]: one for one in beside if one["attempt"] == 2}
        for context in contexts:
            assert second_of[context["call_id"]]["body_digest"] == context["body_digest"]
        asked = [one.path for one in slow.stranger.asked]
        assert sum(path.endswith("/cancel") for path in asked) == len(contexts)
        assert ids["slow"] != ids["quick"]
        for view in views:
            assert client.get(f"/v1/sessions/{view['session_id']}").json["status"] == "SUCCEEDED"
