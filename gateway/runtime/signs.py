"""Load figures of components, as they are given on: to planners, expressions and metrics (R12).

They come from heartbeats, attached streams and the prober, and each has an age. What is older than
`FRESH_MS` is given to nobody: an old figure misleads more than none. The gateway's own queues are
not among them; how long an attempt waited here stands in its own row.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from acp_spec.model.context import Signals
from acp_spec.model.enums import StepRole
from gateway.engine.states import CallState, SessionState
from gateway.runtime.clock import Clock
from gateway.runtime.targets import Target, Targets

FRESH_MS: Final = 30_000
"""Six heartbeats of an attached component, six probes of the others."""

GIVEN_MAX: Final = 64
"""Components whose figures ride in one context; a plan chooses among fewer."""

TEXT_MS: Final = 250
"""Expressions read figures of at most this age more: building them costs a look at everybody."""

_ACTION: Final = "action:"


class Signs:
    """`everybody` gives every instance that can be called now."""

    def __init__(
        self, targets: Targets, clock: Clock, *, everybody: Callable[[], Iterable[Target]]
    ) -> None:
        self._targets = targets
        self._clock = clock
        self._everybody = everybody
        self._text = b"{}"
        self._text_until_ms = -1.0

    def fresh(self, target: Target) -> Signals | None:
        """What it told not long ago."""
        if target.signals is None:
            return None
        age_ms = self._clock.now_ms() - target.signals_at_ms
        return target.signals if age_ms <= FRESH_MS else None

    def of_attempt(
        self, state: SessionState, call: CallState, *, target: Target
    ) -> tuple[Signals, ...]:
        """The components involved in this attempt: who is called, and for a planner everyone whose
        actions it may use."""
        plans = call.created.role is StepRole.PLAN
        if target.signals is None and not plans:
            return ()
        own = self.fresh(target)
        given = [own] if own is not None else []
        if plans:
            given += self._of_pins(state, but=target)
        return tuple(given[:GIVEN_MAX])

    def _of_pins(self, state: SessionState, *, but: Target) -> Iterator[Signals]:
        opened = state.opened
        pins = {pin for key, pin in opened.pins.items() if key.startswith(_ACTION)}
        for pin in sorted(pins):
            target = self._targets.pick(pin, opened.session_id)
            found = self.fresh(target) if target is not None else None
            if found is not None and target is not but:
                yield found

    def text(self) -> bytes:
        """The name `signals` of expressions: figures by component, the worst of its instances."""
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._text_until_ms:
            self._text = msgspec.json.encode(self.worst())
            self._text_until_ms = now_ms + TEXT_MS
        return self._text

    def worst(self) -> dict[str, dict[str, float]]:
        """By component name and figure the highest of its instances; only what was reported."""
        found: dict[str, dict[str, float]] = {}
        for target in self._everybody():
            told = self.fresh(target)
            if told is None:
                continue
            figures = found.setdefault(target.card.name, {})
            for name in FIGURES:
                value = getattr(told, name)
                if value is not None:
                    figures[name] = max(value, figures.get(name, value))
        return found


FIGURES: Final = tuple(name for name in Signals.__struct_fields__ if name != "component")
"""The names of the figures, as the protocol has them."""
