"""The embedded engine: chDB in this process, one connection per statement that may fail.

One process per directory, never after a fork. A connection is dropped after any error, because
what a statement gave before it broke would stand in front of the next answer; results come whole.
Settings stay on the connection they were made on, so a statement with settings has its own.
"""

import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol, Self, cast

IDLE_CONNECTIONS_MAX: Final = 8
"""Connections kept for statements without settings; opening one costs 0.4 ms."""

_CODE = re.compile(r"Code: (\d+)\.")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class EngineError(Exception):
    """The engine refused or broke off a statement. `code`: ClickHouse's number, 0 for none."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        found = _CODE.search(message)
        self.code = int(found.group(1)) if found else 0


class _Result(Protocol):
    def bytes(self) -> bytes: ...


class _Connection(Protocol):
    def query(self, query: str | bytes, format: str) -> _Result: ...

    def close(self) -> None: ...


class Engine:
    """One directory. Any thread may run statements; several run at once."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._lock = threading.Lock()
        self._idle: list[_Connection] = []
        # Held to the end: without any connection the engine would shut down in between.
        self._anchor = self._connect()

    def run(
        self, statement: bytes, *, settings: Mapping[str, str], database: str = "", form: str = ""
    ) -> bytes:
        """The whole result in the format it names itself, else in `form`. Raises EngineError."""
        before = _before(settings, database)
        connection = self._connect() if before else self._take()
        try:
            for one in before:
                connection.query(one, "TabSeparated")
            result = connection.query(statement, form or "TabSeparated").bytes()
        except (RuntimeError, ValueError, OSError) as problem:
            connection.close()
            raise EngineError(str(problem)) from None
        if before:
            connection.close()
        else:
            self._give_back(connection)
        return result

    def close(self) -> None:
        """Flush and shut the engine down."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in (*idle, self._anchor):
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _connect(self) -> _Connection:
        import chdb  # 160 MB, and only the process that is the store needs it

        return cast(_Connection, chdb.connect(self._path))

    def _take(self) -> _Connection:
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._connect()

    def _give_back(self, connection: _Connection) -> None:
        with self._lock:
            if len(self._idle) < IDLE_CONNECTIONS_MAX:
                self._idle.append(connection)
                return
        connection.close()


def _before(settings: Mapping[str, str], database: str) -> list[str]:
    """Statements that put a connection into the state which a request asks for.

    `readonly` comes last, after what it forbids; nobody gets out of it again.
    """
    pairs = [(name, value) for name, value in settings.items() if _NAME.fullmatch(name)]
    pairs.sort(key=lambda pair: pair[0] == "readonly")
    statements = [f"USE {database}"] if _NAME.fullmatch(database) else []
    if pairs:
        said = ", ".join(f"{name} = {quoted(value)}" for name, value in pairs)
        statements.append(f"SET {said}")
    return statements


def quoted(text: str) -> str:
    """A text as a literal of SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
