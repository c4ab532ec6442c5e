"""Faults that users of other systems report: the rule behind each, held against this gateway.

One test per rule, named after it; those about a full or a stalled disk stand in `durability` too.
"""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from time import monotonic
from typing import Any

import pytest

from acp_spec.model.times import parse_rfc3339
from gateway.stores.trajectory_log import log_files
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Answer, Stranger, card, serving
from gateway.tests.faults.http_peers import (
    DRIP_S,
    GOOD,
    SHORT_MS,
    Misbehaviour,
    Wrong,
    dripping,
    saying,
)
from gateway.tests.faults.sessions import put_workflows, rows_of
from gateway.tests.faults.town import Town
from gateway.tests.served import Served
from gateway.transports.tests.raw_peer import http, peer

UNTIL_S = 20.0
DRIPS = 1_200
"""Half a minute of them: whoever waits for the last one is not told from a busy machine."""
UNAVAILABLE: dict[str, object] = {
    "code": "UNAVAILABLE",
    "reason": "UNAVAILABLE",
    "message": "not now",
    "retryable": True,
}
METERED = """{"output": 1, "usage": {"tokens": 17, "cost_micros": 4},
 "llm_calls": [{"id": "m1", "model": "m", "tokens": 17, "latency_ms": 3}]}"""
Serve = Callable[[str, Answer], Stranger]


@pytest.fixture
def component(client: Client) -> Iterator[Serve]:
    """`component(name, answer)` serves and registers one with the READ action `look`."""
    with ExitStack() as stack:

        def serve(name: str, answer: Answer) -> Stranger:
            one = Stranger(card(name, "EXECUTOR", actions={"look": READ}), {"execute": answer})
            stack.enter_context(serving(one))
            client.register(one.url)
            return one

        yield serve


def put_looks(client: Client, name: str, *, version: str = "1.0.0", steps: int = 1) -> None:
    """A workflow of so many steps `look`, each of which may fail."""
    lines = [
        f"  - {{name: s{n}, role: execute, component: {name}, action: look, on_error: continue}}"
        for n in range(steps)
    ]
    head = f"workflow: {name}\nversion: {version}\nsteps:\n"
    recovery = "recovery: {policy: backoff, base_ms: 1, max_ms: 5}\n"
    client.put_workflow(head + "\n".join(lines) + f"\noutput: s{steps - 1}.output\n" + recovery)


def fails_spending(count: int | None) -> Answer:
    """UNAVAILABLE each time; it spent so many retries by itself (None: all that it was leased)."""

    def answer(body: str) -> tuple[int, str]:
        leased = json.loads(body)["context"].get("retry_budget", 0)
        spent = leased if count is None else count
        return 503, json.dumps({"error": UNAVAILABLE, "retries_spent": spent})

    return answer


def test_a_failed_call_leaves_a_record_of_every_attempt_when_retries_are_exhausted(
    client: Client, gateway: Served, component: Serve
) -> None:
    asked = component("exhausted", fails_spending(0))
    put_looks(client, "exhausted")
    view = client.run("exhausted").json
    told = client.trajectory(view["session_id"])
    assert len(told["calls"]) == len(asked.bodies("execute")) == 3
    assert [row["attempt"] for row in told["calls"]] == [1, 2, 3]
    assert {row["error"]["reason"] for row in told["calls"]} == {"UNAVAILABLE"}
    assert [one["chosen"] for one in told["decisions"]][-1] != told["decisions"][0]["chosen"]
    assert line_of(gateway, view["session_id"])["calls"] == told["calls"]


def line_of(gateway: Served, session_id: str) -> Any:
    """The session's line in the delivered trajectories, once it is there."""
    deadline = monotonic() + UNTIL_S
    while monotonic() < deadline:
        for file in log_files(gateway.data_dir / "trajectories"):
            for line in file.read_bytes().splitlines(keepends=True):
                # A line without its end is being written: a page of it may be there already.
                if session_id.encode() in line and line.endswith(b"\n"):
                    return json.loads(line)
    raise AssertionError(f"no trajectory of {session_id} was delivered")


def _ms(time: str) -> int:
    found = parse_rfc3339(time)
    assert found is not None, time
    return found


def ended_by_time(client: Client, town: Town, misbehave: Misbehaviour, *, name: str) -> None:
    wrong = Wrong(name, misbehave, SHORT_MS)
    place = town.stay(peer(wrong.behave))
    client.register(f"http://127.0.0.1:{place.port}")
    put_workflows(client, name)
    view = client.run(f"{name}_strict").json
    (row,) = rows_of(client, view["session_id"])["once"]
    assert view["error"]["reason"] == row["error"]["reason"] == "TIMEOUT"
    assert row["timeout_ms"] == SHORT_MS
    assert _ms(row["ended_at"]) - _ms(row["sent_at"]) < DRIPS * DRIP_S * 1_000 / 2


def test_the_timeout_fires_while_headers_are_awaited(client: Client, town: Town) -> None:
    ended_by_time(client, town, dripping(b"HTTP/1.1 200 OK\r\n" + b"a" * DRIPS), name="headless")


def test_a_slow_drip_times_out_as_a_whole(client: Client, town: Town) -> None:
    ended_by_time(client, town, dripping(http(GOOD + b" " * DRIPS)), name="drip")


CHUNKED = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n"
)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


@pytest.mark.parametrize(
    ("name", "rest"),
    [
        ("cut_behind_progress", b""),
        ("ended_behind_progress", b"0\r\n\r\n"),
        ("cut_in_the_result", chunk(GOOD[:20])),
        ("result_without_end", chunk(GOOD)),
    ],
)
def test_a_stream_that_is_cut_is_never_a_success(
    name: str, rest: bytes, client: Client, town: Town
) -> None:
    progress = chunk(b'{"progress": {"left": 1}}\n')
    wrong = Wrong(name, saying(CHUNKED, progress, rest))
    place = town.stay(peer(wrong.behave))
    client.register(f"http://127.0.0.1:{place.port}")
    put_workflows(client, name)
    view = client.run(name).json
    for rows in rows_of(client, view["session_id"]).values():
        assert all(row["error"]["reason"] == "UNAVAILABLE" for row in rows), rows
        assert all("output" not in row for row in rows)


def test_an_expired_component_is_gone_as_a_whole_and_comes_back_as_a_whole(
    client: Client,
) -> None:
    one = Stranger(card("leased", "EXECUTOR", actions={"look": READ}), {"execute": fine})
    with serving(one):
        entry = client.register(one.url, lease_seconds=1)
        put_looks(client, "leased")
        path = f"/v1/components/{entry['component_id']}"
        until(lambda: client.get(path).json.get("state") == "EXPIRED")
        one.asked.clear()
        view = client.run("leased").json
        rows = rows_of(client, view["session_id"])["s0"]
        assert {row["error"]["reason"] for row in rows} == {"NO_COMPONENT"}
        assert one.bodies("execute") == [], "nothing is sent to what has expired"
        client.register(one.url, lease_seconds=60)
        assert client.get(path).json.get("state", "ACTIVE") == "ACTIVE"
        assert client.run("leased").json["output"] == 1


def fine(body: str) -> str:
    return '{"output": 1}'


def until(holds: Callable[[], bool]) -> None:
    """Ask again and again: each question takes its time."""
    deadline = monotonic() + UNTIL_S
    while not holds():
        assert monotonic() < deadline, "it did not come to that"


def test_a_removed_component_and_a_replaced_workflow_serve_nothing_new(
    client: Client, component: Serve
) -> None:
    old, young = component("old", fine), component("young", lambda body: '{"output": 2}')
    put_looks(client, "old")
    assert client.run("old").json["output"] == 1
    put = client.call(
        "PUT",
        "/v1/workflows/old/versions/1.1.0",
        body=b"workflow: old\nversion: 1.1.0\nsteps:\n"
        b"  - {name: s, role: execute, component: young, action: look}\noutput: s.output\n",
        content_type="application/yaml",
    )
    assert put.status == 201
    assert client.run("old").json["output"] == 1, "stored is not active"
    assert client.post("/v1/workflows/old/versions/1.1.0/activate").status == 200
    assert client.run("old").json["output"] == 2
    listed = client.get("/v1/components").json["components"]
    (gone,) = [one["component_id"] for one in listed if one["card"]["name"] == "old"]
    assert client.delete(f"/v1/components/{gone}").status == 204
    asked = len(old.bodies("execute"))
    view = client.run("old@1.0.0").json
    rows = rows_of(client, view["session_id"])["s0"]
    assert {row["error"]["reason"] for row in rows} == {"NO_COMPONENT"}
    assert len(old.bodies("execute")) == asked, "its warm connection carries nothing more"
    assert young.bodies("execute")


def test_a_rejected_configuration_is_never_shown_or_used(client: Client, component: Serve) -> None:
    component("steady", fine)
    put_looks(client, "steady")
    before = client.get("/v1/workflows/steady").json
    yaml = {"content_type": "application/yaml"}
    broken = b"workflow: steady\nversion: 2.0.0\nsteps: [{name: x, role: nothing}]\n"
    path = "/v1/workflows/steady/versions"
    assert client.call("PUT", f"{path}/2.0.0", body=broken, **yaml).status == 400
    other = b"workflow: steady\nversion: 1.0.0\nsteps: []\noutput: input\n"
    assert client.call("PUT", f"{path}/1.0.0", body=other, **yaml).status in (400, 409)
    assert client.post(f"{path}/2.0.0/activate").status == 404
    assert client.get("/v1/workflows/steady").json == before
    impostor = Stranger(card("steady", "EXECUTOR", actions={"look": READ, "more": READ}), {})
    with serving(impostor):
        refused = client.post("/v1/components", {"url": impostor.url, "transport": "HTTP"})
        assert (refused.status, refused.reason) == (409, "IDEMPOTENCY_CONFLICT")
        listed = client.get("/v1/components").json["components"]
        assert len([one for one in listed if one["card"]["name"] == "steady"]) == 1
        assert client.run("steady").json["output"] == 1
        assert impostor.bodies("execute") == []


@pytest.mark.parametrize("spends", [0, 1, None])
def test_retries_inside_a_component_and_of_the_gateway_come_out_of_one_budget(
    spends: int | None, client: Client, component: Serve
) -> None:
    """They do not multiply: 6 failing calls have 8 retries together, whoever spends them."""
    name = "spends_all" if spends is None else f"spends_{spends}"
    asked = component(name, fails_spending(spends))
    put_looks(client, name, steps=6)
    client.run(name)
    contexts = [json.loads(body)["context"] for body in asked.bodies("execute")]
    leases = [context.get("retry_budget", 0) for context in contexts]
    by_itself = sum(min(lease, lease if spends is None else spends) for lease in leases)
    by_the_gateway = sum(context["attempt"] > 1 for context in contexts)
    assert max(leases) <= 2
    assert by_itself + by_the_gateway <= 8


def test_accounting_goes_on_when_the_client_disconnects(
    client: Client, gateway: Served, component: Serve
) -> None:
    called, go_on = threading.Event(), threading.Event()

    def answer(body: str) -> str:
        called.set()
        assert go_on.wait(UNTIL_S)
        return METERED

    component("metered", answer)
    put_looks(client, "metered")
    body = b'{"workflow": "metered", "session_key": "left"}'
    head = b"POST /v1/sessions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    host, _, port = gateway.http.partition(":")
    with socket.create_connection((host, int(port))) as left:
        left.sendall(head + b"prefer: wait=30\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        assert called.wait(UNTIL_S)
    go_on.set()
    session_id = client.post("/v1/sessions", body).json["session_id"]
    assert client.ended(session_id)["status"] == "SUCCEEDED"
    for told in (client.trajectory(session_id), line_of(gateway, session_id)):
        assert [one["llm_call"]["tokens"] for one in told["llm_calls"]] == [17]
        assert told["rewards"]["operational"]["calls"] == 1
    ends = [one.data for one in client.events(session_id) if one.type == "AttemptEnded"]
    assert [end["usage"] for end in ends] == [{"tokens": 17, "cost_micros": 4}]
