"""Answers that state another version than the one called: somebody took its place at its address.

What a peer states is no proof, and some state nothing; so whoever hears of it looks at the card,
which is. Called for every end of an attempt: it must be cheap and never raise.
"""

from collections.abc import Callable
from typing import Final

from gateway.engine.events import AnyEvent, AttemptEnded
from gateway.engine.states import SessionState

Doubt = Callable[[str], None]
"""`doubt(component_id)`: look whether it still is who it was."""


def _nobody_looks(component_id: str, /) -> None:
    pass


class Replaced:
    """An observer of the driver's events."""

    hears: Final = frozenset({AttemptEnded})

    def __init__(self) -> None:
        self.doubt: Doubt = _nobody_looks
        """The assembly puts the prober here."""

    def seen(self, state: SessionState, event: AnyEvent) -> None:
        if not isinstance(event, AttemptEnded) or not event.served_version:
            return
        started = state.calls[event.call_id].started(event.attempt)
        if started is not None and started.version != event.served_version:
            self.doubt(started.instance)
