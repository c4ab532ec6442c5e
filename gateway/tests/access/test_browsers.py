"""A page in somebody's browser reaches a port of this machine: what it may and may not do there.

It can make a name of its own resolve to 127.0.0.1, and send what a form can send; it cannot choose
`Host`, `Origin` and most content types. The gateway has tokens off, as on a developer's machine.
"""

import json
import re
import socket
from collections.abc import Iterator

import pytest

from acp_spec.bindings.routes import GATEWAY_ROUTES
from gateway.tests.e2e.client import Client
from gateway.tests.served import Served, serve_gateway

FORMS = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain")
REBOUND = ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example:80")
WRITES = tuple(route for route in GATEWAY_ROUTES if route.method in ("POST", "PUT"))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("open")
    one = serve_gateway(data_dir=folder / "data", log_file=folder / "gateway.log", environ={})
    yield one
    assert one.stop() == 0


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[Client]:
    with Client(served.url) as one:
        yield one


def path_of(path: str) -> str:
    return re.sub(r"\{[a-z_]+\}", "01ARZ3NDEKTSV4RRFFQ69G5FAV", path)


@pytest.mark.parametrize("host", REBOUND)
def test_under_a_rebound_name_nothing_is_served_at_all(client: Client, host: str) -> None:
    for route in GATEWAY_ROUTES:
        body = b"{}" if route.method in ("POST", "PUT") else None
        reply = client.call(route.method, path_of(route.path), body=body, host=host)
        assert (reply.status, reply.reason) == (403, "PERMISSION_DENIED"), route.name


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost:1", "file://"]
)
def test_a_foreign_page_writes_nothing(client: Client, origin: str) -> None:
    for route in GATEWAY_ROUTES:
        body = b"{}" if route.method in ("POST", "PUT") else None
        reply = client.call(route.method, path_of(route.path), body=body, origin=origin)
        assert reply.status == 403, route.name
        assert not [name for name in reply.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("kind", FORMS)
def test_what_a_form_can_send_is_no_request(client: Client, kind: str) -> None:
    """An older browser sends a form without Origin; its three content types are refused."""
    body = json.dumps({"workflow": "w", "url": "http://127.0.0.1:1", "scopes": ["admin"]}).encode()
    for route in WRITES:
        reply = client.call(route.method, path_of(route.path), body=body, content_type=kind)
        assert reply.status == 415, route.name
    assert client.call("POST", "/v1/tokens", body=body, content_type=kind).status == 415


def test_a_preflight_allows_nothing(client: Client) -> None:
    for route in GATEWAY_ROUTES:
        reply = client.call(
            "OPTIONS",
            path_of(route.path),
            origin="https://evil.example",
            access_control_request_method=route.method,
            access_control_request_headers="content-type",
        )
        assert 400 <= reply.status < 500, route.name
        assert not [name for name in reply.headers if name.startswith("access-control-")]


def test_no_page_may_frame_or_sniff_what_is_served(client: Client) -> None:
    docs = client.get("/docs")
    assert "frame-ancestors 'none'" in docs.headers["content-security-policy"]
    for path in ("/docs", "/openapi.json", "/healthz", "/metrics", "/v1/sessions"):
        assert client.get(path).headers["x-content-type-options"] == "nosniff", path


@pytest.mark.parametrize(
    "head",
    [
        b"GET /v1/sessions HTTP/1.1\r\n\r\n",
        b"GET /v1/sessions HTTP/1.0\r\n\r\n",
        b"GET /v1/sessions HTTP/1.1\r\nHost:\r\n\r\n",
        b"GET /v1/sessions HTTP/1.1\r\nHost: evil.example\r\nHost: localhost\r\n\r\n",
        b"GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"GET /v1/sessions HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: localhost\r\n\r\n",
        b"GET /v1/sessions HTTP/1.1\r\nHost: evil.example\r\nForwarded: host=localhost\r\n\r\n",
        b"GET /v1/sessions HTTP/1.1\r\nHost: localhost, evil.example\r\n\r\n",
        b"GET /v1/sessions HTTP/1.1\r\nHost: evil.example\r\nX-Original-Host: localhost\r\n\r\n",
        b"GET http://localhost/v1/sessions HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET http://evil.example/v1/sessions HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://evil.example/v1/sessions HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET http://localhost@evil.example/v1/sessions HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://evil.example/v1/sessions HTTP/1.0\r\n\r\n",
    ],
)
def test_no_spelling_of_the_head_gets_around_the_host(served: Served, head: bytes) -> None:
    host, _, port = served.http.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as peer:
        peer.sendall(head)
        status = peer.recv(65536).split(b" ")[1]
    assert status in (b"400", b"403"), status
