"""What pure work may know beside the state: time, what is registered, load, defaults."""

import msgspec

from gateway.engine.catalog import Catalog
from gateway.governance.domains import Nearest, nobody


class World(msgspec.Struct, frozen=True, kw_only=True):
    """One moment of the gateway around a session. `default_timeout_ms` is R06's five seconds.

    `nearest` guesses which value of a domain is meant (R13).
    """

    at_ms: int
    catalog: Catalog
    signals: bytes = b"{}"
    default_timeout_ms: int = 5_000
    nearest: Nearest = nobody
