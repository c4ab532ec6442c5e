"""What an attacker puts up: a trap that counts who comes, and an HTTP peer that answers anything.

Both listen where they are told, so that an allowed address and a forbidden one are both at hand on
one machine: all of 127.0.0.0/8 is.
"""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc

ALLOWED = "127.0.0.2"
FORBIDDEN = "127.0.0.1"
SAYS_WITHIN_S = 5.0


@dataclass(slots=True)
class Trap:
    """A port that nobody may reach; `visits` is what was said there first, per connection."""

    port: int
    visits: list[bytearray] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{FORBIDDEN}:{self.port}"


@contextmanager
def trap() -> Iterator[Trap]:
    """Listen on one port of the forbidden addresses, IPv4 and (where there is one) IPv6."""
    first = socket.create_server((FORBIDDEN, 0))
    listening = [first]
    laid = Trap(first.getsockname()[1])
    with contextlib.suppress(OSError):
        listening.append(socket.create_server(("::1", laid.port), family=socket.AF_INET6))

    def watch(one: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = one.accept()
                said = bytearray()  # whoever comes and says nothing has come, too
                laid.visits.append(said)
                with peer:
                    peer.settimeout(SAYS_WITHIN_S)
                    with contextlib.suppress(OSError):
                        said += peer.recv(200)

    threads = [threading.Thread(target=watch, args=(one,), daemon=True) for one in listening]
    for thread in threads:
        thread.start()
    try:
        yield laid
    finally:
        for one in listening:
            one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in threads:
            thread.join(5)


@dataclass(frozen=True, slots=True)
class Said:
    """One answer of a peer."""

    body: bytes = b"{}"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Heard:
    """One request that reached a peer."""

    path: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[[Heard], Said]


@dataclass(slots=True)
class Peer:
    """An HTTP server that answers as it is told."""

    host: str
    port: int
    heard: list[Heard] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"


@contextmanager
def peer(answer: Answer, host: str = ALLOWED, port: int = 0) -> Iterator[Peer]:
    """Serve until the block ends; each answer closes its connection, so the next one is dialled."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._say(b"")

        def do_POST(self) -> None:
            self._say(self.rfile.read(int(self.headers.get("content-length", "0"))))

        def _say(self, body: bytes) -> None:
            heard = Heard(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            one.heard.append(heard)
            said = answer(heard)
            headers = {"content-type": "application/json", **said.headers}
            self.send_response(said.status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(said.body)))
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(said.body)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer((host, port), Handler)
    server.daemon_threads = True
    one = Peer(host, server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield one
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


@contextmanager
def grpc_peer(answers: Mapping[str, bytes], compression: grpc.Compression) -> Iterator[int]:
    """A gRPC server on a free port of the forbidden address; method path -> message bytes."""

    class Handler(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc ships no types
        def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
            found = answers.get(details.method)
            if found is None:
                return None
            return grpc.unary_unary_rpc_method_handler(lambda request, context: found)

    options = (("grpc.max_send_message_length", -1),)
    pool = futures.ThreadPoolExecutor(4)
    server = grpc.server(pool, (Handler(),), options=options, compression=compression)
    port: int = server.add_insecure_port(f"{FORBIDDEN}:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(0).wait(5)
        pool.shutdown()
