"""More than fits: sessions beyond memory, payloads beyond a page, answers beyond the limit."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card, member
from gateway.tests.served import Served, serve_gateway

Start = Callable[..., dict[str, Any]]
Serve = Callable[[Stranger], Stranger]
LIVE = 6
MIB = 1024 * 1024
ONE = """
workflow: {name}
version: 1.0.0
steps:
  - name: act
    role: execute
    component: {component}
    action: {action}
    input_mapping: {mapping}
output: act.output
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway that keeps very few sessions in memory."""
    folder = tmp_path_factory.mktemp("gateway")
    gateway = serve_gateway(
        data_dir=folder / "data",
        log_file=folder / "gateway.log",
        environ={"ACP_LIMITS_LIVE_SESSIONS": str(LIVE)},
    )
    yield gateway
    gateway.stop()


def workflow(client: Client, action: str, mapping: str) -> str:
    name = action.replace(".", "-")
    component = action.partition(".")[0]
    source = ONE.format(name=name, component=component, action=action, mapping=mapping)
    client.put_workflow(source)
    return name


@pytest.fixture(scope="module", autouse=True)
def slow(client: Client, start_components: Start) -> None:
    client.register(start_components("slow")["slow"]["url"])


def test_sessions_beyond_memory_wait_for_their_operations_and_all_end(client: Client) -> None:
    name = workflow(client, "slow.operation", "{ms: input, poll_after_ms: '200'}")

    def run(number: int) -> tuple[int, Any]:
        with Client(client.url) as one:
            return number, one.run(name, str(300 + number)).json

    with ThreadPoolExecutor(10) as pool:
        for number, view in pool.map(run, range(8 * LIVE)):
            assert view["status"] == "SUCCEEDED", view
            assert view["output"] == {"took_ms": 300 + number}


def test_sessions_beyond_memory_take_call_backs_streams_and_feedback(
    client: Client, stranger: Serve
) -> None:
    actions = {"patient.wait": {"idempotency": "BY_KEY", "operation_timeout_ms": 120_000}}
    waits = {"operation": {"poll_after_ms": 60_000}}
    peer = Stranger(
        card("patient", "EXECUTOR", actions=actions), {"execute": lambda body: json.dumps(waits)}
    )
    client.register(stranger(peer).url)
    name = workflow(client, "patient.wait", "{n: input}")
    sessions = [client.open(name, str(number)) for number in range(5 * LIVE)]
    for session_id in sessions:
        client.until(session_id, lambda view: view["status"] == "WAITING")
    contexts = {one.context["session_id"]: one.context for one in peer.asked if one.body}
    assert set(contexts) == set(sessions)
    for number, session_id in enumerate(sessions):
        rating = {"kind": "RATING", "score": number, "author": "a"}
        assert client.post(f"/v1/sessions/{session_id}/feedback", rating).status < 300
    for number, session_id in enumerate(sessions):
        callback = contexts[session_id]["callback"]
        path = callback["url"].removeprefix(client.url)
        bearer = f"Bearer {callback['token']}"
        reply = client.post(path, f'{{"output": {number}.50}}', authorization=bearer)
        assert reply.status == 200, reply.text
    for number, session_id in enumerate(sessions):
        assert client.ended(session_id)["status"] == "SUCCEEDED"
        assert member(client.get(f"/v1/sessions/{session_id}").text, "output") == f"{number}.50"
        told = client.trajectory(session_id)
        assert [row["feedback"]["score"] for row in told["feedback"]] == [number]
        ids = [event.id for event in client.events(session_id)]
        assert ids == list(range(1, len(ids) + 1))


def echo(body: str) -> str:
    return f'{{"output":{member(body, "arguments")}}}'


@pytest.fixture(scope="module")
def big(client: Client, stranger: Serve) -> str:
    peer = Stranger(card("big", "EXECUTOR", actions={"big.echo": READ}), {"execute": echo})
    client.register(stranger(peer).url)
    return workflow(client, "big.echo", "{whole: input}")


@pytest.mark.parametrize("size", [100, 70_000, MIB, 3 * MIB])
def test_a_large_payload_goes_through_whole(client: Client, big: str, size: int) -> None:
    text = json.dumps("0123456789abcdef" * (size // 16))
    reply = client.run(big, text)
    assert reply.json["status"] == "SUCCEEDED", reply.text[:500]
    assert member(member(reply.text, "output"), "whole") == text


def test_a_body_over_the_limit_is_413_and_says_the_limit(client: Client, big: str) -> None:
    reply = client.post("/v1/sessions", f'{{"workflow":"big-echo","input":"{"x" * (5 * MIB)}"}}')
    assert reply.status == 413, reply.text[:300]
    assert reply.reason == "PAYLOAD_TOO_LARGE"


def test_an_answer_over_the_limit_fails_that_call_only(client: Client, stranger: Serve) -> None:
    answer = f'{{"output": "{"y" * (5 * MIB)}"}}'
    peer = Stranger(
        card("vast", "EXECUTOR", actions={"vast.say": READ}), {"execute": lambda body: answer}
    )
    client.register(stranger(peer).url)
    view = client.run(workflow(client, "vast.say", "{x: input}"), "1").json
    assert view["status"] == "FAILED"
    assert view["error"]["reason"] == "PAYLOAD_TOO_LARGE"
    assert client.run(workflow(client, "slow.read", "{ms: input}"), "0").json["output"]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "{",
        "[]",
        "null",
        '{"output": 1, "output": 2}',
        '{"output": "\\ud800"}',
        '{"output": NaN}',
        f'{{"output": {"[" * 60}{"]" * 60}}}',
        '{"output": 1, "side_effect": 7}',
        "<html>502 Bad Gateway</html>",
    ],
)
def test_an_answer_that_is_no_answer_fails_the_call_and_names_the_component_at_fault(
    client: Client, stranger: Serve, answer: str
) -> None:
    peer = Stranger(
        card("babble", "EXECUTOR", actions={"babble.say": READ}), {"execute": lambda body: answer}
    )
    registered = client.register(stranger(peer).url)
    view = client.run(workflow(client, "babble.say", "{x: input}"), "1").json
    assert view["status"] == "FAILED", view
    assert view["error"].get("boundary", "COMPONENT") == "COMPONENT", view
    client.delete(f"/v1/components/{registered['component_id']}")
