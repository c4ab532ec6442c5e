"""More sessions than fit, at a real gateway: refused in the same words over HTTP and gRPC."""

import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from acp_spec.bindings.routes import GATEWAY
from acp_spec.model.gateway_calls import OpenSessionRequest
from acp_spec.model.session import OpenSession
from gateway.tests.asking import Asker
from gateway.tests.e2e.client import Client, Reply, opening
from gateway.tests.e2e.stranger import READ, Stranger, card, serving
from gateway.tests.served import Served, serve_gateway

WORKFLOW = """
workflow: {name}
version: 1.0.0
steps: [{{name: act, role: execute, component: clerk, action: serve}}]
output: act.output
"""
NAMES = ("crowd", "haste", "key", "open")
CALL_S = 0.05
OFFERED_MAX = 200


class Clerk:
    """Serves one at a time, each for 50 ms; `pause` keeps everybody waiting."""

    def __init__(self) -> None:
        self.works = threading.Event()
        self.works.set()
        described = card("clerk", "EXECUTOR", actions={"serve": READ})
        described["limits"] = {"max_concurrency": 1}
        self.stranger = Stranger(described, {"execute": self.serve})

    def serve(self, body: str) -> str:
        threading.Event().wait(CALL_S)
        self.works.wait(30)
        return '{"output": "served"}'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("gateway")
    gateway = serve_gateway(data_dir=folder / "d", log_file=folder / "log", environ={})
    yield gateway
    gateway.stop()


@pytest.fixture(scope="module")
def clerk(served: Served) -> Iterator[Clerk]:
    with ExitStack() as stack:
        one = Clerk()
        stack.enter_context(serving(one.stranger))
        with Client(served.url) as client:
            client.register(one.stranger.url)
            for name in NAMES:  # what stands of one workflow says nothing of another
                client.put_workflow(WORKFLOW.format(name=name))
                assert client.run(name).json["status"] == "SUCCEEDED"
        yield one


def crowded(client: Client, workflow: str) -> tuple[list[str], Any]:
    """Sessions opened until one is refused, and that refusal."""
    opened: list[str] = []
    for _ in range(OFFERED_MAX):
        reply = client.post("/v1/sessions", opening(workflow, "null", deadline_ms=60_000))
        if reply.status != 201:
            return opened, reply
        opened.append(reply.json["session_id"])
        threading.Event().wait(0.02)
    raise AssertionError("everybody was let in")


def at_once(count: int, client: Client, body: str) -> list[Reply]:
    """They come together: had they come one by one on a slow disk, a queue would stand already."""

    def ask(_: int) -> Reply:
        with Client(client.url) as one:
            return one.post("/v1/sessions", body)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(ask, range(count)))


def test_a_crowd_is_refused_with_when_to_come_back_and_who_is_in_is_served(
    served: Served, clerk: Clerk
) -> None:
    clerk.works.clear()
    try:
        with (
            Client(served.url) as client,
            Asker(http=served.http, grpc_address=served.grpc) as asker,
        ):
            opened, refusal = crowded(client, "crowd")
            assert (refusal.status, refusal.reason) == (503, "OVERLOADED")
            told = refusal.json["error"]
            assert told["retry_after_ms"] >= 100
            assert (told["retryable"], told["side_effect"]) == (True, "NONE")
            assert told["boundary"] == "GATEWAY"
            assert int(refusal.headers["retry-after"]) * 1_000 >= told["retry_after_ms"]
            request = OpenSessionRequest(session=OpenSession(workflow="crowd"))
            over_grpc = asker.over_grpc(GATEWAY["open_session"], request)
            assert (over_grpc.code, over_grpc.reason) == ("UNAVAILABLE", "OVERLOADED")
            clerk.works.set()
            for session_id in opened:
                assert client.ended(session_id)["status"] == "SUCCEEDED"
            assert client.run("crowd").json["status"] == "SUCCEEDED", "and it opens again"
    finally:
        clerk.works.set()


def test_who_could_not_end_in_time_is_refused_while_those_with_time_are_not(
    served: Served, clerk: Clerk
) -> None:
    clerk.works.clear()
    try:
        with Client(served.url) as client:
            patient = opening("haste", "null", deadline_ms=60_000)
            replies = at_once(6, client, patient)
            let_in = [one.json["session_id"] for one in replies if one.status == 201]
            hasty = client.post("/v1/sessions", opening("haste", "null", deadline_ms=100))
            assert hasty.status == 503, hasty.text
            assert "too late for its deadline of 100 ms" in hasty.message
            never = client.post("/v1/sessions", opening("haste", "null", deadline_ms=1))
            assert (never.status, never.reason) == (504, "TIMEOUT")
            assert never.json["error"]["side_effect"] == "NONE"
            assert "retryable" not in never.json["error"], "absent is not"
            assert "retry-after" not in never.headers
            clerk.works.set()
            assert len(let_in) > 2
            for session_id in let_in:
                assert client.ended(session_id)["status"] == "SUCCEEDED"
    finally:
        clerk.works.set()


def test_a_session_key_that_is_known_is_answered_also_by_a_crowded_gateway(
    served: Served, clerk: Clerk
) -> None:
    """A client that asks again for what it has must not be told to come back."""
    clerk.works.clear()
    try:
        with Client(served.url) as client:
            known = opening("key", "null", deadline_ms=60_000, session_key="mine")
            first = client.post("/v1/sessions", known)
            opened, _ = crowded(client, "key")
            again = client.post("/v1/sessions", known)
            assert again.status == 200, again.text
            assert again.json["session_id"] == first.json["session_id"]
            clerk.works.set()
            for session_id in opened:
                client.ended(session_id)
    finally:
        clerk.works.set()


def test_the_refusals_are_counted(served: Served, clerk: Clerk) -> None:
    with Client(served.url) as client:
        text = client.get("/metrics").text
    counted = re.search(r'^acp_refusals_total{reason="OVERLOADED"} [1-9]', text, re.MULTILINE)
    assert counted, json.dumps(text[-2_000:])


def test_an_operator_opens_the_gate_while_it_runs(served: Served, clerk: Clerk) -> None:
    clerk.works.clear()
    try:
        with Client(served.url) as client:
            _, refusal = crowded(client, "open")
            assert refusal.status == 503
            change = {"expected_version": 1, "parameters": {"overload": {"target_ms": 0}}}
            path = "/v1/governance/parameters"
            reply = client.call("PUT", path, body=json.dumps(change).encode())
            assert reply.status == 200, reply.text
            opened = [client.open("open", "null", deadline_ms=60_000) for _ in range(5)]
            clerk.works.set()
            for session_id in opened:
                assert client.ended(session_id)["status"] == "SUCCEEDED"
    finally:
        clerk.works.set()
