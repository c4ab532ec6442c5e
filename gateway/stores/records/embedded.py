"""The embedded engine: chDB in this process, one connection per statement that may fail.

One process per directory, never after a fork. A connection is dropped after any error, because
what a statement gave before it broke would stand in front of the next answer; results come whole.
Settings stay on the connection they were made on, so each serves only statements with the same.
"""

import re
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple, Protocol, Self, cast

IDLE_CONNECTIONS_MAX: Final = 8
"""Connections kept, each for statements with the very settings it has; a new one costs 0.8 ms."""

_CODE = re.compile(r"Code: (\d+)\.")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PASSING = re.compile(rb"\s*(SELECT|INSERT|ALTER)\b", re.IGNORECASE)
"""Statements that leave a connection as it was. After others (SET, USE) nobody else gets it."""


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


class _Idle(NamedTuple):
    """A connection nobody uses now, and the statements that brought it into its state."""

    made_by: tuple[str, ...]
    connection: _Connection


class Engine:
    """One directory. Any thread may run statements; several run at once."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._lock = threading.Lock()
        self._idle: list[_Idle] = []
        # Held to the end: without any connection the engine would shut down in between.
        self._anchor = self._connect()

    def run(
        self, statement: bytes, *, settings: Mapping[str, str], database: str = "", form: str = ""
    ) -> bytes:
        """The whole result in the format it names itself, else in `form`. Raises EngineError."""
        before = _before(settings, database)
        idle = self._take(before)
        connection = idle or self._connect()
        try:
            for one in () if idle else before:
                connection.query(one, "TabSeparated")
            result = connection.query(statement, form or "TabSeparated").bytes()
        except (RuntimeError, ValueError, OSError) as problem:
            connection.close()
            raise EngineError(str(problem)) from None
        if _PASSING.match(statement) and "readonly" not in settings:
            self._give_back(_Idle(before, connection))
        else:
            connection.close()
        return result

    def close(self) -> None:
        """Flush and shut the engine down."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in (*(one.connection for one in idle), self._anchor):
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _connect(self) -> _Connection:
        import chdb  # 160 MB, and only the process that is the store needs it

        return cast(_Connection, chdb.connect(self._path))

    def _take(self, made_by: tuple[str, ...]) -> _Connection | None:
        with self._lock:
            for place, idle in enumerate(self._idle):
                if idle.made_by == made_by:
                    return self._idle.pop(place).connection
        return None

    def _give_back(self, idle: _Idle) -> None:
        """The one that was not used for longest goes, when there are many."""
        with self._lock:
            self._idle.append(idle)
            gone = self._idle.pop(0) if len(self._idle) > IDLE_CONNECTIONS_MAX else None
        if gone is not None:
            gone.connection.close()


def _before(settings: Mapping[str, str], database: str) -> tuple[str, ...]:
    """Statements that put a connection into the state which a request asks for.

    `readonly` comes last, after what it forbids; nobody gets out of it again.
    """
    pairs = [(name, value) for name, value in settings.items() if _NAME.fullmatch(name)]
    pairs.sort(key=lambda pair: pair[0] == "readonly")
    statements = [f"USE {database}"] if _NAME.fullmatch(database) else []
    if pairs:
        said = ", ".join(f"{name} = {quoted(value)}" for name, value in pairs)
        statements.append(f"SET {said}")
    return tuple(statements)


def quoted(text: str) -> str:
    """A text as a literal of SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def among(ids: Iterable[str]) -> str:
    """The condition that a row is of one of these sessions."""
    return f"session_id IN ({', '.join(map(quoted, ids))})"
