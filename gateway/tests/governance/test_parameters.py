"""Governance parameters as an operator meets them: read, changed, audited, found after a restart.

Real processes all the way; what an attempt went by is read from its session's trajectory.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from acp_spec.sdk.cli import Exit
from gateway.cli.governance import app as governance_command
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card, serving
from gateway.tests.served import Served, serve_gateway

PARAMETERS = "/v1/governance/parameters"
ONE = """
workflow: fees
version: 1.0.0
steps: [{name: act, role: execute, component: fees, action: quote}]
output: act.output
recovery: {policy: backoff, base_ms: 1, max_ms: 2}
"""


DOWN = {"error": {"code": "UNAVAILABLE", "reason": "UNAVAILABLE", "message": "down"}}


class Fees:
    """A component that answers, or does not: `down` is what it says instead."""

    def __init__(self) -> None:
        self.down = ""
        self.stranger = Stranger(
            card("fees", "EXECUTOR", actions={"quote": READ}), {"execute": self.answer}
        )

    def answer(self, body: str) -> str | tuple[int, str]:
        return (503, self.down) if self.down else '{"output": 1}'

    @property
    def asked(self) -> int:
        return len(self.stranger.bodies("execute"))


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Served]]:
    """Starts the gateway again and again over one directory."""
    folder = tmp_path_factory.mktemp("gateway")
    environ = {"ACP_GRACE_ATTACH_GRACE_MS": "200", "ACP_LEASES_PROBE_INTERVAL_MS": "600000"}
    started: list[Served] = []

    def begin() -> Served:
        one = serve_gateway(data_dir=folder / "d", log_file=folder / "log", environ=environ)
        started.append(one)
        return one

    yield begin
    for one in started:
        one.stop()


@pytest.fixture(scope="module")
def fees() -> Iterator[Fees]:
    with ExitStack() as stack:
        one = Fees()
        stack.enter_context(serving(one.stranger))
        yield one


def put(client: Client, expected: int, **parameters: object) -> Any:
    body = {"expected_version": expected, "parameters": parameters}
    return client.call("PUT", PARAMETERS, body=json.dumps(body).encode())


def row_of(client: Client) -> Any:
    """The one attempt of a session that goes well."""
    view = client.run("fees").json
    (row,) = client.trajectory(view["session_id"])["calls"]
    return row


def command(served: Served, *words: str) -> Any:
    return CliRunner().invoke(governance_command, [*words, "--gateway", served.url, "--json"])


def test_parameters_change_while_it_runs_and_outlive_a_restart(
    start: Callable[[], Served], fees: Fees, tmp_path: Path
) -> None:
    served = start()
    with Client(served.url) as client:
        client.register(fees.stranger.url)
        client.put_workflow(ONE)
        assert client.get(PARAMETERS).json["version"] == 1
        first = row_of(client)
        assert (first["parameter_version"], first["breaker"]) == (1, "closed")
        reply = put(client, 1, breaker={"open_ms": 300}, components={"fees": {}})
        assert (reply.status, reply.json["version"], reply.json["by"]) == (200, 2, "local")
        assert row_of(client)["parameter_version"] == 2
        conflict = put(client, 1)
        assert (conflict.status, conflict.reason) == (409, "STALE_STATE")
        said = command(
            served, "set", "components.fees.breaker.failures_in_a_row=2", "--reason", "x"
        )
        assert said.exit_code == Exit.OK, said.output
        assert json.loads(said.stdout)["version"] == 3
    served.stop()

    again = start()
    with Client(again.url) as client:
        held = client.get(PARAMETERS).json
        assert (held["version"], held["note"]) == (3, "x")
        assert held["parameters"]["breaker"]["open_ms"] == 300
        assert held["parameters"]["components"]["fees"]["breaker"]["failures_in_a_row"] == 2
        assert row_of(client)["parameter_version"] == 3
        history = client.get(f"{PARAMETERS}/history").json["versions"]
        assert [one["version"] for one in history] == [3, 2]
        (entry,) = client.get("/v1/components").json["components"]
        beat = {"signals": {"queue_length": 4, "cpu_percent": 71.5}}
        client.post(f"/v1/components/{entry['component_id']}/heartbeat", beat)
        assert row_of(client)["signals"] == [{"component": "fees", **beat["signals"]}]
        told = client.get("/metrics").text
        assert 'acp_component_load{component="fees",figure="queue_length"} 4.0' in told
        entries = client.get("/v1/audit").json["entries"]
        changes = [e for e in entries if e["action"] == "governance.parameters.changed"]
        assert [e["subject"] for e in changes] == [
            "governance:parameters@2",
            "governance:parameters@3",
        ]
        assert client.get("/v1/audit/verdict").json["whole"] is True
        lines = [json.loads(line) for line in command(again, "history").stdout.splitlines()]
        assert [line["version"] for line in lines] == [3, 2]
    again.stop()


NONSENSE: tuple[tuple[dict[str, object], str], ...] = (
    ({"breaker": {"open_ms": -1}}, "open_ms"),
    ({"breaker": {"opne_ms": 1}}, "opne_ms"),
    ({"retry_tokens": {"max_tokens": 1e300}}, "max_tokens"),
    ({"backoff": {"base_ms": 10, "max_ms": 9}}, "backoff"),
    ({"components": {"fees": {"actions": {"quote": {}}}}}, "per_second"),
    ({"queues": {"tool": {"limit": 0}}}, "limit"),
    ({"components": {"f" * 70_000: {}}}, "components"),
)


def test_nonsense_is_a_400_that_names_the_place_and_an_outage_costs_little(
    start: Callable[[], Served], fees: Fees
) -> None:
    served = start()
    with Client(served.url) as client:
        client.register(fees.stranger.url)
        client.put_workflow(ONE)
        version = client.get(PARAMETERS).json["version"]
        quick = {"breaker": {"open_ms": 300, "failures_in_a_row": 2}}
        assert put(client, version, components={"fees": quick}).status == 200
        before = client.get(PARAMETERS).text
        for parameters, place in NONSENSE:
            reply = put(client, version + 1, **parameters)
            assert (reply.status, reply.reason) == (400, "INVALID_REQUEST"), reply.text
            assert place in reply.message
        assert client.get(PARAMETERS).text == before
        assert command(served, "set", "nonsense").exit_code == Exit.USAGE
        words = ("set", "components.feees.backoff.base_ms=7", "--gateway", served.url)
        slip = CliRunner().invoke(governance_command, [*words])
        assert slip.exit_code == Exit.OK, slip.output
        assert "no component 'feees' is registered" in slip.output
        check_outage(client, fees)
        assert command(served, "targets").exit_code == Exit.OK
    served.stop()


def check_outage(client: Client, fees: Fees) -> None:
    """A gateway without a breaker tried the dead primary 45 times for 15 requests."""
    fees.down = json.dumps(DOWN)
    before = fees.asked
    opened = [client.open("fees", deadline_ms=2_000) for _ in range(15)]
    assert {client.ended(session)["status"] for session in opened} == {"FAILED"}
    # Two failures open it: at most one call of each was on its way, and a probe each 300 ms.
    assert fees.asked - before <= 15 + 2_000 // 300 + 2
    (target,) = client.get("/v1/governance/targets").json["targets"]
    assert target["breaker"] in ("open", "half_open")
    assert 'acp_breaker_opened_total{component="fees@1.0.0"}' in client.get("/metrics").text
    fees.down = ""
    session = client.open("fees", deadline_ms=20_000)
    while client.ended(session)["status"] != "SUCCEEDED":
        session = client.open("fees", deadline_ms=20_000)
    for _ in range(5):
        assert row_of(client)["attempt"] == 1
    (target,) = client.get("/v1/governance/targets").json["targets"]
    assert target.get("breaker", "closed") == "closed"
