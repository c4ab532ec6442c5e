"""The audit log: who changed what and when, append-only, each entry chained to the one before.

An entry's digest is SHA-256 over its own canonical JSON, which carries the digest of the entry
before it: nothing can be changed, taken out or put in between without breaking the chain at that
place. What the chain alone cannot show is a log that was cut at its end; `head` is what a person
writes down elsewhere to see that too.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec

from gateway.stores.durable import Durable
from gateway.stores.ports import Store, Table

FIRST: Final = "0" * 64
"""The `previous` of entry number 1."""
_NUMBER_BYTES: Final = 8
TURN: Final = 200
"""Entries read before others may work: some three milliseconds."""
DETAILS_BYTES_MAX: Final = 64 * 1024
"""Details name a change; larger ones stand in the log by their size and digest."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One change. `actor`: the token's subject; `subject`: what was changed, such as
    `workflow:hotline@1.2.0`; `details`: a JSON object that only the action's own reader knows."""

    number: int
    at_ms: int
    tenant: str
    actor: str
    action: str
    subject: str
    details: msgspec.Raw = msgspec.Raw(b"{}")
    previous: str = FIRST
    digest: str = ""


class Spoilt(Entry, frozen=True, kw_only=True):
    """A row that is no entry any more, in its place: somebody wrote over it. Its digest is of what
    stands there."""


class Break(msgspec.Struct, frozen=True, kw_only=True):
    """Where a chain is broken, for the person who has to find out why."""

    number: int
    message: str


class AuditVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the chain is whole; `number` and `message` say where it is not."""

    whole: bool
    entries: int
    head: str
    number: int = 0
    message: str = ""


class AuditLog:
    """The one log of a gateway. `record` puts at once; who answers a person awaits `synced`.

    It never refuses: whoever records has changed something already, and would be half done.
    """

    def __init__(self, store: Store, durable: Durable, *, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._durable = durable
        self._now_ms = now_ms
        self._head, self.spoilt = _last(store)
        """Whether the newest entry cannot be read: the log goes on behind it, and is not whole."""

    @property
    def head(self) -> tuple[int, str]:
        """Number and digest of the newest entry; (0, FIRST) of an empty log."""
        return self._head

    def record(
        self, action: str, subject: str, *, actor: str, tenant: str, details: object = None
    ) -> Entry:
        """Append one change. `details` is anything that JSON can say; only its size and digest
        are kept where it is large."""
        number, previous = self._head
        text = _brief(msgspec.json.encode(details if details is not None else {}))
        entry = _sealed(
            Entry(
                number=number + 1,
                at_ms=self._now_ms(),
                tenant=tenant,
                actor=actor,
                action=action,
                subject=subject,
                details=msgspec.Raw(text),
                previous=previous,
            )
        )
        self._durable.put(Table.AUDIT, _key(entry.number), msgspec.json.encode(entry))
        self._head = (entry.number, entry.digest)
        return entry

    async def synced(self) -> None:
        """Return once everything recorded is on disk."""
        await self._durable.synced()

    def entries(self, *, after: int = 0, tenant: str | None = None) -> Iterator[Entry]:
        """The entries beyond number `after`, oldest first; of one tenant only, if it is named."""
        for entry in read_entries(self._store, after=after):
            if tenant is None or entry.tenant == tenant:
                yield entry

    async def in_turns(self, *, after: int = 0) -> AsyncIterator[Entry]:
        """The same of all tenants, letting others work in between: a log of years is long."""
        while True:
            page = list(islice(_rows(self._store, after=after), TURN))
            for _, entry in page:
                yield entry
            if len(page) < TURN:
                return
            after = page[-1][0]
            await asyncio.sleep(0)


def read_entries(store: Store, *, after: int = 0) -> Iterator[Entry]:
    """The written entries of a store, oldest first; one that cannot be read is `Spoilt`."""
    return (entry for _, entry in _rows(store, after=after))


def _rows(store: Store, *, after: int) -> Iterator[tuple[int, Entry]]:
    """Entries with their places, which nobody changes without moving the row."""
    start = _key(after) if after else b""
    for key, value in store.scan(Table.AUDIT, b"", after=start):
        place = int.from_bytes(key, "big")
        yield place, _read(place, value)


def _read(place: int, value: bytes) -> Entry:
    try:
        return msgspec.json.decode(value, type=Entry)
    except msgspec.DecodeError:
        digest = hashlib.sha256(value).hexdigest()
        return Spoilt(
            number=place, at_ms=0, tenant="", actor="", action="", subject="", digest=digest
        )


class Walk:
    """Follows a chain from its first entry: `add` each, then ask for the `verdict`. With `head`, a
    digest noted earlier, a cut end shows too."""

    def __init__(self, head: str = "") -> None:
        self._head, self._is_seen = head, not head
        self._count, self._previous = 0, FIRST
        self.broken: Break | None = None

    def add(self, entry: Entry) -> None:
        self._count += 1
        if self.broken is None:
            wrong = _wrong(entry, number=self._count, previous=self._previous)
            self.broken = Break(number=self._count, message=wrong) if wrong else None
        self._previous = entry.digest
        self._is_seen = self._is_seen or entry.digest == self._head

    def verdict(self) -> AuditVerdict:
        broken, count = self.broken, self._count
        if broken is None and not self._is_seen:
            broken = Break(number=count, message="the digest you noted is not in the chain: cut?")
        return AuditVerdict(
            whole=broken is None,
            entries=count,
            head=self._previous,
            number=broken.number if broken else 0,
            message=broken.message if broken else "",
        )


def _wrong(entry: Entry, *, number: int, previous: str) -> str:
    """Why it cannot be the entry of this number behind that one; nothing when it can."""
    if entry.number != number:
        return f"entry {number} is missing"
    if isinstance(entry, Spoilt):
        return "it cannot be read: something else was written over it"
    if entry.previous != previous:
        return "it does not follow from the entry before it"
    if _sealed(entry).digest != entry.digest:
        return "its text was changed after it was written"
    return ""


def first_break(entries: Iterable[Entry]) -> Break | None:
    """The first entry that does not follow from the one before it, or None: the chain is whole."""
    walk = Walk()
    for entry in entries:
        walk.add(entry)
    return walk.broken


def verdict_of(entries: Iterable[Entry], *, head: str) -> AuditVerdict:
    """Follow the chain; with `head`, a digest noted earlier, a cut end shows too."""
    walk = Walk(head)
    for entry in entries:
        walk.add(entry)
    return walk.verdict()


def _brief(text: bytes) -> bytes:
    if len(text) <= DETAILS_BYTES_MAX:
        return text
    digest = hashlib.sha256(text).hexdigest()
    return msgspec.json.encode({"details_bytes": len(text), "details_sha256": digest})


def _sealed(entry: Entry) -> Entry:
    """The entry with the digest of all it says."""
    text = msgspec.json.encode(msgspec.structs.replace(entry, digest=""))
    return msgspec.structs.replace(entry, digest=hashlib.sha256(text).hexdigest())


def _last(store: Store) -> tuple[tuple[int, str], bool]:
    """Place and digest of the newest row, and whether it is spoilt. By its place: a number that
    somebody made smaller would have the next entries written over those that are there."""
    for key, value in store.scan(Table.AUDIT, b"", reverse=True):
        place = int.from_bytes(key, "big")
        entry = _read(place, value)
        return (place, entry.digest), isinstance(entry, Spoilt)
    return (0, FIRST), False


def _key(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "big")
