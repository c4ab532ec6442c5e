"""A program that took another version's place at its address: its first answer gives it away."""

import json
import threading
import time
from pathlib import Path

from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card, serving
from gateway.tests.served import serve_gateway

WORKFLOW = """
workflow: desk
version: 1.0.0
steps: [{name: act, role: execute, component: clerk, action: serve, input_mapping: {x: input}}]
output: act.output
"""
WITHIN_S = 30.0
NO_PROBES = {"ACP_LEASES_PROBE_INTERVAL_MS": "86400000"}


def test_after_the_first_answer_that_states_its_version_it_gets_no_calls(tmp_path: Path) -> None:
    """The gateway asks for no card by itself here: in ten seconds it would have seen it anyway."""
    served = serve_gateway(data_dir=tmp_path / "data", log_file=tmp_path / "log", environ=NO_PROBES)
    clerk = Stranger(card("clerk", "EXECUTOR", actions={"serve": READ}), {})

    def execute(_: str) -> str:
        return json.dumps({"output": 1, "component": {"version": clerk.card["version"]}})

    clerk.answers = {"execute": execute}
    try:
        with Client(served.url) as client, serving(clerk):
            found = client.register(clerk.url)["component_id"]
            client.put_workflow(WORKFLOW)
            assert client.run("desk").json["status"] == "SUCCEEDED"
            assert state(client, found) == "ACTIVE"
            clerk.card = {**clerk.card, "version": "3.0.0"}
            assert client.run("desk").json["status"] == "SUCCEEDED", "nobody could know yet"
            until = time.monotonic() + WITHIN_S
            while state(client, found) != "UNREACHABLE":
                assert time.monotonic() < until, "nobody looked who it is"
                threading.Event().wait(0.05)
            asked = len(clerk.bodies("execute"))
            view = client.run("desk", deadline_ms=300).json
            assert (view["status"], len(clerk.bodies("execute"))) == ("FAILED", asked)
    finally:
        served.stop()


def state(client: Client, component_id: str) -> str:
    found: str = client.get(f"/v1/components/{component_id}").json.get("state", "ACTIVE")
    return found
