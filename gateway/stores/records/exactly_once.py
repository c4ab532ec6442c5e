"""Bringing sessions into the store so that every row is there once, however often it is told.

Three nets, each enough for the faults it is for: a session's own row goes in last, so a session
that is known needs nothing; what may be there in part (a batch begun before a crash, a newer
version) is asked for by key; and each insert carries a token of its batch, so that one that was
still under way when its sender died changes nothing when it is sent again.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from acp_spec.model.trajectory import Trajectory
from gateway.stores.records.rows import Row, Shaped, shape
from gateway.stores.records.store import (
    APPEND_ONLY,
    TABLES,
    Digest,
    Held,
    RecordStore,
    RowsRefused,
)

NOTHING = Digest(0, 0)
_WRAP = 1 << 64


class Brought(NamedTuple):
    """What became of the sessions: `refused` ones the store could not take, with the reason."""

    sessions: int
    rows: int
    refused: tuple[tuple[str, str], ...] = ()


class _Plan(NamedTuple):
    """Lines to insert by table, and rows that stand in their way."""

    insert: dict[str, list[bytes]]
    delete: dict[str, list[Held]]


def bring(
    store: RecordStore, sessions: Sequence[Trajectory], *, token: str, ask: bool = False
) -> Brought:
    """Put these sessions in, each at its highest sequence. `ask`: any may be there in part."""
    newest = _newest(sessions)
    if not newest:
        return Brought(0, 0)
    known = store.versions(list(newest))
    shaped = {name: shape(one) for name, one in newest.items() if _is_wanted(one, known.get(name))}
    in_doubt = list(shaped) if ask else [name for name in shaped if name in known]
    try:
        return _carry_out(store, shaped, in_doubt=in_doubt, token=token)
    except RowsRefused:
        return _one_by_one(store, shaped, in_doubt=in_doubt, token=token)


def mend(store: RecordStore, sessions: Sequence[Trajectory], *, token: str) -> tuple[str, ...]:
    """Compare these sessions with the store row by row, and make it say what they say.

    Returns which ones differed. What the store has at a higher sequence is left alone, as are
    sessions that were erased.
    """
    newest = _newest(sessions)
    known = store.versions(list(newest))
    mine = {name: shape(one) for name, one in newest.items() if _is_ours(one, known.get(name))}
    if not mine:
        return ()
    digests = store.digests(list(mine))
    differing = [name for name, rows in mine.items() if digests.get(name, NOTHING) != digest(rows)]
    if differing:
        shaped = {name: mine[name] for name in differing}
        _carry_out(store, shaped, in_doubt=differing, token=token)
    return tuple(differing)


def digest(rows: Shaped) -> Digest:
    """All rows of a session in one value, as the store computes it of its own."""
    hashes = [row.hash for table in rows.values() for row in table]
    return Digest(len(hashes), sum(hashes) % _WRAP)


def _is_wanted(one: Trajectory, known: int | None) -> bool:
    """Whether it is news: not there yet, or there at a lower sequence. Erased ones stay away."""
    return known is None or 0 <= known < one.sequence


def _is_ours(one: Trajectory, known: int | None) -> bool:
    """Whether the log's session is what the store should say: neither erased nor older."""
    return known is None or (known >= 0 and one.sequence >= known)


def _newest(sessions: Iterable[Trajectory]) -> dict[str, Trajectory]:
    newest: dict[str, Trajectory] = {}
    for one in sessions:
        if one.session_id not in newest or one.sequence > newest[one.session_id].sequence:
            newest[one.session_id] = one
    return newest


def _carry_out(
    store: RecordStore, shaped: Mapping[str, Shaped], *, in_doubt: Sequence[str], token: str
) -> Brought:
    plan = _plan(shaped, store.held(in_doubt) if in_doubt else (), in_doubt=frozenset(in_doubt))
    for table, rows in plan.delete.items():
        store.delete_rows(table, rows)
    for table in TABLES:
        if plan.insert[table]:
            store.insert(table, plan.insert[table], token=token)
    return Brought(len(shaped), sum(map(len, plan.insert.values())))


def _one_by_one(
    store: RecordStore, shaped: Mapping[str, Shaped], *, in_doubt: Sequence[str], token: str
) -> Brought:
    """One session that cannot be taken must not keep the others out."""
    rows, refused = 0, []
    for name, one in shaped.items():
        try:
            # Some of it may have gone in with the others: it is asked for.
            rows += _carry_out(store, {name: one}, in_doubt=[name], token=f"{token}:{name}").rows
        except RowsRefused as problem:
            refused.append((name, str(problem)))
    return Brought(len(shaped) - len(refused), rows, tuple(refused))


def _plan(shaped: Mapping[str, Shaped], held: Iterable[Held], *, in_doubt: frozenset[str]) -> _Plan:
    """What is missing goes in; what says something else goes out first, or is replaced."""
    there: dict[tuple[str, str, int], list[Held]] = defaultdict(list)
    for copy in held:
        there[copy.table, copy.session_id, copy.key].append(copy)
    plan = _Plan(defaultdict(list), defaultdict(list))
    for name, tables in shaped.items():
        for table, rows in tables.items():
            for row in rows:
                copies = there.pop((table, name, row.key), []) if name in in_doubt else []
                _one_row(plan, table, row=row, copies=copies)
    for (table, _, _), copies in there.items():
        _gone(plan, table, copies=copies, shaped=shaped)
    return plan


def _one_row(plan: _Plan, table: str, *, row: Row, copies: list[Held]) -> None:
    is_there = len(copies) == 1 and copies[0].hash == row.hash
    if table == "sessions" or not is_there:
        plan.insert[table].append(row.line)
    if copies and not is_there and table in APPEND_ONLY:
        plan.delete[table].extend(copies)


def _gone(plan: _Plan, table: str, *, copies: list[Held], shaped: Mapping[str, Shaped]) -> None:
    """Rows that the session no longer says: a newer form of the tables, a reward taken back."""
    if table in APPEND_ONLY:
        plan.delete[table].extend(copies)
        return
    held = copies[0]
    (session,) = shaped[held.session_id]["sessions"]
    line = msgspec.json.decode(session.line)
    plan.insert[table].append(
        msgspec.json.encode(
            {"session_id": held.session_id, "opened_at": line["opened_at"], "is_gone": 1}
            | {"sequence": line["sequence"], "row_key": held.key, "row_hash": held.hash}
        )
        + b"\n"
    )
