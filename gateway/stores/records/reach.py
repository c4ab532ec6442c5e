"""Asking the records from another process: the child's own paths, and SQL that only reads.

Every wait is bounded: a child that hangs costs its asker the timeout and nothing else. Blocks; call
it from a thread of its own.
"""

import http.client
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from gateway.stores.records.endpoint import Endpoint, told
from gateway.stores.records.feed_status import FeedingStatus
from gateway.stores.records.guard import one_statement
from gateway.stores.records.questions.question import Question, Row, rows_of
from gateway.stores.records.store import DATABASE, client_of

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

TIMEOUT_S: Final = 5.0
MEMORY_BYTES_MAX: Final = 2 << 30
RESULT_BYTES_MAX: Final = 32 << 20
"""Of one question: the answer stands in the gateway's memory once."""

GRACE_S: Final = 3
"""The engine stops by itself at its limit; only one that hangs is given up."""


class Column(msgspec.Struct, frozen=True):
    """Its name, and ClickHouse's type."""

    name: str
    type: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """`data`: rows as arrays of values, in the order of `meta`; JSON as the engine wrote it."""

    meta: tuple[Column, ...]
    data: msgspec.Raw
    rows: int


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one question may cost."""

    timeout_ms: int = 10_000
    rows: int = 10_000


class Unreachable(Exception):
    """Nobody answers there, or not in time."""


class QueryFailed(Exception):
    """The engine says no: a mistake in the SQL, or a limit. `code`: ClickHouse's number."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def ask(endpoint: Endpoint, path: str, *, timeout_s: float = TIMEOUT_S) -> bytes:
    """One of the child's own paths. Raises Unreachable."""
    connection = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=timeout_s)
    try:
        headers = {"X-ClickHouse-Key": endpoint.password}
        connection.request("POST", f"/acp/{path}", headers=headers)
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as problem:
        raise Unreachable(f"the records do not answer: {problem}") from problem
    finally:
        connection.close()
    if answer.status != http.HTTPStatus.OK:
        raise Unreachable(f"the records refuse: {body[:200].decode(errors='replace')}")
    return body


def look(endpoint: Endpoint, *, timeout_s: float) -> FeedingStatus | None:
    """How the feed stands; None where nobody answers in time."""
    try:
        return msgspec.json.decode(ask(endpoint, "status", timeout_s=timeout_s), type=FeedingStatus)
    except (Unreachable, msgspec.DecodeError):
        return None


class Reader:
    """Questions to one endpoint, read-only and within limits."""

    def __init__(self, endpoint: Endpoint, *, timeout_ms_max: int) -> None:
        self._endpoint = endpoint
        self._timeout_s = timeout_ms_max // 1000 + GRACE_S
        self._client: Client | None = None

    def rows(self, question: Question[Row], limits: Limits) -> list[Row]:
        """What one of our own questions gives. Raises QueryFailed, Unreachable."""
        answer = self.query(question.sql, limits, values=question.values)
        return rows_of(answer, question.row)

    def query(
        self, sql: str, limits: Limits, *, values: Mapping[str, str | int] | None = None
    ) -> Answer:
        """The whole answer, `values` bound to the `{name:Type}` of the statement. Raises
        QueryFailed, Unreachable."""
        from clickhouse_connect.driver.exceptions import ClickHouseError

        settings = {
            "readonly": "1",
            "max_execution_time": str(limits.timeout_ms / 1000),
            "max_result_rows": str(limits.rows),
            "max_result_bytes": str(RESULT_BYTES_MAX),
            "result_overflow_mode": "throw",
            "max_memory_usage": str(MEMORY_BYTES_MAX),
            "output_format_json_quote_denormals": "1",
        }
        try:
            client = self._connected()
            text = client.raw_query(
                one_statement(sql),
                parameters=dict(values or {}),
                settings=settings,
                fmt="JSONCompact",
            )
        except OSError as problem:
            self.close()
            raise Unreachable(f"the records do not answer: {problem}") from problem
        except ClickHouseError as problem:
            self.close()
            code = getattr(problem, "code", None)
            if not code or _is_empty(str(problem)):
                raise Unreachable(f"the records do not answer: {told(problem)}") from problem
            raise QueryFailed(_words(str(problem)), code) from problem
        return msgspec.json.decode(text, type=Answer)

    def close(self) -> None:
        """Let the connections go, once nobody uses them any more: others may be asking now."""
        self._client = None

    def _connected(self) -> "Client":
        if self._client is None:
            self._client = client_of(self._endpoint, timeout_s=self._timeout_s)
        return self._client


def _is_empty(message: str) -> bool:
    """A cluster that came back without our tables: no fault of whoever asks, and made anew soon."""
    return f"Database {DATABASE} does not exist" in message


def _words(message: str) -> str:
    """What the engine said, without the client's frame and the address it asked."""
    start = message.find("DB::Exception: ")
    said = message[start + len("DB::Exception: ") :] if start >= 0 else message
    return said.split(" (for url ")[0].strip()
