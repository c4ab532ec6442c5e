"""The audit log: who changed what and when, append-only, each entry chained to the one before.

An entry's digest is SHA-256 over its own canonical JSON, which carries the digest of the entry
before it: nothing can be changed, taken out or put in between without breaking the chain at that
place. What the chain alone cannot show is a log that was cut at its end; `head` is what a person
writes down elsewhere to see that too.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from gateway.stores.durable import Durable
from gateway.stores.ports import Store, Table

FIRST: Final = "0" * 64
"""The `previous` of entry number 1."""
_NUMBER_BYTES: Final = 8
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
        self._head = _last(store)

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


def read_entries(store: Store, *, after: int = 0) -> Iterator[Entry]:
    """The written entries of a store, oldest first. Raises msgspec.DecodeError on a spoilt row."""
    start = _key(after) if after else b""
    for _, value in store.scan(Table.AUDIT, b"", after=start):
        yield msgspec.json.decode(value, type=Entry)


def first_break(entries: Iterable[Entry]) -> Break | None:
    """The first entry that does not follow from the one before it, or None: the chain is whole."""
    previous = FIRST
    for number, entry in enumerate(entries, start=1):
        if entry.number != number:
            return Break(number=number, message=f"entry {number} is missing")
        if entry.previous != previous:
            return Break(number=number, message="it does not follow from the entry before it")
        if _sealed(entry).digest != entry.digest:
            return Break(number=number, message="its text was changed after it was written")
        previous = entry.digest
    return None


def verdict_of(entries: Iterable[Entry], *, head: str) -> AuditVerdict:
    """Follow the chain; with `head`, a digest noted earlier, a cut end shows too."""
    every = tuple(entries)
    broken = first_break(every)
    if broken is None and head and all(entry.digest != head for entry in every):
        broken = Break(number=len(every), message="the digest you noted is not in the chain: cut?")
    return AuditVerdict(
        whole=broken is None,
        entries=len(every),
        head=every[-1].digest if every else FIRST,
        number=broken.number if broken else 0,
        message=broken.message if broken else "",
    )


def _brief(text: bytes) -> bytes:
    if len(text) <= DETAILS_BYTES_MAX:
        return text
    digest = hashlib.sha256(text).hexdigest()
    return msgspec.json.encode({"details_bytes": len(text), "details_sha256": digest})


def _sealed(entry: Entry) -> Entry:
    """The entry with the digest of all it says."""
    text = msgspec.json.encode(msgspec.structs.replace(entry, digest=""))
    return msgspec.structs.replace(entry, digest=hashlib.sha256(text).hexdigest())


def _last(store: Store) -> tuple[int, str]:
    for _, value in store.scan(Table.AUDIT, b"", reverse=True):
        entry = msgspec.json.decode(value, type=Entry)
        return entry.number, entry.digest
    return 0, FIRST


def _key(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "big")
