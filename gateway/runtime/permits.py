"""Leave to change what serves: asked before the change, used up once it has happened.

Registry and workflows know only these ports; without a board everything is allowed.
"""

from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from acp_spec.model.card import Card
from gateway.board.changes import Release
from gateway.runtime.principal import Principal


class Permit(msgspec.Struct, frozen=True):
    """A change may happen; call `done` when it has. Nothing is used up before."""

    done: Callable[[], None]


FREE: Final = Permit(lambda: None)
"""Nothing to govern, nothing to remember."""


class PermitComponent(Protocol):
    """May a component with this card serve? Raises PERMISSION_DENIED with what to do."""

    def __call__(self, card: Card, digest: str, *, principal: Principal) -> Permit: ...


class PermitActivation(Protocol):
    """May `after` become the active version? Raises PERMISSION_DENIED with what to do."""

    def __call__(
        self, before: Release | None, after: Release, *, principal: Principal
    ) -> Permit: ...


def permit_all(card: Card, digest: str, *, principal: Principal) -> Permit:
    """Nothing is governed."""
    return FREE


def activate_all(before: Release | None, after: Release, *, principal: Principal) -> Permit:
    """Nothing is governed."""
    return FREE
