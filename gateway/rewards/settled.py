"""The attempt that a call stands on, out of the trajectory's one row per attempt. Pure.

One rule for whoever judges calls: rewards, shaping and the hallucination guard.
"""

from collections.abc import Iterable

from acp_spec.model.payload import is_absent
from acp_spec.model.trajectory import Attempt


def settled(rows: Iterable[Attempt]) -> dict[str, Attempt]:
    """By call, in the order in which they began: the row that was answered well, else the last that
    was sent, else the last.

    Of two attempts that raced (a hedge) the one that lost is the later row often enough. A retry
    that the gateway refused before sending says nothing of the component: what it answered does.
    """
    found: dict[str, Attempt] = {}
    for row in rows:
        known = found.get(row.call_id)
        if known is None or _worth(row) >= _worth(known):
            found[row.call_id] = row
    return found


def _worth(row: Attempt) -> int:
    is_answered = row.ended_at != "" or row.reused or not is_absent(row.output)
    if row.error is None and is_answered:
        return 2
    return 1 if row.sent_at or row.reused else 0
