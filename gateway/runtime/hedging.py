"""The hedges of one gateway: what is known of each target's action, and a second attempt's start.

A hedge is asked for by a timer of the engine. It never waits: nobody free elsewhere, no token, no
budget, and the first attempt goes on alone.
"""

from gateway.governance import hedging
from gateway.governance.hedging import FRESH, Tail
from gateway.governance.wish import Wish

TAILS_MAX = 10_000
"""Actions of versions with something known; beyond it the oldest are learned anew."""


class Hedging:
    """Tails by version and action, while hedging is on for them."""

    def __init__(self) -> None:
        self._tails: dict[str, Tail] = {}

    @property
    def is_on(self) -> bool:
        """Whether a call that may be hedged has begun lately."""
        return bool(self._tails)

    def began(self, wish: Wish) -> int:
        """A first attempt starts: after how long to think of a hedge, 0: never."""
        rules = wish.rules.hedge
        if not rules.share:
            return 0
        tail = hedging.began(self._tail(wish), rules)
        self._keep(wish, tail)
        return hedging.after_ms(tail, rules)

    def served(self, wish: Wish, service_ms: float) -> None:
        """An attempt was answered well."""
        if wish.rules.hedge.share:
            self._keep(wish, hedging.served(self._tail(wish), service_ms))

    def may_hedge(self, wish: Wish) -> bool:
        return wish.rules.hedge.share > 0 and hedging.may_hedge(self._tail(wish))

    def hedged(self, wish: Wish) -> None:
        """A hedge was sent."""
        self._keep(wish, hedging.hedged(self._tail(wish)))

    def _tail(self, wish: Wish) -> Tail:
        return self._tails.get(_key(wish), FRESH)

    def _keep(self, wish: Wish, tail: Tail) -> None:
        key = _key(wish)
        if key not in self._tails and len(self._tails) >= TAILS_MAX:
            del self._tails[next(iter(self._tails))]
        self._tails[key] = tail


def _key(wish: Wish) -> str:
    return f"{wish.pin}/{wish.action}/{wish.step_type}"
