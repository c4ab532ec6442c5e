"""Outcomes in an SQLite file: a repeat after a restart still gets its outcome, or learns it is
unknown.

One thread owns the connection; every `put` is committed to disk (synchronous=FULL) before it
returns, because the handler starts, or the answer leaves, right after. Of an attached component it
also keeps the answers that the gateway has not acknowledged.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from acp_spec.model.attach import Key
from acp_spec.sdk.outcomes import OutcomesUnavailable, Record, Stage

T = TypeVar("T")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS outcomes (
  call_id TEXT PRIMARY KEY, digest TEXT NOT NULL, attempt INTEGER NOT NULL, stage TEXT NOT NULL,
  expires_at_ms REAL NOT NULL, outcome BLOB NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS outcomes_by_expiry ON outcomes (expires_at_ms);
CREATE TABLE IF NOT EXISTS answers (
  call_id TEXT NOT NULL, attempt INTEGER NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY (call_id, attempt)) WITHOUT ROWID;
"""
_PUT = "INSERT OR REPLACE INTO outcomes VALUES (?, ?, ?, ?, ?, ?)"
_GET = "SELECT digest, attempt, stage, expires_at_ms, outcome FROM outcomes WHERE call_id = ?"
_KEEP_ANSWER = "INSERT OR REPLACE INTO answers VALUES (?, ?, ?)"
_FORGET_ANSWER = "DELETE FROM answers WHERE call_id = ? AND attempt = ?"
_ANSWERS = "SELECT call_id, attempt, body FROM answers"
_SWEEP_EVERY_MS = 60_000.0


class FileOutcomes:
    """`Component(..., outcomes=FileOutcomes("outcomes.db"))`."""

    def __init__(self, path: str | Path) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="acp-outcomes")
        self._connection = self._thread.submit(_open, Path(path)).result()
        self._swept_at_ms = 0.0

    async def get(self, call_id: str) -> Record | None:
        row = await self._run(lambda: self._connection.execute(_GET, (call_id,)).fetchone())
        if row is None:
            return None
        return Record(
            call_id=call_id,
            digest=row[0],
            attempt=row[1],
            stage=Stage(row[2]),
            expires_at_ms=row[3],
            outcome=row[4],
        )

    async def put(self, record: Record) -> None:
        row = (
            record.call_id,
            record.digest,
            record.attempt,
            record.stage.value,
            record.expires_at_ms,
            record.outcome,
        )
        await self._run(lambda: self._connection.execute(_PUT, row))

    async def has_room(self, now_ms: float) -> bool:
        """Always (the disk is the limit); drops expired records now and then."""
        if now_ms - self._swept_at_ms >= _SWEEP_EVERY_MS:
            self._swept_at_ms = now_ms
            sweep = "DELETE FROM outcomes WHERE expires_at_ms <= ?"
            await self._run(lambda: self._connection.execute(sweep, (now_ms,)))
        return True

    async def keep_answer(self, key: Key, body: bytes) -> None:
        """Keep an attached component's answer until it is acknowledged."""
        row = (*key, body)
        await self._run(lambda: self._connection.execute(_KEEP_ANSWER, row))

    async def forget_answer(self, key: Key) -> None:
        """The gateway has it."""
        await self._run(lambda: self._connection.execute(_FORGET_ANSWER, key))

    async def kept_answers(self) -> dict[Key, bytes]:
        """What an earlier process could not deliver."""
        rows = await self._run(lambda: self._connection.execute(_ANSWERS).fetchall())
        return {(call_id, attempt): body for call_id, attempt, body in rows}

    def close(self) -> None:
        self._thread.submit(self._connection.close).result()
        self._thread.shutdown()

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except sqlite3.Error as problem:
            raise OutcomesUnavailable(str(problem)) from problem


def _open(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.executescript(_SCHEMA)
    return connection
