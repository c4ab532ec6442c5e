"""Counter: every execution leaves a row on disk before it is answered, also those that fail after.

The rows are what a test compares with what the gateway claims. `counter.add` (BY_KEY) finds a
repeated call_id in the same file, so its promise holds over a crash; `counter.add_once` (NONE)
counts every time it is sent, which is how a test sees that it was sent twice.
"""

import sqlite3
import threading
from decimal import Decimal
from pathlib import Path

from acp_spec import Call, Component, Effect, Idempotency, SideEffect

SCHEMA = """
CREATE TABLE IF NOT EXISTS effects (
  number INTEGER PRIMARY KEY AUTOINCREMENT, call_id TEXT NOT NULL, attempt INTEGER NOT NULL,
  action TEXT NOT NULL, amount TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS effects_by_call ON effects (call_id);
"""
AMOUNT = {
    "type": "object",
    "properties": {"amount": {"type": "number"}, "then_fail": {"enum": ["UNKNOWN", "PERFORMED"]}},
}
OF_CALL = {"type": "object", "properties": {"call_id": {"type": "string"}}, "required": ["call_id"]}


class Effects:
    """The file of what was done. One connection behind a lock: handlers run in threads."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._rows = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._rows.execute("PRAGMA journal_mode=WAL")
        self._rows.execute("PRAGMA synchronous=FULL")
        self._rows.executescript(SCHEMA)

    def add(self, call: Call, amount: Decimal | int, *, once: bool) -> int:
        """Count one effect, unless `once` and this call_id has one; returns the row's number."""
        with self._lock:
            if once:
                known = self._number_of(call.context.call_id)
                if known is not None:
                    return known
            added = self._rows.execute(
                "INSERT INTO effects (call_id, attempt, action, amount) VALUES (?, ?, ?, ?)",
                (call.context.call_id, call.context.attempt, call.action, str(amount)),
            )
            assert added.lastrowid is not None
            return added.lastrowid

    def of_call(self, call_id: str) -> list[int]:
        """The attempts that had an effect for this call_id, in their order."""
        with self._lock:
            rows = self._rows.execute(
                "SELECT attempt FROM effects WHERE call_id = ? ORDER BY number", (call_id,)
            )
            return [attempt for (attempt,) in rows]

    def total(self) -> tuple[int, Decimal]:
        """How many effects there were, and the exact sum of their amounts."""
        with self._lock:
            amounts = [Decimal(row[0]) for row in self._rows.execute("SELECT amount FROM effects")]
        return len(amounts), sum(amounts, Decimal(0))

    def _number_of(self, call_id: str) -> int | None:
        row = self._rows.execute(
            "SELECT number FROM effects WHERE call_id = ?", (call_id,)
        ).fetchone()
        return None if row is None else int(row[0])


def make(path: Path) -> Component:
    """A counter whose effects are kept in `path`."""
    component = Component("counter", "1.0.0")
    effects = Effects(path)

    def count(arguments: dict[str, Decimal], call: Call, *, once: bool) -> dict[str, object]:
        number = effects.add(call, arguments.get("amount", 1), once=once)
        if "then_fail" in arguments:
            raise call.fail(
                "FAILED_AFTER_COUNTING",
                "Counted, then failed as told.",
                side_effect=SideEffect[str(arguments["then_fail"])],
            )
        return {"call_id": call.context.call_id, "number": number}

    @component.action(
        "counter.add", idempotency=Idempotency.BY_KEY, own_idempotency=True, input_schema=AMOUNT
    )
    def add(arguments: dict[str, Decimal], call: Call) -> dict[str, object]:
        """Counts one effect; a repeated call_id is found in the file and counts nothing."""
        return count(arguments, call, once=True)

    @component.action("counter.add_once", input_schema=AMOUNT)
    def add_once(arguments: dict[str, Decimal], call: Call) -> dict[str, object]:
        """Counts one effect each time it is sent: must never be sent twice."""
        return count(arguments, call, once=False)

    @component.action(
        "counter.of_call",
        effect=Effect.READ,
        idempotency=Idempotency.NATURAL,
        input_schema=OF_CALL,
    )
    def of_call(arguments: dict[str, str], call: Call) -> dict[str, object]:
        """How many effects a call_id had, and by which attempts."""
        attempts = effects.of_call(arguments["call_id"])
        return {"call_id": arguments["call_id"], "count": len(attempts), "attempts": attempts}

    @component.action(
        "counter.total",
        effect=Effect.READ,
        idempotency=Idempotency.NATURAL,
        examples=[{"arguments": {}, "safe": True}],
    )
    def total(arguments: object, call: Call) -> dict[str, object]:
        """How many effects there were in all, and the sum of their amounts."""
        number, amount = effects.total()
        return {"count": number, "amount": amount}

    return component
