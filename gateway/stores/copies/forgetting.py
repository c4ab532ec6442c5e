"""Deleting imported sessions: the journal does not know them, so no request to a gateway can.

Their lines go from the log of a gateway that does not run, with a tombstone as after any deletion;
from there its next start takes them out of records and archive. Killed, again finishes it. Blocks.
"""

from collections.abc import Sequence

import msgspec

from acp_spec.model.ids import is_session_id, time_ms_of
from gateway.stores.copies.importing import Target, settle_last_lines
from gateway.stores.copies.known import Known
from gateway.stores.durable import WriteThrough
from gateway.stores.ports import Store, Table
from gateway.stores.tables import archive_erasing_row, session_row


class ForgetReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the sessions that were named."""

    forgotten: tuple[str, ...]
    not_there: tuple[str, ...]


class OwnSession(Exception):
    """A gateway deletes its own sessions itself, with their keys."""


def forget(target: Target, session_ids: Sequence[str], *, now_ms: int) -> ForgetReport:
    """Delete imported sessions. Raises OwnSession before anything happens, OSError."""
    for one in session_ids:
        if _is_own(target.store, one):
            raise OwnSession(
                f"{one} is this gateway's own session: start it, and `acp sessions delete {one}`"
            )
    settle_last_lines(target)
    known = Known(target.lines, target.store, session_ids=frozenset(session_ids))
    there = tuple(one for one in session_ids if known.has_lines(one))
    rows = WriteThrough(target.store)
    for one in there if target.lines.has_left else ():
        rows.put(Table.META, archive_erasing_row(one), b"")
    target.store.sync()
    for one in there:
        since_ms = time_ms_of(one) if is_session_id(one) else 0
        target.log.erase(one, since_ms, now_ms=now_ms)
    target.log.close()
    missing = tuple(one for one in session_ids if one not in there)
    return ForgetReport(forgotten=there, not_there=missing)


def _is_own(store: Store, session_id: str) -> bool:
    """Also of a deleted one the tombstone is there."""
    row = session_row(session_id)
    return any(store.get(table, row) is not None for table in (Table.KEY, Table.SESSION))
