"""The archive as the gateway sees it: a pass now and then, in a process of its own.

A pass is started when something is due: a file old enough, a deletion, a wish. What a deletion
still has to reach stands in the store until a pass says that nothing of it is left, so a kill loses
no deletion. Whatever becomes of a pass, sessions go on and the next one takes up what it left.
"""

import asyncio
import contextlib
import enum
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import AcpFailure, Reason
from gateway.runtime.lasting import broken_off
from gateway.stores.archive.order import (
    Checked,
    Dropped,
    Erased,
    Expiring,
    Moved,
    Over,
    Said,
    Trouble,
)
from gateway.stores.durable import Durable
from gateway.stores.errors import StoreError
from gateway.stores.ports import Store, Table
from gateway.stores.tables import ARCHIVE_FILES_ROW, archive_erasing_row
from gateway.telemetry.logs import get_log

ERASED_AT_ONCE: Final = 1_000
"""Deletions that one pass takes; the next one follows at once."""

TROUBLES_MAX: Final = 20
"""Kept of a pass, to show; the log has all of them."""

BACKOFF_FIRST_S, BACKOFF_MAX_S = 1.0, 300.0
"""Deletions are tried again soon; a store that is away for long is asked each five minutes."""

log = get_log("gateway.archive")


class ArchiveState(enum.Enum):
    """OFF: not enabled, or there is nothing to run it with."""

    OFF = "OFF"
    IDLE = "IDLE"
    RUNNING = "RUNNING"


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the next pass is for, besides moving what is old enough."""

    erase: tuple[str, ...] = ()
    check: bool = False


class RunningPass(Protocol):
    """A started process."""

    async def said(self) -> Said | None:
        """What it tells next; None once it has ended."""

    def agree(self) -> None:
        """Let it go on."""

    async def wait(self) -> int:
        """Its exit code."""

    def kill(self) -> None:
        """End it at once."""


Launch = Callable[[Wish], Awaitable[RunningPass]]
Expire = Callable[[Expiring], Awaitable[None]]
"""Erase what of a file has had its time; when it returns, the file may go."""


class ArchiveStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`erasing`: deletions that have not reached the archive yet. `files`: in the archive, after
    the last pass. `waiting`: files old enough that the records have not got yet. `moved`,
    `dropped`, `checked`, `healed`: files since the start. `troubles`: of the last pass; `tries`: in
    a row that did not end well.
    """

    state: ArchiveState
    erasing: int = 0
    files: int = 0
    waiting: int = 0
    passes: int = 0
    moved: int = 0
    moved_bytes: int = 0
    dropped: int = 0
    checked: int = 0
    healed: int = 0
    tries: int = 0
    troubles: tuple[str, ...] = ()


class ArchiveParts(msgspec.Struct, frozen=True, kw_only=True):
    """`due`: whether a file is old enough, or over; asked on a thread. `has_left`: whether any file
    ever left. `missing`: what to install, empty if all is there.
    """

    launch: Launch
    due: Callable[[], bool]
    has_left: Callable[[], bool]
    missing: Callable[[], str]
    every_s: float


async def _nothing_expires(file: Expiring) -> None:
    raise AssertionError("the assembly says what becomes of sessions that have had their time")


class Archive:
    """One gateway's archive. Used on the event loop's thread; `close` it with the gateway."""

    def __init__(self, parts: ArchiveParts, store: Store, *, durable: Durable) -> None:
        self._parts = parts
        self.expire: Expire = _nothing_expires
        self._store = store
        self._durable = durable
        self._wake = asyncio.Event()
        self._wants_pass = False
        self._wants_check = False
        self._keeper: asyncio.Task[None] | None = None
        self._pass: RunningPass | None = None
        self._status = ArchiveStatus(state=ArchiveState.OFF, files=self._seen())

    @property
    def status(self) -> ArchiveStatus:
        """How it stands."""
        return msgspec.structs.replace(self.counted, erasing=self.erasing)

    @property
    def counted(self) -> ArchiveStatus:
        """The same but for `erasing`, which takes a look into the store."""
        return msgspec.structs.replace(self._status, state=self._state())

    @property
    def erasing(self) -> int:
        """Deletions that have not reached the archive yet."""
        return len(self._pending())

    def start(self) -> None:
        """Begin to look; a second call changes nothing."""
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep(), name="archive")

    async def close(self) -> None:
        """End a pass that is under way; the next one goes on."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            await broken_off(keeper)
        await self._end()

    def forget(self, session_id: str) -> None:
        """In the batch of this tick: the archive still has to be rid of this session.

        Nothing to do where no file ever left, unless a pass is about to change that.
        """
        if self._pass is None and not self._parts.has_left():
            return
        self._durable.put(Table.META, archive_erasing_row(session_id), b"")
        self._wake.set()  # whoever waits runs after the end of this tick, which writes the row

    def ask(self, *, check: bool) -> None:
        """A pass now, also if nothing is due; `check`: read all of it. UNIMPLEMENTED without the
        extra.
        """
        missing = self._parts.missing()
        if missing:
            raise AcpFailure(error(Reason.UNIMPLEMENTED, missing, boundary=Boundary.GATEWAY))
        self._wants_pass = True
        self._wants_check = self._wants_check or check
        self._wake.set()

    # ---- when ----------------------------------------------------------------------------------

    async def _keep(self) -> None:
        """Look, run a pass if there is something to do, wait."""
        told_missing = False
        while True:
            self._wake.clear()
            wish = self._wish()
            is_due = self._wants_pass or bool(wish.erase) or await asyncio.to_thread(self._is_due)
            missing = self._parts.missing() if is_due else ""
            if missing and not told_missing:
                log.error("archive_extra_missing", hint=missing)
                told_missing = True
            if is_due and not missing:
                await self._run(wish)
            if self._status.tries:
                pause_s = min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2 ** min(self._status.tries, 10))
                await asyncio.sleep(min(pause_s, self._parts.every_s))
            elif not self._pending() or missing:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self._parts.every_s):
                        await self._wake.wait()

    def _is_due(self) -> bool:
        try:
            return self._parts.due()
        except OSError:
            return True  # the pass finds the same, and says it

    def _wish(self) -> Wish:
        return Wish(erase=self._pending()[:ERASED_AT_ONCE], check=self._wants_check)

    def _seen(self) -> int:
        """How many files the last pass saw, be it before this start: the next may be far off."""
        try:
            return int(self._store.get(Table.META, ARCHIVE_FILES_ROW) or 0)
        except StoreError:
            return 0  # readiness tells of it

    def _pending(self) -> tuple[str, ...]:
        prefix = archive_erasing_row()
        try:
            rows = self._store.scan(Table.META, prefix)
            return tuple(key[len(prefix) :].decode() for key, _ in rows)
        except StoreError:
            return ()  # readiness tells of it

    # ---- one pass ------------------------------------------------------------------------------

    async def _run(self, wish: Wish) -> None:
        self._wants_pass = self._wants_check = False
        self._status = msgspec.structs.replace(self._status, troubles=())
        try:
            self._pass = await self._parts.launch(wish)
            while (said := await self._pass.said()) is not None:
                await self._hear(said)
            code = await self._pass.wait()
        except (OSError, StoreError, msgspec.DecodeError) as problem:
            code = -1
            self._trouble(f"the pass broke off: {problem}")
        finally:
            await self._end()
        tries = self._status.tries + 1 if code else 0
        passes = self._status.passes + 1
        self._status = msgspec.structs.replace(self._status, tries=tries, passes=passes)
        if code:
            self._wants_check = self._wants_check or wish.check
            log.warning("archive_pass_failed", code=code, tries=tries)

    async def _hear(self, said: Said) -> None:
        status, change = self._status, msgspec.structs.replace
        match said:
            case Moved():
                moved_bytes = status.moved_bytes + said.raw_bytes
                self._status = change(status, moved=status.moved + 1, moved_bytes=moved_bytes)
                log.info("archived", file=said.file, lines=said.lines, bytes=said.raw_bytes)
            case Erased():
                await self._erased(said)
            case Expiring():
                await self.expire(said)
                assert self._pass is not None
                self._pass.agree()
            case Dropped():
                self._status = change(status, dropped=status.dropped + 1)
                log.info("archive_expired", file=said.file)
            case Checked():
                healed = status.healed + said.healed
                self._status = change(status, checked=status.checked + 1, healed=healed)
            case Trouble():
                self._trouble(said.what)
            case Over():
                self._status = change(status, files=said.files, waiting=said.waiting)
                self._durable.put(Table.META, ARCHIVE_FILES_ROW, str(said.files).encode())

    async def _erased(self, said: Erased) -> None:
        for session_id in said.session_ids:
            self._durable.delete(Table.META, archive_erasing_row(session_id))
        await self._durable.synced()

    def _trouble(self, what: str) -> None:
        log.error("archive_trouble", what=what)
        troubles = (*self._status.troubles, what)[:TROUBLES_MAX]
        self._status = msgspec.structs.replace(self._status, troubles=troubles)

    async def _end(self) -> None:
        """Make sure that no process is left."""
        ended, self._pass = self._pass, None
        if ended is not None:
            ended.kill()
            await ended.wait()

    def _state(self) -> ArchiveState:
        if self._keeper is None:
            return ArchiveState.OFF
        return ArchiveState.RUNNING if self._pass is not None else ArchiveState.IDLE
