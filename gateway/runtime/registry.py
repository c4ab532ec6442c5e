"""Who is registered: instances with leases, the catalog of versions, the replica for a session.

Registrations and the active version of each name are durable; leases and health are not: after a
start every instance counts as just seen, because the gateway's own absence is nobody's fault. All
methods are called on the event loop's thread. The registry sends no call and retries nothing.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.card import Card, Health
from acp_spec.model.context import Signals
from acp_spec.model.enums import Boundary, HealthStatus, SideEffect, Transport
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.session import Component, Heartbeat, RegisterRequest
from gateway.engine.catalog import Catalog, Offer
from gateway.runtime.admission import (
    RegistryLimits,
    check_auth,
    check_card,
    check_labels,
    failure,
    granted_lease_s,
)
from gateway.runtime.card_check import card_digest
from gateway.runtime.clock import Clock
from gateway.runtime.connection import Connection
from gateway.runtime.permits import PermitComponent, permit_all
from gateway.runtime.principal import Principal
from gateway.runtime.registered import Dialer, Endpoint, Entry, Instance, Row, State, component_id
from gateway.runtime.targets import Target
from gateway.stores.durable import Durable
from gateway.stores.errors import StoreError
from gateway.stores.ports import Store, Table

_ROWS: Final = b"cmp_"
_ACTIVE: Final = b"active\0"
_rows: Final = msgspec.json.Decoder(Row)


class Registry:
    """See the module."""

    def __init__(
        self,
        store: Store,
        durable: Durable,
        *,
        dialer: Dialer,
        clock: Clock,
        limits: RegistryLimits = RegistryLimits(),
    ) -> None:
        self._durable = durable
        self._dialer = dialer
        self._clock = clock
        self._limits = limits
        self._entries: dict[str, Entry] = {}
        self._active: dict[str, str] = {}
        self._ready: dict[str, tuple[Entry, ...]] = {}
        self._last_ready_ms: dict[str, int] = {}
        self._catalog: Catalog | None = None
        self._on_change: list[Callable[[], None]] = []
        self._closing: set[asyncio.Task[None]] = set()
        self.unreadable: tuple[str, ...] = ()
        self.permit: PermitComponent = permit_all
        """Asked before a component is admitted; the assembly puts the board here."""
        self._load(store)

    # -- for drivers -----------------------------------------------------------------------------

    def catalog(self) -> Catalog:
        """The versions that new sessions may use: a snapshot, the same until something changes."""
        if self._catalog is None:
            here: dict[str, Offer] = {}
            leaving: dict[str, Offer] = {}
            for entry in self._entries.values():
                found = here if entry.state in (State.ACTIVE, State.UNREACHABLE) else leaving
                found[entry.pin] = Offer(card=entry.row.card, digest=entry.row.digest)
            self._catalog = Catalog(
                tuple(here.values()), self._active, leaving=tuple(leaving.values())
            )
        return self._catalog

    def pick(
        self, pin: str, session_id: str, *, avoid: Callable[[Target], bool] | None = None
    ) -> Instance | None:
        """The replica of `name@version` that this session sticks to; None: none can be called.

        By rendezvous hash: when an instance comes or goes, only its own sessions move; while
        `avoid` says so of it, they go to the next of their order.
        """
        ready = self._ready.get(pin, ())
        if len(ready) < 2:
            return (ready[0].instance or self._instance(ready[0])) if ready else None
        best = self._instance(max(ready, key=lambda entry: entry.weight(session_id)))
        if avoid is None or not avoid(best):
            return best
        others = sorted(ready, key=lambda entry: entry.weight(session_id), reverse=True)[1:]
        return next((one for one in map(self._instance, others) if not avoid(one)), best)

    def instance(self, component_id: str) -> Instance | None:
        """That very instance while it is registered, whatever its state (polls, cancels)."""
        entry = self._entries.get(component_id)
        return None if entry is None else entry.instance or self._instance(entry)

    def known_at(self, pin: str) -> int | None:
        """Wall-clock ms at which `pin` could last be called (now, if it can); None: never yet."""
        return self._clock.now_ms() if pin in self._ready else self._last_ready_ms.get(pin)

    def has(self, pin: str) -> bool:
        """Whether an instance of `name@version` is registered, whatever its state."""
        return any(entry.pin == pin for entry in self._entries.values())

    def instances(self) -> tuple[Instance, ...]:
        """Every instance that can be called now."""
        return tuple(self._instance(e) for ready in self._ready.values() for e in ready)

    def on_change(self, callback: Callable[[], None]) -> None:
        """`callback()` runs after each change of who can be called (waiting calls look again)."""
        self._on_change.append(callback)

    # -- for components and operators ------------------------------------------------------------

    async def register(self, request: RegisterRequest, principal: Principal) -> Component:
        """Read the card, check it, admit; durable on return. Again for the same instance: renewed.

        Raises AcpFailure: INVALID_REQUEST, PERMISSION_DENIED, CONTRACT_VIOLATION (the card),
        VERSION_UNSUPPORTED, IDEMPOTENCY_CONFLICT (another card for this name@version), UNAVAILABLE;
        PERMISSION_DENIED also for a change that needs an approved proposal.
        """
        lease_seconds = granted_lease_s(request.lease_seconds, self._limits)
        check_labels(request.labels)
        check_auth(request.auth, principal, credentials=self._limits.credentials)
        connection, endpoint = self._dial(request)
        try:
            card = await self._read_card(connection, endpoint)
            check_card(card, principal)
            row = Row(
                component_id=component_id(endpoint.transport, endpoint.url, card=card),
                endpoint=msgspec.structs.replace(
                    endpoint, max_request_bytes=card.limits.max_request_bytes
                ),
                card=card,
                digest=card_digest(card),
                lease_seconds=lease_seconds,
                registered_at_ms=self._clock.now_ms(),
                labels=request.labels,
            )
            permit = self.permit(card, row.digest, principal=principal)
            entry = self._admit(row, connection)
        except BaseException:
            await connection.close()
            raise
        self._durable.put(Table.REGISTRY, row.component_id.encode(), msgspec.json.encode(row))
        permit.done()
        try:
            await self._durable.synced()
        except StoreError:
            if self._entries.get(entry.id) is entry:
                self._remove(entry)  # what was refused is never called, nor shown
            raise
        return self._view(entry)

    def list(self) -> tuple[Component, ...]:
        """Every instance, by name, version and id."""
        entries = sorted(self._entries.values(), key=lambda entry: (entry.pin, entry.id))
        return tuple(map(self._view, entries))

    def get(self, component_id: str) -> Component:
        """One instance; raises NOT_FOUND."""
        return self._view(self._entry(component_id))

    async def heartbeat(self, component_id: str, beat: Heartbeat) -> Component:
        """A sign of life with load figures: renews the lease, also of an expired instance."""
        entry = self._entry(component_id)
        entry.heartbeat_mono = self._clock.monotonic_ms()
        self._seen(entry, beat.signals)
        return self._view(entry)

    async def drain(self, component_id: str) -> Component:
        """No calls are begun there any more; those in flight end. Registering again undoes it."""
        entry = self._entry(component_id)
        entry.row = msgspec.structs.replace(entry.row, draining=True)
        self._changed()
        if not entry.is_attached:
            key = component_id.encode()
            self._durable.put(Table.REGISTRY, key, msgspec.json.encode(entry.row))
            await self._durable.synced()
        return self._view(entry)

    async def delete(self, component_id: str) -> None:
        """Forget the instance; calls in flight there still end within a grace."""
        self._remove(self._entry(component_id))
        await self._durable.synced()

    async def activate(self, name: str, version: str) -> None:
        """Make a registered version the one that `name` alone means; raises NOT_FOUND."""
        if not self.has(f"{name}@{version}"):
            raise failure(Reason.NOT_FOUND, f"no instance of {name}@{version} is registered")
        self._set_active(name, version)
        self._changed()
        await self._durable.synced()

    # -- for attached components -----------------------------------------------------------------

    def attach(
        self, card: Card, connection: Connection, *, instance_id: str, principal: Principal
    ) -> Component:
        """Admit an instance that dialled in. It lives with its stream: no lease, nothing durable.

        Raises AcpFailure as `register` does. A newer stream of the instance replaces the older.
        """
        check_card(card, principal)
        row = Row(
            component_id=component_id(Transport.ATTACH, instance_id, card=card),
            endpoint=Endpoint(url="", transport=Transport.ATTACH),
            card=card,
            digest=card_digest(card),
            lease_seconds=0,
            registered_at_ms=self._clock.now_ms(),
        )
        permit = self.permit(card, row.digest, principal=principal)
        entry = self._admit(row, connection)
        permit.done()
        entry.is_attached = True
        return self._view(entry)

    def detach(self, component_id: str, connection: Connection) -> None:
        """Forget an attached instance, unless a newer connection has taken its place."""
        entry = self._entries.get(component_id)
        if entry is not None and entry.connection is connection:
            self._remove(entry)

    def set_reachable(self, component_id: str, reachable: bool) -> None:
        """An attached instance's stream dropped (its calls wait for it), or is there again."""
        entry = self._entries.get(component_id)
        if entry is not None and entry.is_unreachable is reachable:
            entry.is_unreachable = not reachable
            self._changed()

    # -- health and time -------------------------------------------------------------------------

    def silent(self, since_ms: float) -> tuple[tuple[str, Connection], ...]:
        """Instances without a heartbeat for `since_ms`: those the prober asks."""
        oldest = self._clock.monotonic_ms() - since_ms
        return tuple(
            (entry.id, self._connection(entry))
            for entry in self._entries.values()
            if not entry.is_attached
            and (entry.heartbeat_mono is None or entry.heartbeat_mono < oldest)
        )

    def probed(self, component_id: str, health: Health | None) -> None:
        """What a probe brought; None = nobody answered. SERVING renews the lease.

        An instance that says NOT_SERVING lives, but gets no calls.
        """
        entry = self._entries.get(component_id)
        if entry is None or (health is not None and entry.is_other):
            return
        if health is None:
            entry.failures += 1
            if entry.failures >= self._limits.unreachable_after and not entry.is_unreachable:
                entry.is_unreachable = True
                self._changed()
            return
        if health.status is HealthStatus.SERVING:
            self._seen(entry, health.signals)
            return
        self._keep(entry, health.signals)
        entry.last_seen_mono, entry.expired_mono = self._clock.monotonic_ms(), None
        entry.is_unreachable = True
        self._changed()

    def shown(self, component_id: str, card: Card) -> bool:
        """The card at its address now; whether that is news. While it is of another version there
        are no calls for it, and its lease ends."""
        entry = self._entries.get(component_id)
        if entry is None or entry.is_other is (f"{card.name}@{card.version}" != entry.pin):
            return False
        entry.is_other = not entry.is_other
        self._changed()
        return True

    def heard(self, component_id: str) -> None:
        """The instance answered a call: as good a sign of life as a probe."""
        entry = self._entries.get(component_id)
        if entry is not None:
            self._seen(entry, None)

    def unreached(self, component_id: str) -> None:
        """Nothing reached it: its sessions go to another replica, while there is one.

        The last replica is called all the same: a refused connection costs less than waiting for a
        probe.
        """
        entry = self._entries.get(component_id)
        if entry is None or entry.is_attached or entry.state is not State.ACTIVE:
            return
        if len(self._ready.get(entry.pin, ())) > 1:
            entry.is_unreachable = True
            self._changed()

    def sweep(self) -> None:
        """End leases that are over and remove what expired long ago. Called about every second."""
        now = self._clock.monotonic_ms()
        changed = False
        for entry in list(self._entries.values()):
            if entry.is_attached or now < entry.lease_ends_mono:
                continue
            if entry.expired_mono is None:
                entry.expired_mono = now
                changed = True
            elif now >= entry.expired_mono + self._limits.expired_grace_ms:
                self._remove(entry)
        if changed:
            self._changed()

    async def close(self) -> None:
        """Close every connection."""
        for task in list(self._closing):
            task.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)
        for entry in self._entries.values():
            if entry.connection is not None:
                await entry.connection.close()

    # -- admission -------------------------------------------------------------------------------

    def _dial(self, request: RegisterRequest) -> tuple[Connection, Endpoint]:
        if request.transport is Transport.ATTACH:
            text = "transport: ATTACH components dial the gateway themselves; use HTTP or GRPC here"
            raise failure(Reason.INVALID_REQUEST, text)
        try:
            url = self._dialer.normal_url(request.url, request.transport)
            endpoint = Endpoint(url=url, transport=request.transport, auth=request.auth)
            return self._dialer.open(endpoint), endpoint
        except ValueError as problem:
            raise failure(Reason.INVALID_REQUEST, f"url: {problem}") from None

    async def _read_card(self, connection: Connection, endpoint: Endpoint) -> Card:
        """The component's card. Its refusal is not the caller's: a 401 of it is no 401 of ours."""
        try:
            return await connection.describe(self._limits.describe_timeout_ms)
        except AcpFailure as refused:
            said = refused.error
            text = f"the card at {endpoint.url} cannot be read: {said.message}"
            if said.boundary is Boundary.GATEWAY:
                raise AcpFailure(msgspec.structs.replace(said, message=text)) from None
            reason = Reason.UNAVAILABLE if said.retryable else Reason.CONTRACT_VIOLATION
            raise AcpFailure(
                error(reason, text, side_effect=SideEffect.NONE, boundary=Boundary.COMPONENT)
            ) from None

    def _admit(self, row: Row, connection: Connection) -> Entry:
        """Put it in, or in the place of its older registration."""
        self._make_room(row)
        old = self._entries.get(row.component_id)
        if old is not None and old.connection is not None and old.connection is not connection:
            unused = old.connection
            if old.row.endpoint == row.endpoint and not old.is_attached:
                connection, unused = old.connection, connection  # keep what is warm
            self._retire(unused)
        entry = Entry(row=row, last_seen_mono=self._clock.monotonic_ms(), connection=connection)
        if old is not None:
            entry.signals, entry.signals_at_ms = old.signals, old.signals_at_ms
        self._entries[row.component_id] = entry
        if row.card.name not in self._active:
            self._set_active(row.card.name, row.card.version)
        self._changed()
        return entry

    def _make_room(self, row: Row) -> None:
        """One card per version: instances with another one refuse it, unless they are expired."""
        pin = f"{row.card.name}@{row.card.version}"
        others = [e for e in self._entries.values() if e.pin == pin and e.row.digest != row.digest]
        for other in others:
            if other.state is not State.EXPIRED:
                text = (
                    f"{pin} is registered with another card (by {other.id}, digest"
                    f" {other.row.digest[:12]}, yours is {row.digest[:12]}): raise the version, or"
                    " DELETE its instances first"
                )
                raise failure(Reason.IDEMPOTENCY_CONFLICT, text)
        is_new = row.component_id not in self._entries
        if is_new and len(self._entries) >= self._limits.instances_max:
            text = f"{self._limits.instances_max} instances are registered already"
            raise failure(Reason.OVERLOADED, text)
        for other in others:
            self._remove(other)

    # -- entries ---------------------------------------------------------------------------------

    def _load(self, store: Store) -> None:
        unreadable: list[str] = []
        for key, value in store.scan(Table.REGISTRY, _ROWS):
            try:
                row = _rows.decode(value)
                self._dialer.normal_url(row.endpoint.url, row.endpoint.transport)
            except (msgspec.MsgspecError, ValueError) as problem:
                unreadable.append(f"registration {key.decode('utf-8', 'replace')}: {problem}")
                continue
            entry = Entry(row=row, last_seen_mono=self._clock.monotonic_ms())
            self._entries[row.component_id] = entry
        for key, value in store.scan(Table.REGISTRY, _ACTIVE):
            self._active[key.removeprefix(_ACTIVE).decode()] = value.decode()
        self.unreadable = tuple(unreadable)
        self._changed()

    def _entry(self, component_id: str) -> Entry:
        entry = self._entries.get(component_id)
        if entry is None:
            text = f"no component {component_id!r}: list them with GET /v1/components"
            raise failure(Reason.NOT_FOUND, text)
        return entry

    def _view(self, entry: Entry) -> Component:
        return entry.view(now_ms=self._clock.now_ms(), now_mono=self._clock.monotonic_ms())

    def _connection(self, entry: Entry) -> Connection:
        """The entry's connection, made when it is first needed."""
        if entry.connection is None:
            entry.connection = self._dialer.open(entry.row.endpoint)
        return entry.connection

    def _instance(self, entry: Entry) -> Instance:
        if entry.instance is None:
            row = entry.row
            entry.instance = Instance(
                component_id=row.component_id,
                card=row.card,
                digest=row.digest,
                connection=self._connection(entry),
                signals=entry.signals,
                signals_at_ms=entry.signals_at_ms,
                auth=row.endpoint.auth,
                labels=row.labels,
            )
        return entry.instance

    def _seen(self, entry: Entry, signals: Signals | None) -> None:
        """A sign of life; every answer is one: the state is asked only where it can change."""
        before = None if entry.is_alive else entry.state
        entry.seen(self._clock.monotonic_ms())
        if signals is not None:
            self._keep(entry, signals)
        if before is not None and entry.state is not before:
            self._changed()

    def _keep(self, entry: Entry, signals: Signals | None) -> None:
        if signals is not None:
            entry.signals = msgspec.structs.replace(signals, component=entry.row.card.name)
            entry.signals_at_ms = self._clock.now_ms()
            entry.instance = None

    def _remove(self, entry: Entry) -> None:
        del self._entries[entry.id]
        if not entry.is_attached:
            self._durable.delete(Table.REGISTRY, entry.id.encode())
        if entry.connection is not None:
            self._retire(entry.connection)
        name = entry.row.card.name
        if all(other.row.card.name != name for other in self._entries.values()):
            self._active.pop(name, None)
            self._durable.delete(Table.REGISTRY, _ACTIVE + name.encode())
        self._changed()

    def _set_active(self, name: str, version: str) -> None:
        self._active[name] = version
        self._durable.put(Table.REGISTRY, _ACTIVE + name.encode(), version.encode())

    def _retire(self, connection: Connection) -> None:
        """Close it once the calls in flight have had their time."""

        async def close_later() -> None:
            try:
                await asyncio.sleep(self._limits.closing_grace_ms / 1000)
            finally:
                await connection.close()

        task = asyncio.get_running_loop().create_task(close_later())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _changed(self) -> None:
        """Recompute who can be called, and tell it."""
        ready: dict[str, list[Entry]] = {}
        for entry in self._entries.values():
            if entry.state is State.ACTIVE:
                ready.setdefault(entry.pin, []).append(entry)
        now_ms = self._clock.now_ms()
        self._last_ready_ms.update((pin, now_ms) for pin in self._ready if pin not in ready)
        self._ready = {pin: tuple(entries) for pin, entries in ready.items()}
        self._catalog = None
        for callback in self._on_change:
            callback()
