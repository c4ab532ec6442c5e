"""The file behind the memory: SQLite with a full-text index (FTS5), one transaction per call.

Storing, recalling and remembering the answer happen together or not at all, which is what makes a
repeat after a crash exact. Recall ranks by words (bm25), for at most half of the limit; the newest
fill the rest, because a caller's last call matters even when its words do not match.
"""

import re
import sqlite3
import threading
from dataclasses import dataclass
from pathlib import Path

import msgspec

from acp_spec.model.calls import Memory, ObserveRequest, ObserveResponse, Recall
from acp_spec.model.payload import is_absent, payload

MEMORIES_PER_OWNER_MAX = 10_000
"""Beyond it the oldest go: years of calls for one customer, and a bound for a test that never
ends.
"""
QUERY_WORDS_MAX = 32
RECALL_MAX = 50

_SCHEMA = """
CREATE TABLE IF NOT EXISTS memories (
  id INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, customer TEXT NOT NULL,
  call_id TEXT NOT NULL, session_id TEXT NOT NULL, step TEXT NOT NULL, kind TEXT NOT NULL,
  data BLOB NOT NULL, time TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS memories_by_owner ON memories (tenant, customer, id);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, tokenize = 'porter unicode61');
CREATE TABLE IF NOT EXISTS answers (
  call_id TEXT PRIMARY KEY, digest TEXT NOT NULL, answer BLOB NOT NULL) WITHOUT ROWID;
"""
_BY_WORDS = """
SELECT m.id, m.session_id, m.step, m.data, bm25(words)
FROM words JOIN memories m ON m.id = words.rowid
WHERE words MATCH ? AND m.tenant = ? AND m.customer = ? ORDER BY bm25(words), m.id DESC LIMIT ?
"""
_NEWEST = """
SELECT id, session_id, step, data FROM memories WHERE tenant = ? AND customer = ?
ORDER BY id DESC LIMIT ?
"""
_TOO_OLD = """
SELECT id FROM memories WHERE tenant = ? AND customer = ? ORDER BY id DESC LIMIT -1 OFFSET ?
"""
_WORD = re.compile(r"\w{2,}")


class OtherBody(Exception):
    """The call_id was used before with another body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose memory it is."""

    tenant: str
    customer: str


class Notebook:
    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._rows = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._rows.execute("PRAGMA journal_mode=WAL")
        self._rows.execute("PRAGMA synchronous=FULL")
        self._rows.executescript(_SCHEMA)

    def observe(self, request: ObserveRequest, owner: Owner) -> ObserveResponse:
        """Store, then recall; a repeat of the call gets the first answer. Raises OtherBody."""
        with self._lock, self._rows:
            self._rows.execute("BEGIN IMMEDIATE")
            known = self._known(request)
            if known is not None:
                return known
            for observation in request.observations:
                data = b"null" if is_absent(observation.data) else bytes(observation.data)
                row = (observation.step, observation.kind, data, observation.time)
                self._store(request, owner, row=row)
            self._forget_oldest(owner)
            memory = self._recall(request.recall, owner) if request.recall else []
            answer = ObserveResponse(stored=len(request.observations), memory=tuple(memory))
            self._rows.execute(
                "INSERT INTO answers VALUES (?, ?, ?)",
                (
                    request.context.call_id,
                    request.context.body_digest,
                    msgspec.json.encode(answer),
                ),
            )
            return answer

    def _known(self, request: ObserveRequest) -> ObserveResponse | None:
        row = self._rows.execute(
            "SELECT digest, answer FROM answers WHERE call_id = ?", (request.context.call_id,)
        ).fetchone()
        if row is None:
            return None
        if row[0] != request.context.body_digest:
            raise OtherBody
        return msgspec.json.decode(row[1], type=ObserveResponse)

    def _store(
        self, request: ObserveRequest, owner: Owner, *, row: tuple[str, str, bytes, str]
    ) -> None:
        context = request.context
        step, kind, data, time = row
        added = self._rows.execute(
            "INSERT INTO memories (tenant, customer, call_id, session_id, step, kind, data, time) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(owner.tenant, owner.customer, context.call_id, context.session_id),
                *(step, kind, data, time),
            ),
        )
        text = f"{kind} {data.decode('utf-8', 'replace')}"
        self._rows.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (added.lastrowid, text))

    def _forget_oldest(self, owner: Owner) -> None:
        too_old = self._rows.execute(
            _TOO_OLD, (owner.tenant, owner.customer, MEMORIES_PER_OWNER_MAX)
        ).fetchall()
        self._rows.executemany("DELETE FROM memories WHERE id = ?", too_old)
        self._rows.executemany("DELETE FROM words WHERE rowid = ?", too_old)

    def _recall(self, recall: Recall, owner: Owner) -> list[Memory]:
        limit = min(recall.limit, RECALL_MAX)
        found: dict[int, Memory] = {}
        query = _fts_query(recall.query)
        if query:
            owned = (owner.tenant, owner.customer, limit - limit // 2)
            for number, session, step, data, bm25 in self._rows.execute(_BY_WORDS, (query, *owned)):
                found[number] = _memory(number, (session, step, data), score=_score(bm25))
        rows = self._rows.execute(_NEWEST, (owner.tenant, owner.customer, limit)).fetchall()
        for number, session, step, data in rows:
            if len(found) >= limit:
                break
            found.setdefault(number, _memory(number, (session, step, data), score=0.0))
        return list(found.values())


def _memory(number: int, row: tuple[str, str, bytes], *, score: float) -> Memory:
    session, step, data = row
    source = f"session {session}, step {step}" if step else f"session {session}"
    return Memory(id=f"m{number}", data=payload(data), score=score, source=source)


def _score(bm25: float) -> float:
    """SQLite's bm25 is better the more negative; here 0 is nothing and 1 never reached."""
    strength = max(0.0, -bm25)
    return round(strength / (1 + strength), 6)


def _fts_query(text: str) -> str:
    """Any of the query's words; quoted, so that nothing in it is FTS syntax."""
    words = dict.fromkeys(_WORD.findall(text.lower()))
    return " OR ".join(f'"{word}"' for word in list(words)[:QUERY_WORDS_MAX])
