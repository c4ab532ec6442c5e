"""What pure work may know beside the state: time, what is registered, load, defaults."""

from collections.abc import Callable

import msgspec

from gateway.engine.catalog import Catalog
from gateway.governance.domains import Nearest, nobody


def nothing_told() -> bytes:
    """No component told of its load."""
    return b"{}"


class World(msgspec.Struct, frozen=True, kw_only=True):
    """One moment of the gateway around a session. `default_timeout_ms` is R06's five seconds.

    `signals` gives what expressions read under that name, for the few that do. `nearest` guesses
    which value of a domain is meant (R13).
    """

    at_ms: int
    catalog: Catalog
    signals: Callable[[], bytes] = nothing_told
    default_timeout_ms: int = 5_000
    nearest: Nearest = nobody
