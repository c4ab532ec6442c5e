"""The attempt that a call stands on, out of the trajectory's one row per attempt."""

from collections.abc import Iterable

from acp_spec.model.payload import is_absent
from acp_spec.model.trajectory import Attempt


def settled_rows(rows: Iterable[Attempt]) -> dict[str, Attempt]:
    """By call, in their order: the row that succeeded, else the last that was sent, else the last.

    Of two attempts that raced (a hedge) the one that lost is the later row often enough.
    """
    settled: dict[str, Attempt] = {}
    for row in rows:
        known = settled.get(row.call_id)
        if known is None or _worth(row) >= _worth(known):
            settled[row.call_id] = row
    return settled


def _worth(row: Attempt) -> int:
    if row.error is None and not is_absent(row.output):
        return 2
    return 1 if row.sent_at or row.reused else 0
