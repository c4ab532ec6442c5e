"""Timers of sessions on the event loop, by name: (session, timer, call). The latest setting holds.

A timer holds only names: its session may have been evicted meanwhile and is read back when it
fires. Nothing here is durable; after a start timers are rebuilt from the journal (SPEC 9.5).
"""

import asyncio
from collections.abc import Callable

from gateway.engine.commands import StartTimer
from gateway.engine.events import Timer
from gateway.runtime.clock import Clock

Fire = Callable[[str, StartTimer], None]


class Timers:
    """`fire(session_id, command)` is called on the loop, never before the command's time."""

    def __init__(self, clock: Clock, fire: Fire) -> None:
        self._clock = clock
        self._fire = fire
        self._handles: dict[str, dict[tuple[Timer, str], asyncio.TimerHandle]] = {}
        self._closed = False

    def start(self, session_id: str, command: StartTimer) -> None:
        """Set or move a timer; nothing once closed: the next start rebuilds it from the journal."""
        if self._closed:
            return
        handles = self._handles.setdefault(session_id, {})
        name = (command.timer, command.call_id)
        before = handles.get(name)
        if before is not None:
            before.cancel()
        delay_s = max(0, command.at_ms - self._clock.now_ms()) / 1000
        loop = asyncio.get_running_loop()
        handles[name] = loop.call_later(delay_s, self._due, session_id, command)

    def drop(self, session_id: str) -> None:
        """Forget every timer of a session that ended."""
        for handle in self._handles.pop(session_id, {}).values():
            handle.cancel()

    def close(self) -> None:
        """Forget all of them, and those to come: calls that the stop breaks off set new ones."""
        self._closed = True
        for session_id in list(self._handles):
            self.drop(session_id)

    def _due(self, session_id: str, command: StartTimer) -> None:
        if self._clock.now_ms() < command.at_ms:  # the wall clock was set back: wait on
            self.start(session_id, command)
            return
        handles = self._handles.get(session_id)
        if handles is not None:
            handles.pop((command.timer, command.call_id), None)
            if not handles:
                del self._handles[session_id]
        self._fire(session_id, command)
