"""What is known around a recovery decision: time, the target's breaker and tokens, its load.

It comes from the gateway's live state at the moment of the decision and is recorded with it as
features; replay reads the record and never asks again.
"""

import msgspec

from acp_spec.model.context import Signals


class Around(msgspec.Struct, frozen=True, kw_only=True):
    """Of the instance that the next attempt would go to. `retry_tokens`: the share that is left of
    them; `signals_age_ms`: how old its load figures are, None where there are none."""

    at_ms: int
    breaker: str = "closed"
    breaker_open_ms: int = 0
    retry_tokens: float = 1.0
    may_retry: bool = True
    signals: Signals | None = None
    signals_age_ms: int | None = None
