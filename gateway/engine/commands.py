"""What the engine wants done. A command is data; the driver acts on it after the append.

`Advance` and `Decide` ask for pure work whose result becomes events (so that replay never repeats
it); the others reach the outside.
"""

import msgspec

from acp_spec.model.recovery import Trigger
from gateway.engine.events import Timer


class Advance(msgspec.Struct, frozen=True, tag=True):
    """Something settled: ask `advance` which calls are created, which step or session ends."""


class Call(msgspec.Struct, frozen=True, tag=True):
    """Admit and start the next attempt of this call."""

    call_id: str


class Send(msgspec.Struct, frozen=True, tag=True):
    """Write the attempt to its peer: it is journaled as started."""

    call_id: str
    attempt: int


class Hedge(msgspec.Struct, frozen=True, tag=True):
    """Start a second attempt of a call that reads, elsewhere, if somebody is free for it."""

    call_id: str


class Decide(msgspec.Struct, frozen=True, tag=True):
    """Ask the recovery policy what to do about this call."""

    call_id: str
    trigger: Trigger


class StartTimer(msgspec.Struct, frozen=True, tag=True):
    """Raise `TimerFired` at `at_ms`; the same (timer, call_id) again replaces the earlier one."""

    timer: Timer
    at_ms: int
    call_id: str = ""
    attempt: int = 0


class CancelCall(msgspec.Struct, frozen=True, tag=True):
    """Tell the peer to stop this attempt (SPEC 9.4)."""

    call_id: str
    attempt: int


class Reset(msgspec.Struct, frozen=True, tag=True):
    """The grace is over: break the attempt off; its outcome is unknown."""

    call_id: str
    attempt: int


class Poll(msgspec.Struct, frozen=True, tag=True):
    """Ask the peer how a long operation stands."""

    call_id: str
    attempt: int


class Record(msgspec.Struct, frozen=True, tag=True):
    """Hand the trajectory to the outbox: the session ended, or was judged after its end."""


class End(msgspec.Struct, frozen=True, tag=True):
    """The session is over: answer whoever waits, drop timers, let the state be evicted."""


Command = (
    Advance | Call | Send | Hedge | Decide | StartTimer | CancelCall | Reset | Poll | Record | End
)
