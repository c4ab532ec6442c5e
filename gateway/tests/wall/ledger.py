"""A component in a process of its own that writes down everything it was asked and really did.

`python -m gateway.tests.wall.ledger NAME LOG PORT TIMEOUT_MS` serves on loopback and prints its
URL; its card gives a call so long. Its log is the truth of the wall: one JSON object a line,
written before the answer. What it did under a key it finds there again after a kill. It imports
nothing of ours.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORK_S = 0.03
PADDING = "x" * 3_000
ACTIONS = [
    {"name": "once", "effect": "WRITE", "idempotency": "NONE"},
    {"name": "keyed", "effect": "WRITE", "idempotency": "BY_KEY"},
    {"name": "look", "effect": "READ", "idempotency": "NATURAL"},
]


class Book:
    """The log, and what is known from it."""

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        self._done: set[str] = set()
        self._running: set[str] = set()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        with open(path, encoding="utf-8") as lines:
            for line in lines:
                said = json.loads(line)
                if said["what"] == "did":
                    self._done.add(said["call_id"])

    def write(self, what: str, context: dict[str, Any], action: str) -> None:
        line = {
            "what": what,
            "call_id": context["call_id"],
            "attempt": context["attempt"],
            "action": action,
        }
        os.write(self._file, json.dumps(line).encode() + b"\n")

    def begins(self, call_id: str) -> str:
        """ "" to work, else why not."""
        with self._lock:
            if call_id in self._done:
                return "done"
            if call_id in self._running:
                return "running"
            self._running.add(call_id)
            return ""

    def ends(self, call_id: str, context: dict[str, Any], action: str) -> None:
        with self._lock:
            self.write("did", context, action)
            self._done.add(call_id)
            self._running.discard(call_id)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    book: Book
    card: dict[str, Any]

    def do_GET(self) -> None:
        if self.path.endswith("/component"):
            self._say(200, self.card)
        else:
            self._say(200, {"status": "SERVING"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))) or b"{}")
        if not self.path.endswith("/execute"):
            self._say(200, {"state": "UNKNOWN_CALL"})
            return
        context, action = body["context"], body["action"]
        self.book.write("asked", context, action)
        call_id = context["call_id"]
        if action == "keyed":
            why = self.book.begins(call_id)
            if why == "running":
                self._say(409, {"error": IN_PROGRESS})
                return
            if not why:
                threading.Event().wait(WORK_S)
                self.book.ends(call_id, context, action)
        else:
            threading.Event().wait(WORK_S)
            self.book.write("did", context, action)
        effect = "NONE" if action == "look" else "PERFORMED"
        self._say(200, {"output": {"done": 1, "padding": PADDING}, "side_effect": effect})

    def _say(self, status: int, answer: dict[str, Any]) -> None:
        data = json.dumps(answer).encode()
        try:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            self.close_connection = True  # nobody listens any more

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


IN_PROGRESS = {
    "code": "ABORTED",
    "reason": "CALL_IN_PROGRESS",
    "message": "the first one still runs",
    "retryable": True,
    "side_effect": "NONE",
}


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that was cut is what the wall is about."""


def main() -> None:
    name, log, port, timeout_ms = sys.argv[1:]
    Handler.book = Book(log)
    Handler.card = {
        "name": name,
        "version": "1.0.0",
        "acp_versions": ["1.0"],
        "roles": ["EXECUTOR"],
        "actions": [{**action, "timeout_ms": int(timeout_ms)} for action in ACTIONS],
        "limits": {"max_concurrency": 8},
    }
    server = Server(("127.0.0.1", int(port)), Handler)
    sys.stdout.write(f"http://127.0.0.1:{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
