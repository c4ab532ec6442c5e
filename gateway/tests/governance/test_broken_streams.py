"""A breaker and streams over real sockets: what is cut behind its first lines failed, at its end.

A breaker that counts the opening of a stream as a success never opens for a component that streams.
"""

import json
from collections.abc import Iterator

import pytest

from gateway.tests.e2e.client import Client
from gateway.tests.faults.http_peers import GOOD, Misbehaviour, Wrong, saying
from gateway.tests.faults.town import Town
from gateway.tests.governance.test_parameters import PARAMETERS
from gateway.tests.served import serve_gateway
from gateway.transports.tests.raw_peer import http, peer

CHUNKED = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n"
)
LOOK = """
workflow: {name}
version: 1.0.0
steps: [{{name: act, role: execute, component: {name}, action: look}}]
output: act.output
recovery: {{policy: backoff, base_ms: 1, max_ms: 5}}
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A gateway whose breakers open at the third failure and stay open for long."""
    folder = tmp_path_factory.mktemp("gateway")
    environ = {"ACP_LEASES_PROBE_INTERVAL_MS": "600000"}
    gateway = serve_gateway(data_dir=folder / "d", log_file=folder / "log", environ=environ)
    with Client(gateway.url) as one:
        breaker = {"failures_in_a_row": 3, "open_ms": 60_000, "max_open_ms": 60_000}
        change = {"expected_version": 1, "parameters": {"breaker": breaker}}
        assert one.call("PUT", PARAMETERS, body=json.dumps(change).encode()).status == 200
        yield one
    gateway.stop()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


PROGRESS = chunk(b'{"progress": {"left": 1}}\n')


@pytest.mark.parametrize(
    ("name", "misbehave"),
    [
        ("cut_behind_progress", saying(CHUNKED, PROGRESS)),
        ("cut_in_the_result", saying(CHUNKED, PROGRESS, chunk(GOOD[:20]))),
        ("cut_at_once", saying(b"")),
        ("html", saying(http(b"<html>502</html>"))),
    ],
)
def test_what_is_cut_opens_the_breaker_and_then_nobody_calls_it(
    client: Client, name: str, misbehave: Misbehaviour
) -> None:
    with Town() as town:
        wrong = Wrong(name, misbehave)
        place = town.stay(peer(wrong.behave))
        client.register(f"http://127.0.0.1:{place.port}")
        client.put_workflow(LOOK.format(name=name))
        assert client.run(name, deadline_ms=3_000).json["status"] == "FAILED"
        while len(wrong.called) < 3:
            client.run(name, deadline_ms=3_000)
        view = client.run(name, deadline_ms=3_000).json
        (row,) = client.trajectory(view["session_id"])["calls"]
        assert (row["error"]["reason"], row["side_effect"]) == ("BREAKER_OPEN", "NONE")
        assert len(wrong.called) == 3
        targets = client.get("/v1/governance/targets").json["targets"]
        (target,) = [one for one in targets if one["component"] == f"{name}@1.0.0"]
        assert target["breaker"] == "open"
