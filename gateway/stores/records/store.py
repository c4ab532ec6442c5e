"""The records' tables over ClickHouse's HTTP protocol: the one place that speaks to them.

The same statements go to the embedded engine behind its loopback port and to a real cluster.
Whatever the client raises leaves as `RecordsDown` (try again later) or `RowsRefused` (the data is
at fault). Blocks: call it from a thread.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from gateway.stores.records.embedded import among, quoted
from gateway.stores.records.endpoint import Endpoint, told

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clickhouse_connect.driver.client import Client

DATABASE: Final = "acp"

APPEND_ONLY: Final = (
    *("calls", "decisions", "llm_calls", "observations", "reflections"),
    *("feedback", "claims", "gaps"),
)
REPLACED: Final = ("rewards", "sessions")
TABLES: Final = (*APPEND_ONLY, *REPLACED)
"""In the order in which a session is inserted: its own row last, it vouches for the rest."""

_REFUSED_CODES: Final = frozenset({6, 26, 27, 38, 41, 53, 69, 70, 72, 117, 130, 131, 321, 349})
"""Of ClickHouse: values that cannot be read as the column's type."""

_LOOK_AGAIN_S: Final = 0.01
_LOOK_AGAIN_MAX_S: Final = 0.2
"""Who looks all the time takes the core from the deletion that is waited for."""

_ONE_THREAD: Final = "max_threads = 1"
"""For a look-up by key: starting more threads costs more than they do."""

_MERGES: Final = "merge_selector_base = 20"
"""Small parts are merged some twenty at once (instead of five): half the work of all merging."""

_EACH_PART: Final = "check_query_single_value_result = 0"

_INSERT: Final[Mapping[str, str]] = {
    "date_time_input_format": "best_effort",
    "input_format_skip_unknown_fields": "0",
    "async_insert": "0",
}


class RecordsDown(Exception):
    """The store is not there, is full, or is overloaded: nothing is lost, try again later."""


class RowsRefused(Exception):
    """The store cannot take these rows as they are; trying again gives the same."""


class Held(NamedTuple):
    """One row as the store has it."""

    table: str
    session_id: str
    key: int
    hash: int


class Digest(NamedTuple):
    """All rows of a session in one value: how many, and the sum of their hashes (64 bits)."""

    rows: int
    total: int


class RecordStore:
    """One connection's worth of statements; `close` when done.

    `writer`: whose log it is. Gateways may share a cluster, and their files have the same names.
    """

    def __init__(self, client: "Client", *, writer: str = "") -> None:
        self._client = client
        self._writer = writer

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    # ---- what the store has ----------------------------------------------------------------------

    def versions(self, ids: Sequence[str]) -> dict[str, int]:
        """The highest sequence of each session that is there; -1 for one that was erased."""
        where = among(ids)
        rows = self._rows(
            f"SELECT session_id, toInt64(sequence) FROM sessions WHERE {where}"
            f" UNION ALL SELECT session_id, toInt64(-1) FROM erased WHERE {where}"
            f" SETTINGS {_ONE_THREAD}"
        )
        found: dict[str, int] = {}
        for session_id, sequence in rows:
            name, number = str(session_id), _number(sequence)
            found[name] = -1 if number < 0 else max(number, found.get(name, number))
            if number < 0 or found[name] < 0:
                found[name] = -1
        return found

    def held(self, ids: Sequence[str]) -> list[Held]:
        """Every row of these sessions; a row that is there twice comes twice."""
        parts = (
            f"SELECT {quoted(table)}, session_id, toString(row_key), toString(row_hash)"
            f" FROM {_whole(table)} WHERE {among(ids)}"
            for table in TABLES
        )
        rows = self._rows(" UNION ALL ".join(parts))
        return [Held(str(t), str(s), _number(key), _number(says)) for t, s, key, says in rows]

    def digests(self, ids: Sequence[str]) -> dict[str, Digest]:
        """What `held` says of each session, in one value."""
        parts = (
            f"SELECT session_id, row_hash FROM {_whole(table)} WHERE {among(ids)}"
            for table in TABLES
        )
        rows = self._rows(
            "SELECT session_id, toString(count()), toString(sum(row_hash)) FROM"
            f" ({' UNION ALL '.join(parts)}) GROUP BY session_id"
        )
        return {str(name): Digest(_number(n), _number(total)) for name, n, total in rows}

    def count(self, table: str) -> int:
        """Rows of a table or view."""
        ((number,),) = self._rows(f"SELECT toString(count()) FROM {table}")
        return _number(number)

    # ---- changes ---------------------------------------------------------------------------------

    def insert(self, table: str, lines: Iterable[bytes], *, token: str) -> None:
        """All of it or nothing (by partition); the same token again changes nothing.

        Settings stand in the statement: those of a request would need a connection of their own.
        """
        settings = {**_INSERT, "insert_deduplication_token": f"{table}:{self._writer}:{token}"}
        said = ", ".join(f"{name} = {quoted(value)}" for name, value in settings.items())
        with _translated():
            self._client.raw_insert(
                f"{table} SETTINGS {said}", insert_block=b"".join(lines), fmt="JSONEachRow"
            )

    def delete_rows(self, table: str, rows: Iterable[Held]) -> None:
        """Take rows out of an append-only table, every copy of each."""
        pairs = ", ".join(f"({quoted(row.session_id)}, {row.key})" for row in rows)
        self._mutate(f"ALTER TABLE {table} DELETE WHERE (session_id, row_key) IN ({pairs})")

    def erase(self, ids: Sequence[str]) -> None:
        """Forget these sessions: first that they are erased, then all rows of theirs."""
        rows = b"".join(msgspec.json.encode({"session_id": one}) + b"\n" for one in ids)
        with _translated():
            self._client.raw_insert("erased", insert_block=rows, fmt="JSONEachRow")
        self._mutate(*(f"ALTER TABLE {table} DELETE WHERE {among(ids)}" for table in TABLES))

    def drop_damaged(self) -> int:
        """Take out parts that do not hold what they say; how many. What they held is missing then.

        A write that the disk broke off leaves such parts, and the engine does not always notice.
        """
        dropped = 0
        for table in (*TABLES, "erased"):
            checked = self._rows(f"CHECK TABLE {table} SETTINGS {_EACH_PART}")
            for part, is_whole, *_ in checked:
                if not _number(is_whole):
                    self._mutate(f"ALTER TABLE {table} DROP PART {quoted(str(part))}")
                    dropped += 1
        return dropped

    def migrate(self) -> int:
        """Bring the tables to this version's form; how many steps it took."""
        with _translated():
            self._client.command(
                "CREATE TABLE IF NOT EXISTS migrations"
                " (number UInt32, name String, applied_at DateTime DEFAULT now())"
                " ENGINE = MergeTree ORDER BY number"
            )
        done = {_number(number) for (number,) in self._rows("SELECT number FROM migrations")}
        missing = [step for step in migrations() if step.number not in done]
        for step in missing:
            for statement in step.statements:
                self._again(lambda: self._client.command(statement))  # noqa: B023
            row = msgspec.json.encode({"number": step.number, "name": step.name})
            with _translated():
                self._client.raw_insert("migrations", insert_block=row, fmt="JSONEachRow")
        return len(missing)

    def made_at(self) -> str:
        """When its tables were made: another time is another store, which has none of the rows."""
        ((time,),) = self._rows("SELECT toString(min(applied_at)) FROM migrations")
        return str(time)

    def merge_less(self) -> None:
        """Merge small parts when there are more of them. The embedded engine's; a cluster has its
        own ways, and maybe not this one."""
        with _translated():
            for table in TABLES:
                self._client.command(f"ALTER TABLE {table} MODIFY SETTING {_MERGES}")

    def _again(self, run: Callable[[], object]) -> None:
        """A step that a crash interrupted begins again: what it made already is there."""
        from clickhouse_connect.driver.exceptions import DatabaseError

        try:
            with _translated():
                run()
        except (RecordsDown, RowsRefused) as problem:
            cause = problem.__cause__
            if not isinstance(cause, DatabaseError) or "already exists" not in str(cause):
                raise

    def _mutate(self, *statements: str) -> None:
        """Run them side by side, and wait for all: one after the other takes 0.2 s each."""
        with _translated():
            for statement in statements:
                self._client.command(statement, settings={"mutations_sync": "0"})
        waiting = (
            "SELECT 1 FROM system.mutations WHERE database = currentDatabase() AND NOT is_done"
        )
        pause = _LOOK_AGAIN_S
        while self._rows(waiting):
            time.sleep(pause)
            pause = min(2 * pause, _LOOK_AGAIN_MAX_S)

    def _rows(self, statement: str) -> list[list[object]]:
        with _translated():
            answer = self._client.raw_query(statement, fmt="JSONCompactEachRow")
        return [msgspec.json.decode(line, type=list[object]) for line in answer.splitlines()]


class Migration(NamedTuple):
    """One numbered step forward."""

    number: int
    name: str
    statements: tuple[str, ...]


def migrations() -> list[Migration]:
    """Every step this version knows, in order. A released one is never changed."""
    folder = resources.files("gateway.stores.records") / "migrations"
    found = []
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        number, _, name = file.name.removesuffix(".sql").partition("_")
        text = "\n".join(
            line for line in file.read_text().splitlines() if not line.startswith("--")
        )
        statements = tuple(part.strip() for part in text.split(";\n") if part.strip(" ;\n"))
        found.append(Migration(int(number), name, statements))
    return found


def connect(endpoint: Endpoint, *, writer: str = "") -> RecordStore:
    """The store behind an endpoint; its database is made if it is not there. RecordsDown."""
    with _translated():
        client = client_of(endpoint, database="")
        client.command(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
        client.close()
        return RecordStore(client_of(endpoint), writer=writer)


def client_of(endpoint: Endpoint, *, database: str = DATABASE, timeout_s: int = 120) -> "Client":
    """A client of clickhouse-connect, without a session: any thread may use it."""
    import clickhouse_connect

    return clickhouse_connect.get_client(
        interface=endpoint.scheme,
        host=endpoint.host,
        port=endpoint.port,
        username=endpoint.user,
        password=endpoint.password,
        database=database or None,
        autogenerate_session_id=False,
        compress=endpoint.is_remote,
        connect_timeout=5,
        send_receive_timeout=timeout_s,
        query_limit=0,
    )


@contextmanager
def _translated() -> "Iterator[None]":
    from clickhouse_connect.driver.exceptions import ClickHouseError

    try:
        yield
    except ClickHouseError as problem:
        code = getattr(problem, "code", None)
        kind = RowsRefused if code in _REFUSED_CODES else RecordsDown
        raise kind(told(problem)) from problem


def _whole(table: str) -> str:
    return f"{table} FINAL" if table in REPLACED else table


def _number(value: object) -> int:
    return int(str(value))
