"""Keyset pages over a tenant's sessions, newest first: the list index, the plan shard (R07).

`after` is the id of the session where the last page ended: ids sort by time, so it stays good while
sessions come and go and change their status. A page shows how sessions stand, without payloads.
"""

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import SessionStatus
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.ids import is_session_id
from acp_spec.model.session import SessionPage, SessionView
from gateway.engine.shards import PlanRow, Shard
from gateway.stores.ports import Store, Table
from gateway.stores.tables import listed_prefix, listed_session, shard_row

LIMIT_MAX = 500
LOOKED_AT_MAX = 10_000
"""Index rows that one page looks at, some 20 ms: a rare workflow among many sessions gives short
pages, even empty ones, each with the `next` from which to go on.
"""


class Pages:
    """Reads pages; everything it shows is written."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def page(
        self,
        tenant: str,
        *,
        status: SessionStatus | None,
        workflow: str,
        after: str,
        limit: int,
    ) -> SessionPage:
        """Up to `limit` sessions opened before `after`, the newest first."""
        prefix = listed_prefix(tenant, status.value if status else "")
        beyond = prefix + after.encode() if _checked(after) else b""
        most = min(max(1, limit), LIMIT_MAX)
        found: list[SessionView] = []
        last = ""
        rows = self._store.scan(Table.INDEX, prefix, after=beyond, reverse=True)
        for looked_at, (key, value) in enumerate(rows):
            if len(found) == most or looked_at == LOOKED_AT_MAX:
                return SessionPage(sessions=tuple(found), next=last)
            last = listed_session(key)
            if not workflow or _is_named(value.decode(), workflow):
                found += self._view(last)
        return SessionPage(sessions=tuple(found))

    def _view(self, session_id: str) -> tuple[SessionView, ...]:
        """The session as it stands; nothing where it is not whole."""
        row = self._store.get(Table.SHARD, shard_row(session_id, Shard.PLAN.value))
        if row is None:
            return ()
        return (msgspec.json.decode(row, type=PlanRow).view(session_id),)


def _is_named(reference: str, workflow: str) -> bool:
    """Whether `name@version` is asked for, by its name or whole."""
    return workflow in (reference, reference.partition("@")[0])


def _checked(after: str) -> str:
    if after and not is_session_id(after):
        message = "after: not the `next` of an earlier page"
        raise AcpFailure(error(Reason.INVALID_REQUEST, message))
    return after
