"""The one shape of the siblings, and the column that keeps a policy's states by key.

A policy is pure: values in, values out. Its `key` says whose state it looks at; an empty key means
that it has nothing to say about this wish. What it notes when it takes is given back to it when the
permit is closed. A state that holds no information is not kept, and a policy that rests on fresh
states is not even asked about them: most targets are healthy most of the time.
"""

from typing import Generic, Protocol, TypeVar

from gateway.governance.outcome import Outcome
from gateway.governance.verdicts import Verdict
from gateway.governance.wish import Closing, Wish

S = TypeVar("S")


class Policy(Protocol[S]):
    """check, take, observe: one sibling."""

    @property
    def name(self) -> str: ...

    @property
    def fresh(self) -> S:
        """The state of a key that nobody has used, or that was forgotten."""

    @property
    def settles_late(self) -> bool:
        """Whether it waits for the end of a long operation rather than for its beginning."""

    @property
    def stirred_by(self) -> frozenset[Outcome] | None:
        """The outcomes that can change a fresh state, of a policy that rests on it: there it admits
        whoever finds no queue, and a start leaves it as it is. None: it never rests."""

    @property
    def fades(self) -> bool:
        """Whether time alone makes a state say no more than a fresh one."""

    def key(self, wish: Wish) -> str: ...

    def check(self, state: S, wish: Wish, *, waiting: int) -> Verdict:
        """May it start? `waiting` stand in this key's queue already. Changes nothing."""

    def take(self, state: S, wish: Wish) -> tuple[S, int]:
        """The state once it has started, and a note for `observe`."""

    def observe(self, state: S, closing: Closing, *, note: int) -> S:
        """The state once it has ended."""

    def is_idle(self, state: S, now_ms: float) -> bool:
        """Whether the state says no more than a fresh one. Asked only of a policy that `fades`."""


class Column(Generic[S]):
    """A policy with its states. `states` is for those who look (metrics, tests, views)."""

    def __init__(self, policy: Policy[S]) -> None:
        self.policy = policy
        self.states: dict[str, S] = {}

    @property
    def name(self) -> str:
        return self.policy.name

    def __len__(self) -> int:
        return len(self.states)

    def key(self, wish: Wish) -> str:
        return self.policy.key(wish)

    def state(self, key: str) -> S:
        return self.states.get(key, self.policy.fresh)

    def sweep(self, now_ms: float) -> None:
        """Forget what holds no information."""
        if not self.policy.fades:
            return  # nothing fresh is kept
        is_idle = self.policy.is_idle
        idle = [key for key, state in self.states.items() if is_idle(state, now_ms)]
        for key in idle:
            del self.states[key]
