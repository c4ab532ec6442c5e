"""Which instances are attached, and what a hello, a drop and a return mean (SPEC section 10).

The highest incarnation of an instance wins. A dropped instance is unreachable and keeps its calls
for `reattach_grace_ms`; who is not back by then has left. An answer is acknowledged once it is on
disk, many at a time, so that acknowledging costs no sync of its own per call.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.bindings.fields import VERSION
from acp_spec.codec import frames
from acp_spec.model.attach import (
    AttachHeartbeat,
    CancelOutcome,
    Drain,
    Hello,
    Key,
    OperationOutcome,
    Welcome,
)
from acp_spec.model.card import Card
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.session import Component, Heartbeat
from gateway.runtime.connection import Connection, Outgoing, Sink
from gateway.runtime.principal import Principal
from gateway.transports.attach_connection import AttachConnection, Promise
from gateway.transports.attach_link import Link
from gateway.transports.auth import check_version

# Answers of so long are acknowledged together: ten syncs a second at most are ours.
ACK_EVERY_S: Final = 0.1
# Two beats may be lost, as with probes; the third tells.
BEATS_MISSED_MAX: Final = 3


class Attachments(Protocol):
    """What the registry does for attached instances."""

    def attach(
        self, card: Card, connection: Connection, *, instance_id: str, principal: Principal
    ) -> Component: ...

    def detach(self, component_id: str, connection: Connection) -> None: ...

    def set_reachable(self, component_id: str, reachable: bool) -> None: ...

    async def heartbeat(self, component_id: str, beat: Heartbeat) -> Component: ...

    async def drain(self, component_id: str) -> Component: ...


Adopt = Callable[[Outgoing, Sink], None]


class Orphans(Protocol):
    """Attempts that an earlier run of this gateway sent and nobody has answered for yet."""

    def claim(self, component_id: str, known: frozenset[Key], *, adopt: Adopt) -> None:
        """The instance is back with these attempts: adopt them; its others are lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachOptions:
    """Times and limits of attached instances."""

    reattach_grace_ms: int = 10_000
    heartbeat_ms: int = 5_000
    max_response_bytes: int = 4 * 1024 * 1024

    @property
    def silence_s(self) -> float:
        """A control stream that says nothing for so long is dead."""
        return self.heartbeat_ms * BEATS_MISSED_MAX / 1000


@dataclass(slots=True, kw_only=True, eq=False)
class Attached:
    """One instance, from its first hello until it has left."""

    place: tuple[str, str]
    incarnation: int
    component_id: str
    connection: AttachConnection
    link: Link | None = None
    leaving: bool = False
    expiry: asyncio.TimerHandle | None = None
    unacked: list[Key] = field(default_factory=list)


class AttachHub:
    """All attached instances of one gateway. Used on the loop's thread."""

    def __init__(
        self,
        registry: Attachments,
        orphans: Orphans,
        *,
        after_sync: Callable[[Callable[[], None]], None],
        new_id: Callable[[], str],
        options: AttachOptions = AttachOptions(),
    ) -> None:
        self.options = options
        self._registry = registry
        self._orphans = orphans
        self._after_sync = after_sync
        self._new_id = new_id
        self._places: dict[tuple[str, str], Attached] = {}
        self._links: dict[str, Attached] = {}
        self._acks: asyncio.TimerHandle | None = None
        self._opened = asyncio.Event()
        self._is_draining = False

    @property
    def attached(self) -> int:
        """Instances whose streams are open."""
        return len(self._links)

    @property
    def waiting(self) -> int:
        """Attempts that wait for a credit or for their instance."""
        return sum(one.connection.waiting for one in self._places.values())

    def links(self) -> tuple[Link, ...]:
        """The pairs of streams that are open."""
        return tuple(one.link for one in self._links.values() if one.link is not None)

    def open(self) -> None:
        """Recovery is through: instances may come, and claim what they still have."""
        self._opened.set()

    async def opened(self) -> None:
        await self._opened.wait()

    # ---- coming and going ------------------------------------------------------------------------

    def hello(self, hello: Hello, principal: Principal) -> Link:
        """Admit the instance and welcome it. Raises AcpFailure: why it may not attach."""
        self._check(hello)
        link = Link(self._new_id())
        place = (hello.card.name, hello.instance_id)
        old = self._places.get(place)
        attached = self._admit(hello, principal, old=old)
        self._take_over(old, attached)
        known = frozenset(key.key for key in (*hello.in_flight, *hello.finished_unacked))
        same_process = old is not None and old.incarnation == hello.incarnation
        attached.link, attached.incarnation, attached.leaving = link, hello.incarnation, False
        self._places[place] = self._links[link.attachment_id] = attached
        attached.connection.linked(link, Promise(known=known, same_process=same_process))
        self._orphans.claim(attached.component_id, known, adopt=attached.connection.adopt)
        link.say(
            Welcome(
                component_id=attached.component_id,
                acp_version=VERSION,
                reattach_grace_ms=self.options.reattach_grace_ms,
                heartbeat_ms=self.options.heartbeat_ms,
                max_frame_bytes=frames.FRAME_BYTES_MAX,
                attachment_id=link.attachment_id,
            )
        )
        return link

    def _check(self, hello: Hello) -> None:
        check_version(hello.acp_version)
        if self._is_draining:
            text = "this gateway is stopping: attach to another, or again in a moment"
            raise AcpFailure(error(Reason.UNAVAILABLE, text, boundary=Boundary.GATEWAY))
        old = self._places.get((hello.card.name, hello.instance_id))
        if old is not None and hello.incarnation < old.incarnation:
            text = (
                f"instance {hello.instance_id!r} has attached with a higher incarnation:"
                f" {old.incarnation}, yours is {hello.incarnation}; stop this process"
            )
            raise AcpFailure(error(Reason.ALREADY_EXISTS, text))

    def _admit(self, hello: Hello, principal: Principal, *, old: Attached | None) -> Attached:
        """The instance with the connection it had, if its card is the same."""
        place = (hello.card.name, hello.instance_id)
        if old is not None and old.connection.card == hello.card:
            attached, connection = old, old.connection
        else:
            connection = AttachConnection(
                hello.card,
                max_response_bytes=self.options.max_response_bytes,
                acknowledge=lambda key: self._acknowledge(attached, key),
            )
            attached = Attached(place=place, incarnation=0, component_id="", connection=connection)
        component = self._registry.attach(
            hello.card, connection, instance_id=hello.instance_id, principal=principal
        )
        attached.component_id = component.component_id
        return attached

    def _take_over(self, old: Attached | None, new: Attached) -> None:
        """End the older stream; an instance of another card is another one, and lost."""
        if old is None:
            return
        if old.expiry is not None:
            old.expiry.cancel()
            old.expiry = None
        link, old.link = old.link, None
        if link is not None:
            self._links.pop(link.attachment_id, None)
            link.end(error(Reason.ALREADY_EXISTS, "this instance has attached anew"))
        if old is not new:
            self._leave(old, "the instance was restarted with another card")

    def find(self, attachment_id: str) -> tuple[Link, Attached]:
        """The link that a calls stream belongs to, once; raises NOT_FOUND."""
        attached = self._links.get(attachment_id)
        if attached is None or attached.link is None or attached.link.has_calls:
            text = "no attachment of that id waits for its calls stream: say hello again"
            raise AcpFailure(error(Reason.NOT_FOUND, text))
        attached.link.has_calls = True
        return attached.link, attached

    def dropped(self, link: Link) -> None:
        """A stream of this link ended, from whichever side."""
        link.end()
        attached = self._links.pop(link.attachment_id, None)
        if attached is None or attached.link is not link:
            return
        attached.link = None
        attached.connection.unlinked()
        if self._is_draining:
            return
        if attached.leaving:
            self._leave(attached, "the instance has left")
            return
        self._registry.set_reachable(attached.component_id, False)
        grace_s = self.options.reattach_grace_ms / 1000
        why = f"the instance did not come back within {self.options.reattach_grace_ms} ms"
        loop = asyncio.get_running_loop()
        attached.expiry = loop.call_later(grace_s, partial(self._leave, attached, why))

    def _leave(self, attached: Attached, why: str) -> None:
        if self._places.get(attached.place) is attached:
            del self._places[attached.place]
        attached.connection.give_up(why)
        self._registry.detach(attached.component_id, attached.connection)

    # ---- what a component says on its control stream ---------------------------------------------

    async def said(self, link: Link, said: frames.ControlFromComponent) -> None:
        """Raises AcpFailure for what ends the streams."""
        attached = self._links.get(link.attachment_id)
        if attached is None:
            return
        match said:
            case AttachHeartbeat(signals=signals):
                await self._beat(attached, link, beat=Heartbeat(signals=signals))
            case CancelOutcome() | OperationOutcome():
                attached.connection.heard(said)
            case Drain():
                attached.leaving = True
                await self._registry.drain(attached.component_id)
                attached.connection.refuse_waiting("the instance is leaving")
                link.say(Drain())
            case Hello():
                text = "hello comes first on a control stream, and once"
                raise AcpFailure(error(Reason.INVALID_REQUEST, text))

    async def _beat(self, attached: Attached, link: Link, *, beat: Heartbeat) -> None:
        component = await self._registry.heartbeat(attached.component_id, beat)
        attached.connection.signals = component.signals
        link.say(AttachHeartbeat())

    # ---- acknowledging ---------------------------------------------------------------------------

    def _acknowledge(self, attached: Attached, key: Key) -> None:
        attached.unacked.append(key)
        if self._acks is None and not self._is_draining:
            loop = asyncio.get_running_loop()
            self._acks = loop.call_later(ACK_EVERY_S, self._sync_acks)

    def _sync_acks(self) -> None:
        self._acks = None
        answered = [(one, one.unacked) for one in self._places.values() if one.unacked]
        for attached, _ in answered:
            attached.unacked = []
        self._after_sync(lambda: _say_acks(answered))

    # ---- the end ---------------------------------------------------------------------------------

    def drain(self, grace_ms: int) -> None:
        """The gateway stops: attached components hear it; answers still come in."""
        self._is_draining = True
        if self._acks is not None:
            self._acks.cancel()
        for attached in self._places.values():
            if attached.expiry is not None:
                attached.expiry.cancel()
            if attached.link is not None:
                attached.link.say(Drain(grace_ms=grace_ms))

    def close(self) -> None:
        """End every stream. Attempts stay open in the journal: the next start adopts them."""
        self._is_draining = True
        stopping = error(Reason.UNAVAILABLE, "the gateway has stopped", boundary=Boundary.GATEWAY)
        for attached in self._places.values():
            attached.connection.forsake()
            if attached.link is not None:
                attached.link.end(msgspec.structs.replace(stopping, retry_after_ms=100))


def _say_acks(answered: list[tuple[Attached, list[Key]]]) -> None:
    for attached, keys in answered:
        if attached.link is not None:
            attached.link.acknowledge(keys)
