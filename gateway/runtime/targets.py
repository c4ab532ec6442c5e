"""What the driver needs to know of registered components; the registry is one.

A target is one instance: where an attempt goes, and what its card allows.
"""

from collections.abc import Callable
from typing import Protocol

from acp_spec.model.card import Card
from acp_spec.model.context import Signals
from gateway.engine.catalog import Catalog
from gateway.runtime.connection import Connection


class Target(Protocol):
    """One instance of a component version."""

    @property
    def component_id(self) -> str: ...

    @property
    def card(self) -> Card: ...

    @property
    def digest(self) -> str: ...

    @property
    def connection(self) -> Connection: ...

    @property
    def signals(self) -> Signals | None: ...

    @property
    def signals_at_ms(self) -> int:
        """When they were told, by the gateway's clock."""


class Targets(Protocol):
    """Who can be called now."""

    def catalog(self) -> Catalog:
        """The snapshot that the engine plans with."""

    def pick(
        self, pin: str, session_id: str, *, avoid: Callable[[Target], bool] | None = None
    ) -> Target | None:
        """The instance of `name@version` this session sticks to (rendezvous hash), or None.

        While `avoid` says so of it the next one in that order, if there is one it does not say it
        of; the session comes back when it no longer does.
        """

    def known_at(self, pin: str) -> int | None:
        """Wall-clock ms at which `pin` could last be called (now, if it can); None: never yet."""

    def instance(self, component_id: str) -> Target | None:
        """That very instance, while it is registered."""

    def heard(self, component_id: str) -> None:
        """The instance answered a call: a sign of life."""

    def unreached(self, component_id: str) -> None:
        """Nothing could be sent to the instance: nobody was there."""

    def on_change(self, callback: Callable[[], None]) -> None:
        """`callback()` after an instance came, went, or changed its state."""
