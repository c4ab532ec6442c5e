"""What the environment or a peer could slip between the gateway and a component: proxies, bombs."""

import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Final

import grpc
import httpx
import pytest

from acp_spec.bindings.routes import COMPONENT
from acp_spec.codec import proto
from acp_spec.model.calls import ExecuteResponse
from acp_spec.model.card import Action, Card, Health
from acp_spec.model.enums import Effect, HealthStatus, Idempotency, Role
from acp_spec.model.payload import payload
from gateway.tests.access.peers import FORBIDDEN, Heard, Said, Trap, grpc_peer, peer, trap
from gateway.tests.e2e.client import Client, Reply
from gateway.tests.e2e.stranger import READ, card
from gateway.tests.processes import peak_rss_mib
from gateway.tests.served import Served, serve_gateway

PROXIES: Final = (
    "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
    "grpc_proxy", "GRPC_PROXY", "ftp_proxy", "REQUEST_METHOD_PROXY",
)  # fmt: skip
# 200 MiB of zeros: 200 KiB on the wire, far under every limit, far over what may be unpacked.
BOMB_MIB: Final = 200
# What one bad answer may cost beyond the limit of 4 MiB: buffers, copies, the interpreter.
GROWTH_MIB_MAX: Final = 60
CARD_PATH: Final = "/acp/v1/component"


@pytest.fixture(scope="module")
def laid() -> Iterator[Trap]:
    with trap() as one:
        yield one


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, laid: Trap) -> Iterator[Served]:
    """A gateway in an environment full of proxies."""
    folder = tmp_path_factory.mktemp("proxied")
    environ = dict.fromkeys(PROXIES, laid.url) | {"no_proxy": "", "NO_PROXY": ""}
    one = serve_gateway(data_dir=folder / "data", log_file=folder / "gateway.log", environ=environ)
    yield one
    assert one.stop() == 0


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[Client]:
    with Client(served.url) as one:
        yield one


def test_the_trap_hears_who_comes(laid: Trap) -> None:
    with pytest.raises(httpx.HTTPError):
        httpx.get(laid.url, trust_env=False)
    with pytest.raises(httpx.HTTPError):
        httpx.get("http://example.test/", proxy=laid.url)
    assert [visit.split(b" ")[0] for visit in laid.visits] == [b"GET", b"GET"]
    laid.visits.clear()


def answering(heard: Heard, name: str, said: Said) -> Said:
    """A good card, and this answer to every call."""
    if heard.path == CARD_PATH:
        told = {**card(name, "EXECUTOR"), "actions": [{"name": "look", **READ}]}
        return Said(json.dumps(told).encode())
    return said if heard.path.endswith("/execute") else Said(b'{"status":"SERVING"}')


def look(client: Client, name: str) -> Any:
    """The view of a session that calls the component once."""
    client.put_workflow(
        f"""
workflow: look-{name}
version: 1.0.0
steps:
  - {{name: act, role: execute, component: {name}, action: look}}
output: act.output
limits: {{deadline_ms: 60000}}
"""
    )
    return client.run(f"look-{name}").json


def register(client: Client, url: str, transport: str = "HTTP") -> Reply:
    return client.post("/v1/components", {"url": url, "transport": transport})


# ---- proxies -------------------------------------------------------------------------------------


def test_proxies_of_the_environment_are_not_asked(client: Client, laid: Trap) -> None:
    good = Said(b'{"output":1}')
    with peer(lambda heard: answering(heard, "plain", good), FORBIDDEN) as one:
        assert register(client, one.url).status == 201
        assert look(client, "plain")["status"] == "SUCCEEDED"
    with grpc_component("plain-grpc", b'{"n":1}', grpc.Compression.NoCompression) as port:
        assert register(client, f"grpc://127.0.0.1:{port}", "GRPC").status == 201
        assert look(client, "plain-grpc")["status"] == "SUCCEEDED"
    assert laid.visits == []


# ---- bombs ---------------------------------------------------------------------------------------


def packed(how: str) -> bytes:
    """A JSON text whose unpacked form is one enormous string."""
    text = b'{"output":"' + b"0" * (BOMB_MIB * 1024 * 1024) + b'"}'
    match how:
        case "gzip":
            return gzip.compress(text)
        case "deflate":
            return zlib.compress(text)
        case _:
            return gzip.compress(gzip.compress(text))


@pytest.mark.parametrize("how", ["gzip", "deflate", "gzip, gzip"])
def test_a_packed_answer_is_not_unpacked(
    client: Client, served: Served, laid: Trap, how: str
) -> None:
    name = "packed-" + how.replace(", ", "-")
    bomb = Said(packed(how), headers={"content-encoding": how})
    before = peak_rss_mib(served.pid)
    with peer(lambda heard: answering(heard, name, bomb), FORBIDDEN) as one:
        assert register(client, one.url).status == 201
        assert "accept-encoding" not in one.heard[0].headers or (
            one.heard[0].headers["accept-encoding"] == "identity"
        )
        view = look(client, name)
    assert view["status"] == "FAILED"
    assert view["error"]["reason"] == "CONTRACT_VIOLATION", view
    assert peak_rss_mib(served.pid) - before < GROWTH_MIB_MAX


def test_a_packed_card_is_not_unpacked(client: Client, served: Served) -> None:
    bomb = Said(packed("gzip"), headers={"content-encoding": "gzip"})
    before = peak_rss_mib(served.pid)
    with peer(lambda _: bomb, FORBIDDEN) as one:
        reply = register(client, one.url)
    assert (reply.status, reply.reason) == (422, "CONTRACT_VIOLATION"), reply.text
    assert peak_rss_mib(served.pid) - before < GROWTH_MIB_MAX


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_a_packed_message_is_not_unpacked(
    client: Client, served: Served, compression: grpc.Compression
) -> None:
    name = f"packed-grpc-{compression.name.lower()}"
    before = peak_rss_mib(served.pid)
    with grpc_component(name, b'"' + b"0" * (BOMB_MIB * 1024 * 1024) + b'"', compression) as port:
        assert register(client, f"grpc://127.0.0.1:{port}", "GRPC").status == 201
        view = look(client, name)
    assert view["error"]["reason"] == "PAYLOAD_TOO_LARGE", view
    assert view["error"]["side_effect"] == "NONE", "the action is READ"
    assert peak_rss_mib(served.pid) - before < GROWTH_MIB_MAX


def grpc_component(
    name: str, output: bytes, compression: grpc.Compression
) -> AbstractContextManager[int]:
    """A gRPC component that answers Execute with one output, compressed or not; its port."""
    # it packs 200 MiB for its answer, which takes a busy machine seconds
    action = Action(
        name="look", effect=Effect.READ, idempotency=Idempotency.NATURAL, timeout_ms=50_000
    )
    told = Card(
        name=name,
        version="1.0.0",
        acp_versions=("1.0",),
        roles=(Role.EXECUTOR,),
        actions=(action,),
    )
    answers = {
        COMPONENT["describe"].rpc: proto.to_proto(told),
        COMPONENT["health"].rpc: proto.to_proto(Health(status=HealthStatus.SERVING)),
        COMPONENT["execute"].rpc: proto.to_proto(ExecuteResponse(output=payload(output))),
    }
    return grpc_peer(answers, compression)
