"""The one shape of the siblings, and the column that keeps a policy's states by key.

A policy is pure: values in, values out. Its `key` says whose state it looks at; an empty key means
that it has nothing to say about this wish. What it notes when it takes is given back to it when the
permit is closed. A state that holds no information is not kept.
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

    def key(self, wish: Wish) -> str: ...

    def check(self, state: S, wish: Wish, *, waiting: int) -> Verdict:
        """May it start? `waiting` stand in this key's queue already. Changes nothing."""

    def take(self, state: S, wish: Wish) -> tuple[S, int]:
        """The state once it has started, and a note for `observe`."""

    def observe(self, state: S, closing: Closing, *, note: int) -> S:
        """The state once it has ended."""

    def is_idle(self, state: S, now_ms: float) -> bool:
        """Whether the state says no more than a fresh one."""


class Part(Protocol):
    """One place of a row, whatever its states are.

    `is_keyed`: whether an empty key means that it has nothing to say; else it is always asked.
    """

    @property
    def name(self) -> str: ...

    @property
    def is_keyed(self) -> bool: ...

    def key(self, wish: Wish) -> str: ...

    def check(self, wish: Wish, *, key: str, waiting: int) -> Verdict: ...

    def take(self, wish: Wish, *, key: str) -> int | None: ...

    def observe(self, closing: Closing, *, key: str, note: int) -> bool:
        """False: it waits for the operation's end, and its note is still open."""

    def sweep(self, now_ms: float) -> None:
        """Forget what holds no information."""

    def __len__(self) -> int:
        """How many states it keeps."""


class Column(Generic[S]):
    """A policy with its states. `states` is for those who look (metrics, tests, views)."""

    is_keyed = True

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

    def check(self, wish: Wish, *, key: str, waiting: int) -> Verdict:
        return self.policy.check(self.states.get(key, self.policy.fresh), wish, waiting=waiting)

    def take(self, wish: Wish, *, key: str) -> int | None:
        before = self.states.get(key, self.policy.fresh)
        state, note = self.policy.take(before, wish)
        if state is not before:
            self.states[key] = state
        return note

    def observe(self, closing: Closing, *, key: str, note: int) -> bool:
        policy = self.policy
        if closing.outcome is Outcome.ACCEPTED and policy.settles_late:
            return False
        before = self.states.get(key, policy.fresh)
        state = policy.observe(before, closing, note=note)
        if policy.is_idle(state, closing.now_ms):
            self.states.pop(key, None)
        elif state is not before:
            self.states[key] = state
        return True

    def sweep(self, now_ms: float) -> None:
        is_idle = self.policy.is_idle
        idle = [key for key, state in self.states.items() if is_idle(state, now_ms)]
        for key in idle:
            del self.states[key]
