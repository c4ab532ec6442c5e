"""Keyset pages over a tenant's sessions, from the list index and the plan shard's rows (R07).

`after` is where the last page ended; it stays good while sessions come and go. A page shows how
sessions stand, without their payloads.
"""

import base64
from collections.abc import Iterator

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import SessionStatus
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.session import SessionPage, SessionView
from gateway.engine.shards import PlanRow, Shard
from gateway.stores.ports import Store, Table
from gateway.stores.tables import SESSION_BYTES, listed_prefix, shard_row

LIMIT_MAX = 500
_IN_KEY_ORDER = sorted(status.value for status in SessionStatus)
"""A page goes on where the last one ended, so statuses come in the order of their keys."""


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
        """Up to `limit` sessions beyond `after`, by status, workflow and opening time."""
        beyond = _decoded(after, tenant)
        found: list[SessionView] = []
        last = b""
        for key in self._keys(tenant, status, workflow=workflow, beyond=beyond):
            if len(found) == min(max(1, limit), LIMIT_MAX):
                return SessionPage(sessions=tuple(found), next=_encoded(last))
            last = key
            view = self._view(key)
            if view is not None:
                found.append(view)
        return SessionPage(sessions=tuple(found))

    def _keys(
        self, tenant: str, status: SessionStatus | None, *, workflow: str, beyond: bytes
    ) -> Iterator[bytes]:
        for name_of_status in (status.value,) if status else _IN_KEY_ORDER:
            prefix = listed_prefix(tenant, name_of_status)
            if beyond and beyond[: len(prefix)] > prefix and not beyond.startswith(prefix):
                continue
            for key, _ in self._store.scan(Table.INDEX, prefix, after=beyond):
                name = key[len(prefix) : -SESSION_BYTES - 1].decode()
                if not workflow or name == workflow or name.partition("@")[0] == workflow:
                    yield key

    def _view(self, key: bytes) -> SessionView | None:
        session_id = key[-SESSION_BYTES:].decode()
        row = self._store.get(Table.SHARD, shard_row(session_id, Shard.PLAN.value))
        if row is None:
            return None
        return msgspec.json.decode(row, type=PlanRow).view(session_id)


def _encoded(key: bytes) -> str:
    return base64.urlsafe_b64encode(key).decode().rstrip("=")


def _decoded(after: str, tenant: str) -> bytes:
    """The key that `next` named; only keys of this tenant's list can be one."""
    padded = after + "=" * (-len(after) % 4)
    try:
        beyond = base64.b64decode(padded.encode(), altchars=b"-_", validate=True)
    except ValueError:  # binascii.Error is one
        beyond = b"\0"
    if beyond and not beyond.startswith(listed_prefix(tenant)):
        message = "after: not the `next` of an earlier page"
        raise AcpFailure(error(Reason.INVALID_REQUEST, message))
    return beyond
