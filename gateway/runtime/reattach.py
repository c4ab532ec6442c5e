"""Attempts that an earlier run of this gateway sent to attached instances (SPEC section 10).

An attached instance keeps its work and its answers while the gateway is away. So what was in flight
on an instance that nobody registered waits for the attach grace: the instance comes back and has
the attempt, or it does not; then the attempt is lost like every other.
"""

import asyncio
from collections.abc import Callable

from acp_spec.model.attach import Key
from gateway.engine.pending import lost_attempt
from gateway.engine.states import CallState, Phase
from gateway.runtime.connection import Outgoing, Sink
from gateway.runtime.driver import Driver
from gateway.runtime.executors import Executors
from gateway.runtime.live import Live
from gateway.runtime.targets import Targets

Adopt = Callable[[Outgoing, Sink], None]


class Orphans:
    """Those attempts, by instance. Used on the loop's thread."""

    def __init__(
        self, driver: Driver, executors: Executors, *, targets: Targets, grace_ms: int
    ) -> None:
        self._driver = driver
        self._executors = executors
        self._targets = targets
        self._grace_ms = grace_ms
        self._of_instance: dict[str, dict[Key, str]] = {}
        self._expiry: asyncio.TimerHandle | None = None

    def keep(self, session_id: str, call: CallState, *, attempt: int) -> bool:
        """Keep the attempt open if its instance may come back; False: it is lost now."""
        kept = call.numbered(attempt)
        started = kept.started if kept else None
        if started is None or self._targets.instance(started.instance) is not None:
            return False
        key = (call.created.call_id, attempt)
        self._of_instance.setdefault(started.instance, {})[key] = session_id
        if self._expiry is None:
            loop = asyncio.get_running_loop()
            self._expiry = loop.call_later(self._grace_ms / 1000, self._expire)
        return True

    def claim(self, component_id: str, known: frozenset[Key], *, adopt: Adopt) -> None:
        """The instance is back with the attempts `known`: they go on; its others are lost."""
        for key, session_id in self._of_instance.pop(component_id, {}).items():
            live = self._in_flight(session_id, key)
            if live is None:
                continue
            if key in known:
                self._executors.adopt(live, key, adopt=adopt, at_least_ms=self._grace_ms)
            else:
                self._lose(live, key)

    def close(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()

    def _expire(self) -> None:
        self._expiry = None
        kept, self._of_instance = self._of_instance, {}
        for attempts in kept.values():
            for key, session_id in attempts.items():
                live = self._in_flight(session_id, key)
                if live is not None:
                    self._lose(live, key)

    def _lose(self, live: Live, key: Key) -> None:
        call = live.state.calls[key[0]]
        self._driver.feed(
            live, lost_attempt(live.state, call, attempt=key[1], at_ms=self._driver.now_ms(live))
        )

    def _in_flight(self, session_id: str, key: Key) -> Live | None:
        """The session, if the attempt still waits for its end there."""
        live = self._driver.sessions.find(session_id)
        call = live.state.calls.get(key[0]) if live else None
        if call is None or call.phase is not Phase.SENT:
            return None
        if all(attempt.number != key[1] for attempt in call.in_flight):
            return None
        return live
