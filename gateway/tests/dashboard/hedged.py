"""A session that was hedged: the first replica was slow, was passed by, and answered too late."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from gateway.stores.records.tests.childhood import patiently
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import serving
from gateway.tests.governance.test_hedges import PARAMETERS, TRIES, WORKFLOW, Replica


@contextmanager
def hedged(client: Client) -> Iterator[str]:
    """Its id, once the late answer is in its record; the replicas serve until the block ends."""
    slow, quick = Replica("slow"), Replica("quick")
    with ExitStack() as stack:
        stack.callback(slow.goes.set)
        for one in (slow, quick):
            client.register(stack.enter_context(serving(one.stranger)).url)
        client.put_workflow(WORKFLOW)
        version = client.get(PARAMETERS).json["version"]
        change = {
            "expected_version": version,
            "parameters": {"hedge": {"share": 1, "after_ms": 100}},
        }
        assert client.call("PUT", PARAMETERS, body=json.dumps(change).encode()).status == 200
        slow.goes.clear()
        id = _passed_by(client)
        slow.goes.set()
        for _ in patiently():
            if any(call.get("late") for call in client.trajectory(id)["calls"]):
                break
        yield id


def _passed_by(client: Client) -> str:
    """Either replica may be asked first: run sessions until it was the slow one."""
    for _ in range(TRIES):
        id: str = client.run("rates").json["session_id"]
        if len(client.trajectory(id)["calls"]) == 2:
            return id
    raise AssertionError("the slow replica was never asked first")
