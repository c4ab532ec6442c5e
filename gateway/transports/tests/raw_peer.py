"""Peers for tests: raw asyncio servers that behave, or misbehave, exactly as a test says."""

import asyncio
import contextlib
import datetime
import ipaddress
import re
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from acp_spec.model.context import Context
from acp_spec.model.enums import Effect, StepRole
from acp_spec.model.payload import payload
from gateway.config.networks import LOOPBACK_NETWORKS
from gateway.runtime.connection import Answer, Connection, Outgoing
from gateway.transports.address_guard import AddressGuard

T = TypeVar("T")
PATIENT_MS = 15_000
"""The time of a call or question that is not about time; a busy machine pauses for seconds."""
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
GUARD = AddressGuard(LOOPBACK_NETWORKS)


def run(story: Coroutine[Any, Any, T]) -> T:
    """Run a test's story on the loop the gateway uses; nothing takes longer than 20 s."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(asyncio.wait_for(story, 20))


@dataclass
class Peer:
    """One connection that a peer accepted."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def request(self) -> bytes | None:
        """The next whole request, head and body; None at the end of the connection."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        found = _LENGTH.search(head)
        return head + (await self.reader.readexactly(int(found[1])) if found else b"")

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        with contextlib.suppress(ConnectionError):
            await self.writer.drain()

    def slam(self) -> None:
        """Close with RST instead of FIN."""
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Behaviour = Callable[[Peer], Awaitable[None]]


@dataclass
class Served:
    """A running peer: where it is and what it saw."""

    port: int = 0
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)


@contextlib.asynccontextmanager
async def peer(
    behaviour: Behaviour, *, tls: ssl.SSLContext | None = None, port: int = 0
) -> AsyncIterator[Served]:
    """A server on a free port (or that one); each connection runs `behaviour`, then is closed."""
    served = Served()
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.connections += 1
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await behaviour(Peer(reader, writer))
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", port, ssl=tls)
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def http(
    body: bytes, *, status: str = "200 OK", kind: str = "application/json", extra: str = ""
) -> bytes:
    """A whole response."""
    return (
        f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{extra}\r\n"
    ).encode() + body


def answering(response: bytes) -> Behaviour:
    """Answer every request of the connection with these bytes."""

    async def behave(peer: Peer) -> None:
        while await peer.request() is not None:
            await peer.say(response)

    return behave


def context(
    call_id: str = "call-1",
    *,
    attempt: int = 1,
    timeout_ms: int = PATIENT_MS,
    traceparent: str = "",
) -> Context:
    return Context(
        session_id="S",
        lineage_id="S.l",
        call_id=call_id,
        attempt=attempt,
        body_digest="d",
        timeout_ms=timeout_ms,
        traceparent=traceparent,
    )


def outgoing(
    ctx: Context | None = None,
    *,
    body: bytes = b'{"action":"a","arguments":{"n":9007199254740993}}',
    role: StepRole = StepRole.EXECUTE,
    effect: Effect = Effect.WRITE,
    late_grace_ms: int = 1_000,
) -> Outgoing:
    return Outgoing(
        context=ctx or context(),
        role=role,
        effect=effect,
        body=payload(body),
        late_grace_ms=late_grace_ms,
    )


class Answers:
    """A sink that keeps what it got and lets a test wait for it."""

    def __init__(self) -> None:
        self.got: list[tuple[Answer, bool]] = []
        self._came = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    def __call__(self, answer: Answer, late: bool) -> None:
        self.got.append((answer, late))
        task = asyncio.get_running_loop().create_task(self._notify())
        self._tasks.add(task)

    async def _notify(self) -> None:
        async with self._came:
            self._came.notify_all()

    async def wait(self, count: int = 1) -> Answer:
        """The answer number `count`, once it is there."""
        async with self._came:
            await self._came.wait_for(lambda: len(self.got) >= count)
        return self.got[count - 1][0]


async def one_call(connection: Connection, call: Outgoing | None = None) -> Answer:
    """Send and wait for the one answer."""
    answers = Answers()
    connection.send(call or outgoing(), answers)
    assert not answers.got, "a sink is never called inside send"
    return await answers.wait()


def certificate(folder: Path, *names: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A self-signed certificate for these names: the server's context, and one that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.SubjectAlternativeName([_name(n) for n in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert_file, key_file)
    return server, ssl.create_default_context(cafile=str(cert_file))


def _name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)
