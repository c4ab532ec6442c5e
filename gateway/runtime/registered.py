"""One registered instance: what of it is durable, what is only known now, and its state.

States (SPEC section 6): ACTIVE; DRAINING gets no calls any more; UNREACHABLE does not answer probes
and is still tried; EXPIRED gave no sign of life for a whole lease and is soon removed.
"""

import enum
import hashlib
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from acp_spec.model.card import Card
from acp_spec.model.context import Signals
from acp_spec.model.enums import Transport
from acp_spec.model.session import Component, Lease
from acp_spec.model.times import rfc3339
from gateway.runtime.connection import Connection


class State(enum.Enum):
    ACTIVE = "ACTIVE"
    DRAINING = "DRAINING"
    UNREACHABLE = "UNREACHABLE"
    EXPIRED = "EXPIRED"


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """How an instance is reached; `auth` names a credential. `max_request_bytes` is its card's."""

    url: str
    transport: Transport
    auth: str = ""
    max_request_bytes: int = 0


class Dialer(Protocol):
    """Makes connections. It opens no socket before the first call or question."""

    def normal_url(self, url: str, transport: Transport) -> str:
        """The one form of the URL; raises ValueError with what to write instead."""

    def open(self, endpoint: Endpoint) -> Connection:
        """A connection to it; raises ValueError as `normal_url` does."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """The durable part of a registration. New fields get defaults: old rows stay readable."""

    component_id: str
    endpoint: Endpoint
    card: Card
    digest: str
    lease_seconds: int
    registered_at_ms: int
    labels: dict[str, str] = {}
    draining: bool = False


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """An instance as a driver uses it: a snapshot, with the connection that is live."""

    component_id: str
    card: Card
    digest: str
    connection: Connection
    signals: Signals | None = None
    signals_at_ms: int = 0
    auth: str = ""
    labels: dict[str, str] = {}

    @property
    def pin(self) -> str:
        return f"{self.card.name}@{self.card.version}"


@dataclass(slots=True, kw_only=True)
class Entry:
    """An instance in the registry. Times ending in `_mono` are of the monotonic clock.

    `is_other`: another version answers at its address now; that one was never let in there.
    """

    row: Row
    last_seen_mono: float
    connection: Connection | None = None
    is_attached: bool = False
    heartbeat_mono: float | None = None
    expired_mono: float | None = None
    failures: int = 0
    is_unreachable: bool = False
    is_other: bool = False
    signals: Signals | None = None
    signals_at_ms: int = 0
    instance: Instance | None = field(default=None, repr=False)

    @property
    def id(self) -> str:
        return self.row.component_id

    @property
    def pin(self) -> str:
        return f"{self.row.card.name}@{self.row.card.version}"

    @property
    def state(self) -> State:
        if self.expired_mono is not None:
            return State.EXPIRED
        if self.row.draining:
            return State.DRAINING
        return State.UNREACHABLE if self.is_unreachable or self.is_other else State.ACTIVE

    @property
    def is_alive(self) -> bool:
        """A sign of life is no news: it answers, and its lease has not ended."""
        return self.expired_mono is None and not self.is_unreachable

    @property
    def lease_ends_mono(self) -> float:
        return self.last_seen_mono + self.row.lease_seconds * 1000

    def seen(self, now_mono: float) -> None:
        """A sign of life: the lease begins anew."""
        self.last_seen_mono = now_mono
        self.expired_mono = None
        self.failures = 0
        self.is_unreachable = False

    def weight(self, session_id: str) -> bytes:
        """For a session: the heaviest instance serves it (rendezvous hash)."""
        return hashlib.blake2b(f"{session_id}\0{self.id}".encode(), digest_size=8).digest()

    def view(self, *, now_ms: int, now_mono: float) -> Component:
        """As the API shows it; the credential's name is never told."""
        row = self.row
        ends_ms = now_ms + int(self.lease_ends_mono - now_mono)
        return Component(
            component_id=self.id,
            card=row.card,
            lease=Lease(lease_seconds=row.lease_seconds, expires_at=rfc3339(ends_ms)),
            url=row.endpoint.url,
            transport=row.endpoint.transport,
            digest=row.digest,
            labels=row.labels,
            state=self.state.value,
            signals=self.signals,
        )


def component_id(transport: Transport, place: str, *, card: Card) -> str:
    """The same instance (URL, or attached instance id) of one version has one id, for ever."""
    text = f"{transport.value}\0{place}\0{card.name}\0{card.version}"
    return "cmp_" + hashlib.sha256(text.encode()).hexdigest()[:20]
