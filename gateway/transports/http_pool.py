"""Keep-alive connections to one component, driven by callbacks: no task and no copy per call.

The pool carries bytes and reports what came back, once per exchange; it knows neither JSON nor time
limits of a call (whoever submits aborts). It opens no address that the guard did not check, follows
no redirect, uses no proxy, and never sends an exchange twice.
"""

import asyncio
import ssl
from collections import deque
from dataclasses import dataclass

from gateway.transports.address_guard import AddressGuard, AddressRefused, Target
from gateway.transports.http_link import Exchange, Fault, Link


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLimits:
    """Bounds of one pool. Waiting exchanges have the first claim on a freed connection."""

    connections_max: int = 256
    waiting_max: int = 1_024
    body_bytes_max: int = 4 * 1024 * 1024
    connect_timeout_s: float = 1.0
    # Servers close idle connections after 5 s at the earliest in use (uvicorn, Node): stay below.
    idle_max_s: float = 4.0
    # SPEC section 5: what must not be sent twice uses a connection idle for less than this.
    fresh_max_s: float = 1.0


class HttpPool:
    """Connections to one target. All methods are called on the event loop's thread."""

    def __init__(
        self,
        target: Target,
        guard: AddressGuard,
        *,
        limits: PoolLimits = PoolLimits(),
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.target = target
        self.limits = limits
        self._guard = guard
        self._tls = (tls or ssl.create_default_context()) if target.is_tls else None
        self._loop = asyncio.get_running_loop()
        self._idle: list[Link] = []  # the last used one at the end
        self._busy: dict[Exchange, Link] = {}
        self._waiting: deque[Exchange] = deque()
        self._connects: set[asyncio.Task[None]] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def connections(self) -> int:
        """Open connections, in use or idle."""
        return len(self._idle) + len(self._busy)

    def submit(self, exchange: Exchange, *, fresh: bool = False) -> None:
        """Send now if a connection is free, else as soon as one is; calls back later, never here.

        An exchange that is refused at once is told so on the next tick, also if aborted before.
        """
        link = self._take_idle(self.limits.fresh_max_s if fresh else self.limits.idle_max_s)
        if link is not None:
            self._busy[exchange] = link
            link.begin(exchange)
        elif self._closed or len(self._waiting) >= self.limits.waiting_max:
            why = "closed" if self._closed else f"full: {len(self._waiting)} calls wait"
            text = f"the connections to {self.target.url} are {why}"
            self._loop.call_soon(exchange.failed, Fault.OVERLOADED, text)
        else:
            self._waiting.append(exchange)
            self._connect_if_needed()

    def abort(self, exchange: Exchange) -> bool:
        """Forget the exchange, nothing more is called. True if its bytes had been written."""
        link = self._busy.pop(exchange, None)
        if link is not None:
            link.abandon()
            self._connect_if_needed()
            return True
        if exchange in self._waiting:
            self._waiting.remove(exchange)
        return False

    def is_sent(self, exchange: Exchange) -> bool:
        """Whether the exchange's bytes were written (so that the peer may have acted)."""
        return exchange in self._busy

    async def close(self) -> None:
        """Close every connection; exchanges still open fail."""
        self._closed = True
        if self._sweep is not None:
            self._sweep.cancel()
        for link in self._idle:
            link.abandon()
        self._idle.clear()
        busy, self._busy = self._busy, {}
        for exchange, link in busy.items():
            link.abandon()
            exchange.failed(Fault.CUT, "the gateway closed the connection")
        while self._waiting:
            self._waiting.popleft().failed(Fault.NOT_SENT, "the gateway is closing")
        for task in list(self._connects):
            task.cancel()
        await asyncio.gather(*self._connects, return_exceptions=True)

    # -- connections in use ----------------------------------------------------------------------

    def _take_idle(self, idle_max_s: float) -> Link | None:
        """The connection used last, if it is young enough; those too old for all are closed."""
        now = self._loop.time()
        while self._idle:
            link = self._idle[-1]
            if link.is_open and now - link.used_at < idle_max_s:
                return self._idle.pop()
            if link.is_open and now - link.used_at < self.limits.idle_max_s:
                return None  # good for others, and all below it are older
            self._idle.pop().abandon()
        return None

    def released(self, link: Link, exchange: Exchange) -> None:
        """A link's exchange is over and the link may carry another one."""
        self._busy.pop(exchange, None)
        self._offer(link)

    def _offer(self, link: Link) -> None:
        if self._waiting:
            exchange = self._waiting.popleft()
            self._busy[exchange] = link
            link.begin(exchange)
            return
        self._idle.append(link)
        if self._sweep is None:
            self._sweep = self._loop.call_later(self.limits.idle_max_s, self._close_old)

    def dropped(self, link: Link, exchange: Exchange | None) -> None:
        """A link is closed; waiting exchanges may need another one."""
        if exchange is not None:
            self._busy.pop(exchange, None)
        elif link in self._idle:
            self._idle.remove(link)
        self._connect_if_needed()

    def _close_old(self) -> None:
        self._sweep = None
        keep_since = self._loop.time() - self.limits.idle_max_s
        while self._idle and self._idle[0].used_at <= keep_since:
            self._idle.pop(0).abandon()
        if self._idle:
            self._sweep = self._loop.call_at(
                self._idle[0].used_at + self.limits.idle_max_s + 0.01, self._close_old
            )

    # -- new connections -------------------------------------------------------------------------

    def _connect_if_needed(self) -> None:
        """Open one connection per waiting exchange, within the limit."""
        while not self._closed and len(self._connects) < len(self._waiting):
            if self.connections + len(self._connects) >= self.limits.connections_max:
                if not self._idle:
                    return
                self._idle.pop(0).abandon()  # too old for a fresh call: make room
            task = self._loop.create_task(self._connect())
            self._connects.add(task)
            task.add_done_callback(self._connects.discard)

    async def _connect(self) -> None:
        try:
            async with asyncio.timeout(self.limits.connect_timeout_s):
                link = await self._dial()
        except AddressRefused as refused:
            self._connect_failed(Fault.REFUSED_ADDRESS, str(refused))
        except ssl.SSLError as error:
            self._connect_failed(Fault.TLS_FAILED, f"TLS with {self.target.authority}: {error}")
        except TimeoutError:
            seconds = self.limits.connect_timeout_s
            text = f"no connection to {self.target.authority} within {seconds:g} s"
            self._connect_failed(Fault.NOT_CONNECTED, text)
        except OSError as error:
            text = f"no connection to {self.target.authority}: {error.strerror or error}"
            self._connect_failed(Fault.NOT_CONNECTED, text)
        else:
            self._connected(link)

    async def _dial(self) -> Link:
        """Try the checked addresses in turn; raises what the last one raised."""
        addresses = await self._guard.addresses(self.target)
        last: OSError | None = None
        for address in addresses:
            try:
                _, link = await self._loop.create_connection(
                    lambda: Link(self, self.limits.body_bytes_max),
                    address,
                    self.target.port,
                    ssl=self._tls,
                    server_hostname=self.target.host if self._tls else None,
                )
            except OSError as error:
                last = error
            else:
                return link
        assert last is not None
        raise last

    def _connected(self, link: Link) -> None:
        # This task still counts as a connect; the link takes its place before it ends.
        self._discard_current_connect()
        if self._closed or not link.is_open:
            link.abandon()
            if not self._closed:
                self._connect_failed(Fault.NOT_CONNECTED, "the peer closed the connection at once")
        else:
            self._offer(link)

    def _connect_failed(self, fault: Fault, message: str) -> None:
        """Fail the exchange that this connection was for: the one that waits longest."""
        self._discard_current_connect()
        if len(self._waiting) > len(self._connects):
            self._waiting.popleft().failed(fault, message)
        self._connect_if_needed()

    def _discard_current_connect(self) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._connects.discard(task)
