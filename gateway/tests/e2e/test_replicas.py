"""Components that come and go: replicas, leases, drains, versions while sessions run."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card, member, serving
from gateway.tests.served import Served, serve_gateway

WORKFLOW = """
workflow: {name}
version: 1.0.0
steps:
  - {{name: act, role: execute, component: {component}, action: {component}.say}}
  - {{name: again, role: execute, component: {component}, action: {component}.say}}
output: again.output
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway that waits less long for those who are not there."""
    folder = tmp_path_factory.mktemp("gateway")
    gateway = serve_gateway(
        data_dir=folder / "data",
        log_file=folder / "gateway.log",
        environ={"ACP_GRACE_PIN_GRACE_MS": "700", "ACP_GRACE_ATTACH_GRACE_MS": "700"},
    )
    yield gateway
    gateway.stop()


def speaker(name: str, word: str, version: str = "1.0.0") -> Stranger:
    """A component whose one action says who served."""
    described = {**card(name, "EXECUTOR", actions={f"{name}.say": READ}), "version": version}
    return Stranger(described, {"execute": lambda body: json.dumps({"output": word})})


def workflow(client: Client, component: str) -> str:
    name = f"with-{component}"
    client.put_workflow(WORKFLOW.format(name=name, component=component))
    return name


@pytest.fixture
def alive() -> Iterator[Callable[[Stranger], ExitStack]]:
    """`alive(stranger)` serves it; `.close()` on what it gives makes it vanish."""
    stacks: list[ExitStack] = []

    def start(one: Stranger) -> ExitStack:
        stack = ExitStack()
        stacks.append(stack)
        stack.enter_context(serving(one))
        return stack

    yield start
    for stack in stacks:
        stack.close()


Alive = Callable[[Stranger], ExitStack]


def test_a_session_stays_with_one_replica_and_sessions_spread_over_all(
    client: Client, alive: Alive
) -> None:
    replicas = [speaker("many", f"r{number}") for number in range(3)]
    for one in replicas:
        alive(one)
        client.register(one.url)
    name = workflow(client, "many")
    for _ in range(40):
        rows = client.trajectory(client.run(name).json["session_id"])["calls"]
        assert len({row["instance"] for row in rows}) == 1
    assert all(one.bodies("execute") for one in replicas)


def test_a_replica_that_vanishes_costs_no_session(client: Client, alive: Alive) -> None:
    replicas = [speaker("pair", f"p{number}") for number in range(2)]
    stacks = [alive(one) for one in replicas]
    for one in replicas:
        client.register(one.url)
    name = workflow(client, "pair")
    assert {client.run(name).json["output"] for _ in range(20)} == {"p0", "p1"}
    stacks[0].close()
    views = [client.run(name).json for _ in range(20)]
    assert {view["status"] for view in views} == {"SUCCEEDED"}, views
    assert {view["output"] for view in views} == {"p1"}


def test_a_drained_replica_gets_no_new_session_and_ends_what_it_has(
    client: Client, alive: Alive
) -> None:
    replicas = [speaker("drained", f"d{number}") for number in range(2)]
    ids = []
    for one in replicas:
        alive(one)
        ids.append(client.register(one.url)["component_id"])
    name = workflow(client, "drained")
    drained = client.post(f"/v1/components/{ids[0]}/drain")
    assert drained.status in (200, 202), drained.text
    assert drained.json["state"] == "DRAINING"
    assert {client.run(name).json["output"] for _ in range(20)} == {"d1"}
    assert client.delete(f"/v1/components/{ids[0]}").status in (200, 204)
    assert client.get(f"/v1/components/{ids[0]}").status == 404


def test_an_open_session_keeps_its_version_and_new_ones_get_the_active_one(
    client: Client, alive: Alive
) -> None:
    held, go_on = threading.Semaphore(0), threading.Event()
    old, new = speaker("grows", "old"), speaker("grows", "new", "1.1.0")

    def slowly(body: str) -> str:
        held.release()
        go_on.wait(20)
        return json.dumps({"output": "old"})

    old.answers = {"execute": slowly}
    for one in (old, new):
        alive(one)
    client.register(old.url)
    name = workflow(client, "grows")
    session_id = client.open(name)
    assert held.acquire(timeout=10)
    client.register(new.url)
    go_on.set()
    assert client.ended(session_id)["output"] == "old"
    served = {row["component_version"] for row in client.trajectory(session_id)["calls"]}
    assert served == {"1.0.0"}
    listed = client.get("/v1/components").json["components"]
    assert {c["card"]["version"] for c in listed if c["card"]["name"] == "grows"} == {
        "1.0.0", "1.1.0",
    }  # fmt: skip


def test_a_lost_version_is_replaced_by_the_active_one_and_the_deviation_is_told(
    client: Client, alive: Alive
) -> None:
    old, new = speaker("lost", "old"), speaker("lost", "new", "1.1.0")
    held, go_on = threading.Semaphore(0), threading.Event()

    def slowly(body: str) -> str:
        held.release()
        go_on.wait(20)
        return json.dumps({"output": "old"})

    old.answers = {"execute": slowly}
    alive(old), alive(new)
    first = client.register(old.url)["component_id"]
    session_id = client.open(workflow(client, "lost"))
    assert held.acquire(timeout=10)
    client.register(new.url)
    client.delete(f"/v1/components/{first}")
    go_on.set()
    view = client.ended(session_id)
    assert view["status"] == "SUCCEEDED", view
    assert view["output"] == "new"
    (deviation,) = view["deviations"]
    assert (deviation["intended"], deviation["served"]) == ("lost@1.0.0", "lost@1.1.0")


def test_without_anybody_to_serve_a_session_is_told_no_component(client: Client) -> None:
    source = WORKFLOW.format(name="with-nobody", component="nobody")
    reply = client.call(
        "PUT",
        "/v1/workflows/with-nobody/versions/1.0.0",
        body=source.encode(),
        content_type="application/yaml",
    )
    if reply.status in (200, 201):
        view = client.ended(client.open("with-nobody"))
        assert view["status"] == "FAILED"
        assert view["error"]["reason"] == "NO_COMPONENT"
    else:
        assert "nobody" in reply.message


def test_registering_again_is_the_same_and_another_card_under_one_version_is_refused(
    client: Client, alive: Alive
) -> None:
    one, impostor = speaker("same", "one"), speaker("same", "two")
    impostor.card["actions"][0]["description"] = "not what the first one said"
    alive(one), alive(impostor)
    registered = client.register(one.url)
    assert client.register(one.url)["component_id"] == registered["component_id"]
    reply = client.post("/v1/components", {"url": impostor.url})
    assert reply.status == 409, reply.text
    assert "same" in reply.message


def test_a_lease_that_nobody_renews_ends_unless_the_component_answers_probes(
    client: Client, alive: Alive
) -> None:
    one = speaker("leased", "here")
    stack = alive(one)
    registered = client.register(one.url, lease_seconds=4)
    component_id: Any = registered["component_id"]
    beat = client.post(f"/v1/components/{component_id}/heartbeat", {"signals": {"inflight": 3}})
    assert beat.status == 200, beat.text
    assert json.loads(member(beat.text, "signals"))["inflight"] == 3
    stack.close()
    states = []
    for _ in range(800):
        reply = client.get(f"/v1/components/{component_id}")
        states.append(reply.json.get("state", "ACTIVE") if reply.status == 200 else "GONE")
        if states[-1] != "ACTIVE":
            break
        threading.Event().wait(0.05)
    assert states[-1] in ("UNREACHABLE", "EXPIRED", "GONE")
