"""A hedge between two real replicas: the quick one answers, each attempt is told of truly."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from time import monotonic
from typing import Any

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
UNTIL_S = 20.0


class Replica:
    """One of two; it answers at once, or when it is let go."""

    def __init__(self, name: str) -> None:
        self.goes = threading.Event()
        self.goes.set()
        self.name = name
        answers = {"execute": self.look, "cancel": lambda body: '{"state": "RUNNING"}'}
        self.stranger = Stranger(card("rates", "EXECUTOR", actions={"look": READ}), answers)

    def executed(self) -> list[dict[str, Any]]:
        """The context of each call that came here."""
        asked = tuple(self.stranger.asked)
        return [one.context for one in asked if one.path.endswith("/execute")]

    def cancelled(self) -> set[str]:
        """The calls that it was told to stop."""
        asked = tuple(self.stranger.asked)
        return {one.path.split("/")[-2] for one in asked if one.path.endswith("/cancel")}

    def look(self, body: str) -> str:
        self.goes.wait(20)
        return json.dumps({"output": self.name})


def of(instance: str) -> Callable[[dict[str, Any]], bool]:
    return lambda row: row["instance"] == instance


def until(holds: Callable[[], bool]) -> None:
    """Ask again: a call that was passed by is told to stop behind the session's end."""
    deadline = monotonic() + UNTIL_S
    while not holds():
        assert monotonic() < deadline, "it did not come to that"
        threading.Event().wait(0.01)


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
        passed_by = ids["slow"]["component_id"]
        assert any(first["instance"] == passed_by for first, _ in hedged), "nobody stuck to it"
        for first, second in hedged:
            assert (first.get("hedge", False), second["hedge"]) == (False, True)
            assert (first["attempt"], second["attempt"]) == (1, 2)
            # A busy machine may make the quick one slow, too: then the slow one came second.
            quick_row, slow_row = sorted((first, second), key=of(passed_by))
            assert slow_row["error"]["reason"] == "CANCELLED"
            assert quick_row["output"] == "quick"
            assert first["instance"] != second["instance"]
        contexts = slow.executed()
        beside = {one["call_id"]: one for one in quick.executed()}
        for context in contexts:
            other = beside[context["call_id"]]
            assert other["body_digest"] == context["body_digest"]
            assert {other["attempt"], context["attempt"]} == {1, 2}
        until(lambda: slow.cancelled() == {one["call_id"] for one in contexts})
        assert ids["slow"] != ids["quick"]
        for view in views:
            assert client.get(f"/v1/sessions/{view['session_id']}").json["status"] == "SUCCEEDED"
