"""The listener on a real socket: bytes that are no HTTP, bodies that do not come, and the end."""

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from grpc_health.v1 import health_pb2, health_pb2_grpc

from acp_spec.model.session import Opened, OpenSession
from acp_spec.sdk.http_protocol import HEADER_BYTES_MAX, HEADERS_MAX, Protocol
from gateway.config.binds import Bind
from gateway.runtime.principal import LOCAL, Principal
from gateway.transports.http_server import HttpServer, bound_socket
from gateway.transports.tests.in_memory import House
from gateway.transports.tests.listening import grpc_server, http_server, run, settings

HOST = b"Host: localhost\r\n"


async def say(server: HttpServer, *pieces: bytes, until_closed: bool = True) -> bytes:
    """Send bytes as they are and read what comes back."""
    host, _, port = server.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        if until_closed:
            return await asyncio.wait_for(reader.read(), 15)
        return await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 15)
    finally:
        writer.close()


def watch_events(house: House) -> asyncio.Event:
    """Set once somebody follows a session."""
    followed, follow = asyncio.Event(), house.sessions.events

    def events(
        session_id: str, principal: Principal, *, after: int
    ) -> AsyncIterator[tuple[int, str, bytes]]:
        followed.set()
        return follow(session_id, principal, after=after)

    house.sessions.events = events  # type: ignore[method-assign]
    return followed


def parsed(answer: bytes) -> tuple[int, dict[str, str], bytes]:
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return int(first.split()[1]), headers, body


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"hello\r\n\r\n",
        b"GET /healthz HTTP/9.9\r\n\r\n",
        b"GET /healthz\r\n\r\n",
        b"GET  HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost : localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"GET /h\xc3\xa9 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        (
            b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n"
            b"Content-Length: 2\r\n\r\nab"
        ),
        (
            b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        ),
        b"POST /v1/sessions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_no_http_is_400_in_the_one_error_shape(house: House, garbage: bytes) -> None:
    async def story() -> None:
        async with http_server(house) as server:
            status, headers, body = parsed(await say(server, garbage))
            assert status == 400
            assert headers["content-type"] == "application/json"
            assert json.loads(body)["error"]["reason"] == "INVALID_REQUEST"

    run(story)


@pytest.mark.parametrize(
    "headers",
    [b"X-Long: " + b"x" * HEADER_BYTES_MAX + b"\r\n", b"X-Many: 1\r\n" * (HEADERS_MAX + 1)],
)
def test_headers_have_a_limit(house: House, headers: bytes) -> None:
    async def story() -> None:
        async with http_server(house) as server:
            request = b"GET /healthz HTTP/1.1\r\n" + HOST + headers + b"\r\n"
            status, _, body = parsed(await say(server, request))
            assert status == 400
            assert "headers" in json.loads(body)["error"]["message"]

    run(story)


def test_a_path_without_end_has_a_limit(house: House) -> None:
    async def story() -> None:
        async with http_server(house) as server:
            status, _, _ = parsed(await say(server, b"GET /" + b"x" * HEADER_BYTES_MAX))
            assert status == 400

    run(story)


def test_a_head_request_has_the_headers_and_no_body(house: House) -> None:
    async def story() -> None:
        async with http_server(house) as server:
            request = b"HEAD /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
            status, headers, body = parsed(await say(server, request))
            assert (status, headers["content-length"], body) == (200, "3", b"")

    run(story)


def test_a_body_that_is_stated_too_large_is_refused_before_it_comes(house: House) -> None:
    async def story() -> None:
        async with http_server(house) as server:
            request = (
                b"POST /v1/sessions HTTP/1.1\r\n"
                + HOST
                + b"Content-Type: application/json\r\nContent-Length: 10001\r\n"
                + b"Expect: 100-continue\r\n\r\n"
            )
            answer = await say(server, request)
            assert not answer.startswith(b"HTTP/1.1 100")
            status, headers, _ = parsed(answer)
            assert (status, headers["connection"]) == (413, "close")

    run(story)


def test_a_chunked_body_without_end_is_cut_at_the_limit(house: House) -> None:
    async def story() -> None:
        async with http_server(house) as server:
            head = (
                b"POST /v1/sessions HTTP/1.1\r\n"
                + HOST
                + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            chunk = b"1000\r\n" + b"x" * 0x1000 + b"\r\n"
            status, _, _ = parsed(await say(server, head, *[chunk] * 4, until_closed=False))
            assert status == 413

    run(story)


def test_a_connection_serves_many_requests_also_pipelined(house: House) -> None:
    async def story() -> None:
        async with http_server(house) as server:
            one = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
            last = b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
            answer = await say(server, one + one + last)
            assert answer.count(b"HTTP/1.1 200 OK") == 3

    run(story)


def test_an_upgrade_that_java_asks_for_is_ignored_and_the_body_read(house: House) -> None:
    body = b'{"workflow":"w"}'

    async def story() -> None:
        async with http_server(house) as server:
            request = (
                b"POST /v1/sessions HTTP/1.1\r\n"
                + HOST
                + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                + b"HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n"
                + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            )
            status, _, _ = parsed(await say(server, request + body, until_closed=False))
            assert status == 201
            status, _, _ = parsed(await say(server, request, body, until_closed=False))
            assert status == 201
            get = b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
            answer = await say(server, request, body, get)
            assert answer.count(b"HTTP/1.1 201") == answer.count(b"HTTP/1.1 200") == 1
            assert len(house.sessions.kept) == 3

    run(story)


def test_a_websocket_is_refused_as_what_it_is_not(house: House) -> None:
    async def story() -> None:
        async with http_server(house) as server:
            request = (
                b"GET /v1/sessions HTTP/1.1\r\n"
                + HOST
                + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                + b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
            status, _, _ = parsed(await say(server, request, until_closed=False))
            assert status == 200

    run(story)


def test_a_client_that_leaves_in_the_middle_of_its_body_leaves_no_trace(house: House) -> None:
    async def story() -> None:
        async with http_server(house) as server:
            host, _, port = server.address.rpartition(":")
            _, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"POST /v1/sessions HTTP/1.1\r\n" + HOST + b"Content-Length: 100\r\n\r\n{")
            await writer.drain()
            writer.close()
            await writer.wait_closed()
            status, _, _ = parsed(
                await say(server, b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n", until_closed=False)
            )
            assert status == 200
            assert not house.sessions.kept

    run(story)


def test_the_server_ends_with_an_event_stream_open(house: House) -> None:
    async def story() -> None:
        async with http_server(house) as server:
            opened = b'{"workflow":"w"}'
            request = (
                b"POST /v1/sessions HTTP/1.1\r\n"
                + HOST
                + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(opened)
            )
            answer = await say(server, request + opened, until_closed=False)
            place = parsed(answer)[1]["location"].encode()
            streaming = watch_events(house)
            stream = asyncio.create_task(
                say(server, b"GET %s/events HTTP/1.1\r\n" % place + HOST + b"\r\n")
            )
            await asyncio.wait_for(streaming.wait(), 15)
            server.drain()
            answer = await stream
            assert answer.endswith(b"0\r\n\r\n"), "the stream ended as a whole answer"

    run(story)


def test_a_request_under_way_is_told_that_the_server_stops(house: House) -> None:
    async def story() -> None:
        started = asyncio.Event()

        async def forever(*_: object, **__: object) -> tuple[Opened, bool]:
            started.set()
            await asyncio.Event().wait()
            raise AssertionError("not reached")

        house.sessions.open = forever  # type: ignore[method-assign]
        async with http_server(house) as server:
            body = b'{"workflow":"w"}'
            request = (
                b"POST /v1/sessions HTTP/1.1\r\n"
                + HOST
                + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            )
            asking = asyncio.create_task(say(server, request + body))
            await started.wait()
            server.drain()
            server.stop()
            status, headers, answer = parsed(await asking)
            assert (status, headers["retry-after"]) == (503, "1")
            assert json.loads(answer)["error"]["side_effect"] == "UNKNOWN"

    run(story)


@pytest.mark.parametrize(
    "piece",
    [
        b"",
        b"GET /healthz HTTP/1.1\r\n",
        b"POST /v1/sessions HTTP/1.1\r\n" + HOST + b"Content-Length: 9\r\n\r\n{",
    ],
)
def test_a_request_that_does_not_come_to_its_end_is_cut(
    house: House, monkeypatch: pytest.MonkeyPatch, piece: bytes
) -> None:
    monkeypatch.setattr(Protocol, "request_s", 0.1)

    async def story() -> None:
        async with http_server(house) as server:
            status, _, body = parsed(await say(server, piece))
            assert status == 400
            assert "within" in json.loads(body)["error"]["message"]

    run(story)


def test_a_slow_answer_is_not_cut_when_its_request_came_whole(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Protocol, "request_s", 0.5)

    async def story() -> None:
        async with http_server(house) as server:
            session_id = (await house.sessions.open(OpenSession(workflow="w"), LOCAL))[0].session_id
            request = b"GET /v1/sessions/%s/events HTTP/1.1\r\n" % session_id.encode()
            rest = HOST + b"Connection: close\r\n\r\n"
            stream = asyncio.create_task(say(server, request + rest))
            while house.sessions.kept[session_id].events == []:
                await asyncio.sleep(0.8)
                house.sessions.happen(session_id, "Ended")
            assert b"event: Ended" in await stream

    run(story)


def test_both_bindings_speak_tls(house: House, tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)

    async def story() -> None:
        chosen = settings(tls={"cert_file": str(cert), "key_file": str(key)})
        async with http_server(house, chosen) as server, grpc_server(house, chosen) as twin:
            assert server.url.startswith("https://")
            trust = ssl.create_default_context(cafile=str(cert))
            host, _, port = server.address.rpartition(":")
            reader, writer = await asyncio.open_connection(
                host, int(port), ssl=trust, server_hostname="localhost"
            )
            writer.write(b"GET /healthz HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 200 OK")
            writer.close()
            credentials = grpc.ssl_channel_credentials(cert.read_bytes())
            target = f"localhost:{twin.address.rpartition(':')[2]}"
            async with grpc.aio.secure_channel(target, credentials) as channel:
                health = health_pb2_grpc.HealthStub(channel)
                answer = await health.Check(health_pb2.HealthCheckRequest())
                assert answer.status == health_pb2.HealthCheckResponse.SERVING

    run(story)


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "cert.pem", folder / "key.pem"
    paths[0].write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths


def test_a_taken_port_is_named_with_what_to_do(house: House) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{port}"):
            bound_socket(Bind("127.0.0.1", port))
