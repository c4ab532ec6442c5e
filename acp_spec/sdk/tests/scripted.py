"""A server that says exactly the bytes it was told to, one script entry per connection.

For what no well-behaved server does: cut answers, HTML from a proxy, silence. Real sockets, one
thread.
"""

import contextlib
import functools
import socket
import threading
from collections.abc import Iterator
from typing import Final

from acp_spec.sdk.kept_ports import KeptPorts

NOBODYS: Final = KeptPorts()
SAYS_WITHIN_S: Final = 10.0


class Scripted:
    """`requests` are the raw requests received; an entry of None closes without an answer."""

    def __init__(self, answers: list[bytes | None]) -> None:
        self._answers = answers
        self.requests: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._listener.close()
        self._thread.join(5)

    def _serve(self) -> None:
        for answer in self._answers:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(SAYS_WITHIN_S)
                with contextlib.suppress(OSError):
                    self.requests.append(_request(connection))
                    if answer is not None:
                        connection.sendall(answer)


@contextlib.contextmanager
def scripted(*answers: bytes | None) -> Iterator[Scripted]:
    server = Scripted(list(answers))
    try:
        yield server
    finally:
        server.close()


@functools.cache
def closed_port() -> int:
    """A port of loopback where nobody listens, and nobody will."""
    return NOBODYS.take()


def response(
    body: bytes, *, status: str = "200 OK", kind: str = "application/json", headers: str = ""
) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n"
        f"connection: close\r\n{headers}\r\n"
    )
    return head.encode() + body


def unending(body: bytes, *, kind: str) -> bytes:
    """An answer without a length: it ends when the connection does."""
    return f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n".encode() + body


def _request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return data
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body
