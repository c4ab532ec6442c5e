"""The records of a gateway as what insight reads, some sessions at a time, over its SQL.

Pages go by session id, which is by time. An answer that is too big is asked for in halves, and a
session whose payloads are too big for rows is read from its trajectory, or counted as left out.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.sdk.cli import Output
from gateway.cli.portions import portions
from gateway.stores.records.embedded import quoted
from gateway.stores.records.lineage_question import names_it
from gateway.stores.records.sample_rows import (
    CallRow,
    PartRow,
    SessionRow,
    calls_sql,
    is_cut,
    parts_sql,
    sessions_sql,
    trajectory_of,
)

if TYPE_CHECKING:
    from acp_spec.model.trajectory import Trajectory
    from gateway.cli.remote import Gateway
    from gateway.insight.windows import Window

T = TypeVar("T")

IDS: Final = 5_000
"""Ids of one page; a gateway gives 10,000 rows at once by default."""

ATTEMPTS: Final = 2_000
"""Attempts that are read at once: some MB, and far below the rows that a gateway gives."""

_TOO_BIG: Final = ("Limit for result exceeded", "memory limit exceeded")
"""What the engine says of an answer over the gateway's limits: rows, bytes, memory."""


class _Id(msgspec.Struct, frozen=True, array_like=True):
    session_id: str
    attempts: int


@dataclass(slots=True)
class GatewayRecords:
    """The sessions of these windows, oldest first; the same face as a folder's `Records`.

    `by_end`: windows go by the end of a session. `with_parts`: what reward rules made is wanted.
    """

    remote: "Gateway"
    windows: "Sequence[Window]"
    by_end: bool = False
    with_parts: bool = False
    left_out: dict[str, int] = field(default_factory=dict)
    _too_big: set[str] = field(default_factory=set)
    _waiting_bytes: int = 0

    def __iter__(self) -> "Iterator[Trajectory]":
        for some in portions(self._ids(), weigh=lambda one: max(1, one.attempts), most=ATTEMPTS):
            yield from self._read([one.session_id for one in some])
        self._waiting_bytes = self._lag_bytes()

    def leave_out(self, why: str) -> None:
        self.left_out[why] = self.left_out.get(why, 0) + 1

    def tell(self, out: Output) -> None:
        """What was not used, for the person."""
        for why, count in sorted(self.left_out.items()):
            out.note(f"{count} x left out: {why}")
        if self._waiting_bytes:
            out.note(f"the records have yet to read {self._waiting_bytes} bytes of the log")

    def _ids(self) -> Iterator[_Id]:
        after, size = "", IDS
        while True:
            sql = (
                f"SELECT session_id, attempts FROM v_sessions WHERE {self._where()}"
                f" AND session_id > {quoted(after)} ORDER BY session_id LIMIT {size}"
            )
            try:
                page = self._ask(sql, _Id)
            except AcpFailure as failure:
                if size < 2 or not _is_too_big(failure):
                    raise
                size //= 2
                continue
            yield from page
            if len(page) < size:
                return
            after = page[-1].session_id

    def _where(self) -> str:
        column = "ended_at" if self.by_end else "opened_at"
        return f"({' OR '.join(_within(one, column) for one in self.windows)})"

    def _read(self, ids: Sequence[str]) -> "Iterator[Trajectory]":
        sessions = self._halved(ids, sessions_sql, kind=SessionRow)
        calls: dict[str, list[CallRow]] = defaultdict(list)
        for row in self._halved(ids, calls_sql, kind=CallRow):
            calls[row.session_id].append(row)
        parts: dict[str, list[PartRow]] = defaultdict(list)
        if self.with_parts:
            for part in self._halved(ids, parts_sql, kind=PartRow):
                parts[part.session_id].append(part)
        for one in sorted(sessions, key=lambda row: row.session_id):
            name = one.session_id
            found = trajectory_of(one, calls[name], parts=parts[name])
            is_partial = name in self._too_big or is_cut(one, calls[name])
            whole = self._whole(found) if is_partial else found
            if whole is not None:
                yield whole
            else:
                self.leave_out("payloads too big for rows, and no trajectory is left")

    def _whole(self, found: "Trajectory") -> "Trajectory | None":
        """With its own calls and input; rewards stay those that were recorded."""
        from acp_spec.model.trajectory import Trajectory

        try:
            text = self.remote.text("get_trajectory", found.session_id)
        except AcpFailure as failure:
            if failure.error.reason != Reason.NOT_FOUND.value:
                raise
            return None
        whole = msgspec.json.decode(text, type=Trajectory)
        return msgspec.structs.replace(whole, rewards=found.rewards)

    def _halved(
        self, ids: Sequence[str], sql: Callable[[Sequence[str]], str], *, kind: type[T]
    ) -> list[T]:
        """All rows, in as many questions as their size takes; of a session that is too big alone
        none, and its trajectory is read."""
        try:
            return self._ask(sql(ids), kind)
        except AcpFailure as failure:
            if not _is_too_big(failure):
                raise
        if len(ids) == 1:
            self._too_big.update(ids)
            return []
        middle = len(ids) // 2
        first = self._halved(ids[:middle], sql, kind=kind)
        return [*first, *self._halved(ids[middle:], sql, kind=kind)]

    def _ask(self, sql: str, kind: type[T]) -> list[T]:
        from gateway.runtime.records import RecordsQuery
        from gateway.transports.records_routes import RecordsAnswer

        asked = RecordsQuery(sql=sql)
        answer = self.remote.operate(RecordsAnswer, "POST /v1/records/query", body=asked)
        return msgspec.json.decode(answer.rows, type=list[kind])  # type: ignore[valid-type]

    def _lag_bytes(self) -> int:
        """What the records had not read yet at the end."""
        from gateway.stores.records.feed_status import FeedingStatus
        from gateway.transports.records_routes import RecordsStatus

        status = self.remote.operate(RecordsStatus, "GET /v1/records/status")
        text = bytes(status.feed)
        return msgspec.json.decode(text, type=FeedingStatus).waiting_bytes if text else 0


def _is_too_big(failure: AcpFailure) -> bool:
    said = failure.error.message
    return failure.error.reason == Reason.INVALID_REQUEST.value and any(
        words in said for words in _TOO_BIG
    )


def _within(window: "Window", column: str) -> str:
    bounds = [f"{column} IS NOT NULL"]
    if window.since_ms is not None:
        bounds.append(f"{column} >= fromUnixTimestamp64Milli({window.since_ms:d})")
    if window.until_ms is not None:
        bounds.append(f"{column} < fromUnixTimestamp64Milli({window.until_ms:d})")
    if window.tenant:
        bounds.append(f"tenant = {quoted(window.tenant)}")
    if window.workflow:
        bounds.append(names_it("workflow", window.workflow, ends="@"))
    return f"({' AND '.join(bounds)})"
