"""Recovery policy number one, `backoff`: retry with exponential backoff and full jitter.

It always proposes to retry; the guardrails of `recovery` mask what must not be. A learned policy
replaces this object and nothing else.
"""

import hashlib

import msgspec

from acp_spec.model.recovery import Option, OptionChance, PolicyRef, RecoveryView
from gateway.governance.backoff import Backoff

NAME = "backoff"
VERSION = "1.1.0"
"""1.1.0: waits for the breaker, and adds the jitter to what a peer asked for."""


class BackoffPolicy:
    """`Policy` over the parameters of `Backoff` (`recovery: {policy: backoff, base_ms: ...}`)."""

    def __init__(self, backoff: Backoff | None = None) -> None:
        self._backoff = backoff or Backoff()
        text = msgspec.json.encode([NAME, VERSION, self._backoff])
        digest = hashlib.sha256(text).hexdigest()[:16]
        self._ref = PolicyRef(name=NAME, version=VERSION, digest=digest)

    @property
    def ref(self) -> PolicyRef:
        return self._ref

    def options(self, view: RecoveryView) -> tuple[OptionChance, ...]:
        wait_ms = self._backoff.wait_ms(view.call_id, view.attempt, retry_after_ms=_least_ms(view))
        return (
            OptionChance(option=Option.RETRY, wait_ms=wait_ms, probability=1.0),
            OptionChance(option=Option.GIVE_UP, probability=0.0),
        )


def _least_ms(view: RecoveryView) -> int | None:
    """What the peer asked for, or until the breaker lets somebody through again."""
    if not view.breaker_open_ms:
        return view.retry_after_ms
    return max(view.breaker_open_ms, view.retry_after_ms or 0)
