"""Nobody makes the gateway call what its administrator did not allow: each test lays a trap.

One address of loopback is allowed, the trap stands on others. A name, a redirect, a link in a card
or an odd spelling that leads there would be heard.
"""

import json
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.tests.access.lying_names import VARIABLE, lookups_beside
from gateway.tests.access.peers import ALLOWED, Heard, Peer, Said, Trap, peer, trap
from gateway.tests.e2e.client import Client, Reply
from gateway.tests.e2e.stranger import READ, card
from gateway.tests.served import Served, serve_gateway

ALLOW: Final = {
    "ACP_OUTBOUND_ALLOW": f"{ALLOWED}/32",
    # look-ups and requests are counted: the gateway asks how nobody is by itself
    "ACP_LEASES_PROBE_INTERVAL_MS": "86400000",
}
ACTIONS: Final = {"look": READ}
# Spellings of the trap's address, in every form that some resolver or parser takes for it.
SPELLINGS: Final = (
    "127.0.0.1", "localhost", "localhost.", "LOCALHOST", "127.1", "127.0.1", "0x7f.0.0.1",
    "0x7f000001", "2130706433", "017700000001", "0177.0.0.1", "127.0.0.01", "127.000.000.001",
    "0", "0.0.0.0", "127.0.0.1.", "127.255.255.254", "[::1]", "[0:0:0:0:0:0:0:1]", "[::]",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::1%25lo]", "[::1%lo]", "①②⑦.⓪.⓪.①", "127。0。0。1",
    f"{ALLOWED}@127.0.0.1", f"user:{ALLOWED}@127.0.0.1", f"127.0.0.1#@{ALLOWED}",
    f"127.0.0.1?@{ALLOWED}", f"127.0.0.1\\@{ALLOWED}", f"{ALLOWED}%00.127.0.0.1",
    f"{ALLOWED}\t@127.0.0.1", "127.0.0.1%2f", "%31%32%37.0.0.1", f"{ALLOWED},127.0.0.1",
)  # fmt: skip
METADATA: Final = (
    "169.254.169.254", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "169.254.170.2",
    "100.100.100.200", "[fd00:ec2::254]", "[64:ff9b::a9fe:a9fe]", "[::a9fe:a9fe]",
    "[2002:a9fe:a9fe::]", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518",
    "metadata.test",
)  # fmt: skip


@pytest.fixture(scope="module")
def laid() -> Iterator[Trap]:
    with trap() as one:
        yield one


@pytest.fixture
def name() -> str:
    """A component's name that no other test uses."""
    return f"looker-{next(_NUMBERS)}"


@pytest.fixture
def caught(laid: Trap) -> Iterator[list[bytearray]]:
    """The trap's visitors; a test that uses it fails if there was one."""
    laid.visits.clear()
    yield laid.visits
    assert laid.visits == []


Lying = Callable[..., Served]
_NUMBERS: Final = iter(range(10_000))


@pytest.fixture(scope="module")
def lying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lying]:
    """`lying(names, **environ)` starts a gateway whose resolver says what the table says."""
    started: list[Served] = []

    def start(names: dict[str, list[list[str]]], **environ: str) -> Served:
        folder = tmp_path_factory.mktemp("lying")
        table, acp = folder / "names.json", folder / "acp"
        table.write_text(json.dumps(names))
        acp.write_text(
            f"#!{sys.executable}\nfrom gateway.tests.access.lying_names import main\nmain()\n"
        )
        acp.chmod(acp.stat().st_mode | stat.S_IXUSR)
        served = serve_gateway(
            data_dir=folder / "data",
            log_file=folder / "gateway.log",
            environ={VARIABLE: str(table), "PYTHONPATH": str(_root()), **environ},
            acp=acp,
        )
        started.append(served)
        return served

    yield start
    for served in started:
        assert served.stop() == 0


def _root() -> Path:
    return Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def gateway(lying: Lying) -> Iterator[tuple[Client, Path]]:
    """One gateway for most tests: its client and the list of names that were looked up."""
    names = {
        "good.test": [[ALLOWED]],
        "mixed.test": [[ALLOWED, "127.0.0.1"]],
        "mapped.test": [["::ffff:127.0.0.1"]],
        "mapped-good.test": [[f"::ffff:{ALLOWED}"]],
        "moves.test": [[ALLOWED], ["127.0.0.1"]],
        "moves-late.test": [[ALLOWED], [ALLOWED], ["127.0.0.1"]],
        "flips.test": [[ALLOWED], ["127.0.0.1"]] * 20,
        "v6.test": [["::1"]],
        "any.test": [["0.0.0.0"]],
        "zone.test": [["fe80::1%lo"]],
        "empty.test": [[]],
        "many.test": [[f"127.0.0.{n}" for n in range(2, 200)]],
        "localhost": [["127.0.0.1"]],
        "localhost.": [["127.0.0.1"]],
    }
    served = lying(names, **ALLOW)
    with Client(served.url) as client:
        yield client, lookups_beside(served.data_dir.parent / "names.json")


def register(client: Client, url: str, transport: str = "HTTP") -> Reply:
    return client.post("/v1/components", {"url": url, "transport": transport})


def refused(reply: Reply) -> None:
    assert 400 <= reply.status < 500 or reply.status == 503, reply.text
    assert reply.reason in ("INVALID_REQUEST", "PERMISSION_DENIED", "UNAVAILABLE"), reply.text


def component(heard: Heard, name: str, **more: object) -> Said:
    """A component that answers every question, with this in its card."""
    if heard.path.endswith("/component"):
        actions = [{"name": "look", **READ}]
        told: dict[str, Any] = {**card(name, "EXECUTOR"), "actions": actions, **more}
        return Said(json.dumps(told).encode())
    if heard.path.endswith("/health"):
        return Said(b'{"status":"SERVING"}')
    return Said(b'{"output":1}')


# ---- spellings ----------------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("transport", ["HTTP", "GRPC"])
def test_no_spelling_of_a_forbidden_address_is_dialled(
    gateway: tuple[Client, Path], laid: Trap, caught: list[bytearray], spelling: str, transport: str
) -> None:
    client, _ = gateway
    scheme = transport.lower()
    refused(register(client, f"{scheme}://{spelling}:{laid.port}", transport))


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "gopher://127.0.0.1:{port}/_GET",
        "unix:///var/run/docker.sock",
        "http+unix://%2Fvar%2Frun%2Fdocker.sock:80",
        "ftp://127.0.0.1:{port}",
        "HTTP://127.0.0.1:{port}",
        "//127.0.0.1:{port}",
        "http:127.0.0.1:{port}",
        "http:///127.0.0.1:{port}",
        "http:\\\\127.0.0.1:{port}",
        "http://127.0.0.2:1/..//127.0.0.1:{port}",
        "http://127.0.0.2:1@127.0.0.1:{port}",
        "http://127.0.0.2:{port}\r\nHost: 127.0.0.1",
        "http://127.0.0.2 127.0.0.1:{port}",
        "dns:///127.0.0.1:{port}",
        "ipv4:127.0.0.1:{port}",
        "xds:///127.0.0.1:{port}",
    ],
)
@pytest.mark.parametrize("transport", ["HTTP", "GRPC"])
def test_no_other_scheme_or_trick_is_dialled(
    gateway: tuple[Client, Path], laid: Trap, caught: list[bytearray], url: str, transport: str
) -> None:
    client, _ = gateway
    refused(register(client, url.replace("{port}", str(laid.port)), transport))


@pytest.mark.parametrize("address", METADATA)
def test_a_metadata_service_is_refused_by_an_allow_list_that_allows_everything(
    lying: Lying, everything: Client, address: str
) -> None:
    for transport in ("HTTP", "GRPC"):
        reply = register(everything, f"{transport.lower()}://{address}:80", transport)
        assert 400 <= reply.status < 500, reply.text
        assert reply.reason in ("INVALID_REQUEST", "PERMISSION_DENIED"), reply.text


@pytest.mark.parametrize(
    "address", ["0.0.0.0", "[::]", "any.test", "[::ffff:0.0.0.0]", "224.0.0.1"]
)
def test_an_address_of_no_machine_is_refused_by_it_too(
    everything: Client, laid: Trap, caught: list[bytearray], address: str
) -> None:
    reply = register(everything, f"http://{address}:{laid.port}")
    assert reply.reason == "PERMISSION_DENIED", reply.text


@pytest.fixture(scope="module")
def everything(lying: Lying) -> Iterator[Client]:
    """A gateway that may dial the whole world."""
    names = {"metadata.test": [["169.254.169.254"]], "any.test": [["0.0.0.0"], ["::"]]}
    served = lying(names, ACP_OUTBOUND_ALLOW="0.0.0.0/0,::/0")
    with Client(served.url) as client:
        yield client


# ---- names that change ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["mixed.test", "mapped.test", "v6.test", "any.test", "zone.test", "empty.test",
             "many.test", "nowhere.test"],
)  # fmt: skip
@pytest.mark.parametrize("transport", ["HTTP", "GRPC"])
def test_a_name_with_one_forbidden_address_is_not_dialled_at_all(
    gateway: tuple[Client, Path], laid: Trap, caught: list[bytearray], host: str, transport: str
) -> None:
    client, _ = gateway
    refused(register(client, f"{transport.lower()}://{host}:{laid.port}", transport))


def test_the_address_that_was_checked_is_the_one_that_is_dialled(
    gateway: tuple[Client, Path], laid: Trap, caught: list[bytearray], name: str
) -> None:
    client, lookups = gateway
    with peer(lambda heard: component(heard, name)) as good:
        for host in ("good.test", "mapped-good.test"):
            before = lookups.read_text().split().count(host) if lookups.exists() else 0
            reply = register(client, f"http://{host}:{good.port}")
            assert reply.status == 201, reply.text
            asked = lookups.read_text().split().count(host) - before
            dialled = len(good.heard)
            assert 1 <= asked <= dialled, "one look-up per connection, none in between"
            assert good.heard[0].headers["host"] == f"{host}:{good.port}"
            good.heard.clear()
            client.delete(f"/v1/components/{reply.json['component_id']}")


def test_a_name_that_moves_between_two_calls_is_checked_again(
    gateway: tuple[Client, Path], laid: Trap, caught: list[bytearray], name: str
) -> None:
    client, _ = gateway
    # the trap and the good peer on one port, so that only the address tells them apart
    with peer_at(laid.port, name) as good:
        reply = register(client, f"http://moves.test:{laid.port}")
        assert reply.status == 201, reply.text
        assert [one.path for one in good.heard] == ["/acp/v1/component"]
        view = run_look(client, name)
        assert view["status"] == "FAILED", view
        (row,) = client.trajectory(view["session_id"])["calls"][-1:]
        assert row["side_effect"] == "NONE", row
        assert [one.path for one in good.heard if one.path.endswith("execute")] == []
        client.delete(f"/v1/components/{reply.json['component_id']}")


def test_a_name_that_flips_at_every_look_up_never_leads_to_the_trap(
    gateway: tuple[Client, Path], laid: Trap, caught: list[bytearray], name: str
) -> None:
    client, _ = gateway
    with peer_at(laid.port, name):
        statuses = [register(client, f"http://flips.test:{laid.port}").status for _ in range(16)]
    assert 201 in statuses or 200 in statuses
    assert set(statuses) & {400, 403}


def peer_at(port: int, name: str) -> AbstractContextManager[Peer]:
    """The good component on the allowed address, at the trap's port."""
    return peer(lambda heard: component(heard, name), ALLOWED, port)


def run_look(client: Client, name: str) -> Any:
    """A session that calls the component once."""
    version = f"1.0.{next(_NUMBERS)}"
    source = f"""
workflow: looking
version: {version}
steps:
  - {{name: act, role: execute, component: {name}, action: look, input_mapping: {{x: input}}}}
output: act.output
limits: {{deadline_ms: 4000}}
"""
    client.put_workflow(source)
    return client.run(f"looking@{version}", "1").json


# ---- what a peer answers -------------------------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 300, 305])
@pytest.mark.parametrize("at", ["component", "health", "execute"])
def test_a_redirect_is_not_followed(
    gateway: tuple[Client, Path],
    laid: Trap,
    caught: list[bytearray],
    status: int,
    at: str,
    name: str,
) -> None:
    client, _ = gateway

    def redirecting(heard: Heard) -> Said:
        if heard.path.endswith(at):
            where = {"location": f"{laid.url}{heard.path}", "refresh": f"0; url={laid.url}"}
            return Said(b"", status, where)
        return component(heard, name)

    with peer(redirecting) as bad:
        reply = register(client, bad.url)
        if at == "component":
            assert reply.status == 422 or reply.reason == "UNAVAILABLE", reply.text
            return
        assert reply.status == 201, reply.text
        view = run_look(client, name)
        assert view["status"] == ("FAILED" if at == "execute" else "SUCCEEDED"), view
        client.delete(f"/v1/components/{reply.json['component_id']}")


def linking(laid: Trap) -> dict[str, dict[str, object]]:
    """Cards that link to the trap in every place that takes a URL or a schema."""
    schemas: dict[str, object] = {
        "ref": {"$ref": f"{laid.url}/schema.json"},
        "dynamic ref": {"$dynamicRef": f"{laid.url}/schema.json"},
        "nested ref": {"properties": {"a": {"allOf": [{"$ref": f"{laid.url}/s#/x"}]}}},
        "meta-schema": {"$schema": f"{laid.url}/meta"},
        "id and a relative ref": {"$id": f"{laid.url}/a/", "$ref": "b.json"},
        "vocabulary": {"$vocabulary": {f"{laid.url}/v": True}},
        "a file": {"$ref": "file:///etc/passwd"},
    }
    cards: dict[str, dict[str, object]] = {
        name: {"actions": [{"name": "look", **READ, "input_schema": schema}]}
        for name, schema in schemas.items()
    }
    cards["output schema"] = {
        "actions": [{"name": "look", **READ, "output_schema": {"$ref": f"{laid.url}/s"}}]
    }
    cards["docs_url"] = {"docs_url": f"{laid.url}/docs"}
    return cards


@pytest.mark.parametrize("link", [
    "ref", "dynamic ref", "nested ref", "meta-schema", "id and a relative ref", "vocabulary",
    "a file", "output schema", "docs_url",
])  # fmt: skip
def test_no_link_in_a_card_is_fetched(
    gateway: tuple[Client, Path], laid: Trap, caught: list[bytearray], link: str, name: str
) -> None:
    client, _ = gateway
    with peer(lambda heard: component(heard, name, **linking(laid)[link])) as good:
        reply = register(client, good.url)
        assert reply.status in (201, 400, 422), reply.text
        if reply.status == 201:
            view = run_look(client, name)
            assert view["status"] in ("SUCCEEDED", "FAILED")
            client.delete(f"/v1/components/{reply.json['component_id']}")
        assert "passwd" not in reply.text.replace("/etc/passwd", "")
        assert "root:" not in reply.text


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"$id": "http://x.test/a", "$ref": "http://x.test/a"},
        {"$recursiveRef": "#"},
        {"properties": {"x": {"$ref": "#"}}, "$ref": "#/properties/x"},
    ],
)
def test_a_schema_that_refers_to_itself_hangs_nobody(
    gateway: tuple[Client, Path], schema: dict[str, object], name: str
) -> None:
    client, _ = gateway
    example = {"arguments": {"x": 1}, "safe": True}
    actions = [{"name": "look", **READ, "input_schema": schema, "examples": [example]}]
    with peer(lambda heard: component(heard, name, actions=actions)) as good:
        reply = register(client, good.url)
        assert reply.status in (201, 400, 422), reply.text
        if reply.status == 201:
            assert run_look(client, name)["status"] in ("SUCCEEDED", "FAILED")
            client.delete(f"/v1/components/{reply.json['component_id']}")
    assert client.get("/healthz").status == 200
