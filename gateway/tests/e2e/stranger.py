"""A component as somebody writes it who read only the protocol's pages: http.server, nothing else.

It must not import anything of ours. Answers are functions from the request's text to the
response's text, so that payloads can be kept as they are written; what was asked is recorded.
"""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[str], str | tuple[int, str]]
_DECODER = json.JSONDecoder()
_SPACE = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: `body` is its text, "" where there is none."""

    path: str
    headers: Mapping[str, str]
    body: str

    @property
    def context(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)["context"]
        return found


@dataclass(slots=True)
class Stranger:
    """`answers`: the last word of a path below `acp/v1/` to the function that answers it."""

    card: dict[str, Any]
    answers: Mapping[str, Answer]
    asked: list[Asked] = field(default_factory=list)
    url: str = ""

    def bodies(self, word: str) -> list[str]:
        """The bodies of all requests whose path ends with `word`, in the order of arrival."""
        return [one.body for one in self.asked if one.path.rpartition("/")[2] == word]

    def answer(self, asked: Asked) -> tuple[int, str]:
        self.asked.append(asked)
        word = asked.path.rpartition("/")[2]
        if asked.path == "/acp/v1/component":
            return 200, json.dumps(self.card)
        if asked.path == "/acp/v1/health":
            return 200, '{"status": "SERVING"}'
        if word not in self.answers:
            missing = {"code": "UNIMPLEMENTED", "reason": "UNIMPLEMENTED", "message": word}
            return 404, json.dumps({"error": missing})
        answered = self.answers[word](asked.body)
        return (200, answered) if isinstance(answered, str) else answered


def card(
    name: str,
    *roles: str,
    actions: Mapping[str, Mapping[str, object]] | None = None,
) -> dict[str, Any]:
    """A card with the fields that must be there, and the actions by name."""
    listed = [{"name": action, **fields} for action, fields in (actions or {}).items()]
    return {
        "name": name,
        "version": "1.0.0",
        "acp_versions": ["1.0"],
        "roles": list(roles),
        "actions": listed,
        "limits": {"max_concurrency": 16},
    }


READ = {"effect": "READ", "idempotency": "NATURAL"}


def member(text: str, name: str) -> str:
    """The text of one member of a JSON object, exactly as it is written; "" where it is absent."""
    at = _skip(text, 0)
    assert text[at] == "{", "an object begins with a brace"
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)
        _, end = _DECODER.raw_decode(text, at)
        if key == name:
            return text[at:end]
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at
    return ""


def elements(text: str) -> list[str]:
    """The texts of an array's elements, exactly as they are written."""
    found: list[str] = []
    at = _skip(text, 1)
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        found.append(text[at:end])
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at
    return found


def _skip(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at


@contextmanager
def serving(stranger: Stranger) -> Iterator[Stranger]:
    """Serve on a free port of loopback until the block ends, which also ends its connections."""
    open_connections: set[socket.socket] = set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            open_connections.add(self.connection)

        def finish(self) -> None:
            open_connections.discard(self.connection)
            super().finish()

        def do_GET(self) -> None:
            self._say("")

        def do_POST(self) -> None:
            length = int(self.headers.get("content-length", "0"))
            self._say(self.rfile.read(length).decode())

        def _say(self, body: str) -> None:
            status, text = stranger.answer(Asked(self.path, dict(self.headers.items()), body))
            data = text.encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    stranger.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield stranger
    finally:
        server.shutdown()
        server.server_close()
        for connection in tuple(open_connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        thread.join()
