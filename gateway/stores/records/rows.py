"""A trajectory as rows of the records' tables: JSON lines as ClickHouse reads them. Pure.

Every row carries its session's `opened_at` (so that all of a session stands in one partition), a
`row_key` that names it within its session and table, and a `row_hash` of all it says. The same
trajectory always gives the same bytes: that is what exactly-once and `verify` stand on.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from acp_spec.model.trajectory import Trajectory
from gateway.stores.records import columns
from gateway.stores.records.columns import Columns
from gateway.stores.row_hash import hash_of

EPOCH: Final = "1970-01-01T00:00:00.000Z"

Named = tuple[str, Columns]
"""What names a row within its session and table, and what it says."""


class Row(NamedTuple):
    """One row: its name within session and table, the hash of what it says, its JSON line."""

    key: int
    hash: int
    line: bytes


Shaped = Mapping[str, tuple[Row, ...]]
"""Rows by table; the session's own row is the only one of `sessions`. No table without rows."""


def shape(one: Trajectory) -> Shaped:
    """All rows of a trajectory by table."""
    found: dict[str, list[Named]] = {
        "sessions": [("", columns.session(one))],
        "rewards": _rewards(one),
        "calls": [
            (f"{row.call_id}\0{row.attempt}", columns.call(row, place))
            for place, row in enumerate(one.calls)
        ],
        "decisions": [(row.decision_id, columns.decision(row)) for row in one.decisions],
        "llm_calls": [
            (f"{row.call_id}\0{row.attempt}\0{row.llm_call.id}", columns.llm_call(row))
            for row in one.llm_calls
        ],
        "observations": [(row.call_id, columns.observation(row)) for row in one.observations],
        "reflections": [(row.call_id, columns.reflection(row)) for row in one.reflections],
        "feedback": _feedback(one),
        "claims": _claims(one),
        "gaps": [(f"{row.what}\0{row.why}", columns.gap(row)) for row in one.gaps],
    }
    return {table: _sealed(one, rows) for table, rows in found.items() if rows}


def _feedback(one: Trajectory) -> list[Named]:
    read = {reading.feedback_id: reading for reading in one.rewards.comments}
    return [
        (row.feedback.feedback_id, columns.feedback(row, read.get(row.feedback.feedback_id)))
        for row in one.feedback
    ]


def _claims(one: Trajectory) -> list[Named]:
    judged = one.grounding.claims if one.grounding is not None else ()
    verdicts = {row.claim: row for row in judged}
    return [
        (row.text, columns.claim(row, verdicts.get(place))) for place, row in enumerate(one.claims)
    ]


def _rewards(one: Trajectory) -> list[Named]:
    return [
        *(
            (f"quality\0{row.name}\0{row.call_id}\0{row.source}", columns.quality(row))
            for row in one.rewards.quality
        ),
        *(
            (f"reflector\0{row.name}\0{row.call_id}", columns.reflected(row))
            for row in one.reflector_rewards
        ),
        ("operational", columns.operational(one)),
        *_by_rules(one),
    ]


def _by_rules(one: Trajectory) -> list[Named]:
    """The reward vector, where the gateway has rules."""
    vector = one.rewards.vector
    if vector is None:
        return []
    rules = f"{vector.rules.name}@{vector.rules.version}"
    return [
        *((f"step\0{row.call_id}", columns.step_reward(row, rules)) for row in vector.step),
        ("session", columns.part_reward("SESSION", vector.session, rules=rules)),
        ("long_term", columns.part_reward("LONG_TERM", vector.long_term, rules=rules)),
    ]


def _sealed(one: Trajectory, rows: Iterable[Named]) -> tuple[Row, ...]:
    """Each row as a line with its head, key and hash; equal names are told apart by their order."""
    head = {
        "session_id": one.session_id,
        "opened_at": one.opened_at or EPOCH,
        "tenant": one.tenant,
        "workflow": one.workflow,
    }
    seen = Counter[str]()
    sealed = []
    for name, row in rows:
        body = msgspec.json.encode({**head, **row})
        key, says = hash_of(f"{name}\0{seen[name]}".encode()), hash_of(body)
        seen[name] += 1
        tail = b',"sequence":%d,"row_key":%d,"row_hash":%d}\n' % (one.sequence, key, says)
        sealed.append(Row(key, says, body[:-1] + tail))
    return tuple(sealed)
