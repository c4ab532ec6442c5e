"""How long to wait before a retry: exponential with full jitter, hashed from ids.

Full jitter (M. Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog, 2015) spreads
retries best; hashing makes the wait a function of the call and attempt, so that replay and a second
look agree. A peer's `retry_after_ms` is the least that is waited, and the jitter comes on top:
calls that were all told the same time must not come back all at once.
"""

import msgspec

from acp_spec.model.ids import unit_interval

BASE_MS = 100
"""First ceiling: longer than a local round trip, shorter than a person notices."""

MAX_MS = 5_000
"""No single wait beyond the default timeout of a call."""


class Backoff(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parameters; the ceiling doubles from `base_ms` with each attempt up to `max_ms`."""

    base_ms: int = BASE_MS
    max_ms: int = MAX_MS

    def wait_ms(self, call_id: str, attempt: int, *, retry_after_ms: int | None) -> int:
        """The wait after `attempt` (1, 2, ...) of this call."""
        ceiling = min(self.max_ms, self.base_ms * 2 ** min(attempt - 1, 30))
        jittered = int(unit_interval("backoff", call_id, str(attempt)) * ceiling)
        return jittered + (retry_after_ms or 0)
