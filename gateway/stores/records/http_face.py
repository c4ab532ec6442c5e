"""ClickHouse's HTTP protocol on loopback, in front of whatever runs statements.

As much of it as ClickHouse's clients use: the query in the URL, the body, or both; settings and
parameters in the URL; errors with their code in a header. A result leaves whole or not at all.
Whoever has not the key gets nothing: other users of this machine reach loopback too.
"""

import base64
import gzip
import hmac
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import zstandard

from gateway.stores.records.embedded import EngineError

BODY_BYTES_MAX: Final = 256 << 20
"""An insert of that size takes seconds; whoever sends more sends it in parts."""

AT_ONCE: Final = 16
"""Statements that run at once; the next one waits for its turn."""

IDLE_S: Final = 600.0

# What the protocol itself says in the URL; everything else there is a setting.
_PROTOCOL: Final = frozenset(
    {
        *("query", "database", "default_format", "session_id", "session_timeout", "session_check"),
        *("query_id", "user", "password", "compress", "decompress", "enable_http_compression"),
        *("client_protocol_version", "wait_end_of_query", "buffer_size", "quota_key", "role"),
        *("send_progress_in_http_headers", "http_headers_progress_interval_ms"),
        *("cancel_http_readonly_queries_on_client_close", "http_response_buffer_size"),
    }
)
_PARAMETER: Final = "param_"
_NO_SUCH_USER: Final = 516
_CODES: Final[Mapping[int, HTTPStatus]] = {
    62: HTTPStatus.BAD_REQUEST,
    60: HTTPStatus.NOT_FOUND,
    81: HTTPStatus.NOT_FOUND,
    159: HTTPStatus.REQUEST_TIMEOUT,
    164: HTTPStatus.INTERNAL_SERVER_ERROR,
}


class Statement(NamedTuple):
    """A request as the engine takes it."""

    text: bytes
    settings: Mapping[str, str]
    database: str
    form: str


Run = Callable[[Statement], bytes]
"""Runs a statement; raises EngineError."""

Own = Callable[[str, bytes], bytes | None]
"""Answers our own paths below `/acp/`, as JSON; None: there is no such path."""


class HttpFace:
    """The server. `serve` blocks; `close` from another thread ends it."""

    def __init__(self, run: Run, *, key: str, own: Own, port: int = 0) -> None:
        self._run, self._own = run, own
        self._credentials = base64.b64encode(f"default:{key}".encode()).decode()
        self._key = key
        self._turns = threading.BoundedSemaphore(AT_ONCE)
        self._server = _Server(self, port)
        self.port: Final = int(self._server.server_address[1])

    def serve(self) -> None:
        """Answer until `close`."""
        self._server.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        """Stop listening; requests that run may end or die with the process."""
        self._server.shutdown()
        self._server.server_close()

    def is_known(self, authorization: str, key: str) -> bool:
        """Whether a request shows the key, in one of the two ways of ClickHouse."""
        basic = authorization.removeprefix("Basic ")
        return hmac.compare_digest(key.encode(), self._key.encode()) or hmac.compare_digest(
            basic.encode(), self._credentials.encode()
        )

    def answer(self, path: str, body: bytes, *, form: str) -> tuple[bytes, str]:
        """The result of one request, and its type. Raises EngineError."""
        place = urlsplit(path)
        if place.path.startswith("/acp/"):
            found = self._own(place.path.removeprefix("/acp/"), body)
            if found is None:
                raise EngineError(f"Code: 60. no such path: {place.path}")
            return found, "application/json"
        said = dict(parse_qsl(place.query, keep_blank_values=True))
        statement = _statement(said, body, form=form)
        if not statement.text.strip():
            return b"Ok.\n", "text/plain"
        with self._turns:
            return self._run(statement), "application/octet-stream"


def _statement(said: Mapping[str, str], body: bytes, *, form: str) -> Statement:
    settings = {
        name: value
        for name, value in said.items()
        if name not in _PROTOCOL and not name.startswith(_PARAMETER)
    }
    parameters = {name: value for name, value in said.items() if name.startswith(_PARAMETER)}
    query = said.get("query", "").encode()
    text = query + b"\n" + body if query and body else query or body
    return Statement(
        text=text,
        settings={**parameters, **settings},
        database=said.get("database", ""),
        form=said.get("default_format", form),
    )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, face: HttpFace, port: int) -> None:
        self.face = face
        super().__init__(("127.0.0.1", port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    """One connection; requests follow each other on it."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE_S
    # One segment per answer: header and body apart would wait for each other's ACK.
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    @property
    def _face(self) -> HttpFace:
        assert isinstance(self.server, _Server)
        return self.server.face

    def do_GET(self) -> None:
        if urlsplit(self.path).path in ("/ping", "/replicas_status"):
            self._send(HTTPStatus.OK, b"Ok.\n", headers={})
            return
        self.do_POST()

    def do_POST(self) -> None:
        known = self._face.is_known(
            self.headers.get("Authorization", ""), self.headers.get("X-ClickHouse-Key", "")
        )
        try:
            body = self._body()
        except (ValueError, zstandard.ZstdError, OSError) as problem:
            self._fail(1001, f"Code: 1001. {problem}")
            return
        if body is None:
            return
        if not known:
            self._fail(_NO_SUCH_USER, "Authentication failed: the key is not right")
            return
        form = self.headers.get("X-ClickHouse-Format", "")
        try:
            result, kind = self._face.answer(self.path, body, form=form)
        except EngineError as problem:
            self._fail(problem.code, str(problem))
            return
        self._send(HTTPStatus.OK, result, headers={"Content-Type": kind})

    def _body(self) -> bytes | None:
        """The whole body, unpacked; None after refusing it."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            data = self._chunks()
        else:
            size = int(self.headers.get("Content-Length") or 0)
            data = self.rfile.read(size) if size <= BODY_BYTES_MAX else None
        if data is None:
            self.close_connection = True
            self._fail(1001, f"Code: 1001. a body has at most {BODY_BYTES_MAX} bytes")
            return None
        return unpacked(data, self.headers.get("Content-Encoding", ""))

    def _chunks(self) -> bytes | None:
        parts, total = [], 0
        while size := int(self.rfile.readline().split(b";")[0] or b"0", 16):
            total += size
            if total > BODY_BYTES_MAX:
                return None
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _fail(self, code: int, message: str) -> None:
        status = _CODES.get(code, HTTPStatus.INTERNAL_SERVER_ERROR)
        if code == _NO_SUCH_USER:
            status = HTTPStatus.UNAUTHORIZED
        text = message if message.startswith("Code: ") else f"Code: {code}. {message}"
        headers = {"X-ClickHouse-Exception-Code": str(code), "Content-Type": "text/plain"}
        self._send(status, text.encode() + b"\n", headers=headers)

    def _send(self, status: HTTPStatus, body: bytes, *, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("X-ClickHouse-Summary", "{}")
        self.send_header("X-ClickHouse-Timezone", "UTC")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Statements may hold what nobody should find in a log."""


def unpacked(data: bytes, encoding: str) -> bytes:
    """A body as it was before it was packed. Raises ValueError for a packing not known here."""
    if encoding in ("", "identity"):
        return data
    if encoding == "gzip":
        return gzip.decompress(data)
    if encoding == "zstd":
        return zstandard.ZstdDecompressor().decompressobj().decompress(data)
    if encoding == "lz4":
        from lz4 import frame  # comes with the client that packs so

        return bytes(frame.decompress(data))
    raise ValueError(f"content-encoding {encoding!r} is not known here: gzip, zstd or lz4")
