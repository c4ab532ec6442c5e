"""The row of policies around a target: check all of them, then take all of them, close once.

`Row.parts` is the row, in the order of asking, behind the deadline, which keeps nothing. Only if
every one admits is anything taken, so that a refusal by one costs the others nothing: a call that
the breaker refuses burns no token.
"""

from typing import cast

from gateway.governance import concurrency, deadline, rate_limit
from gateway.governance.breaker import FRESH, Breaker, Circuit
from gateway.governance.concurrency import Concurrency
from gateway.governance.outcome import Outcome
from gateway.governance.policy import Column, Policy
from gateway.governance.push_back import PushBack
from gateway.governance.retry_tokens import RetryTokens
from gateway.governance.verdicts import ADMIT, Admit, Verdict
from gateway.governance.wish import Closing, Permit, Wish

LANES_MAX = 16_384
"""Targets and actions whose keys are kept at hand; beyond it they are made again."""

SWEEP_AFTER = 1_000
"""Closings between two looks for states to forget, or as many as there are states."""


class Slots(Column[int]):
    """The column of one kind of slots."""

    def __init__(self, policy: Concurrency) -> None:
        super().__init__(policy)
        self.slots_of = policy.slots


Parts = tuple[Column[object], ...]
Places = tuple[tuple[Policy[object], dict[str, object], str], ...]
"""A policy, its states, and the key of the state that is meant."""


class Row:
    """Live states of the row, by key; one thread's. `parts` are asked in their order."""

    def __init__(self) -> None:
        self.breaker, self.retries = Column(Breaker()), Column(RetryTokens())
        of_all = Column(rate_limit.OfTarget()), Column(rate_limit.OfAction())
        self.rates = (*of_all, Column(rate_limit.OfWorkflow()))
        self.slots = Slots(concurrency.OfStepType()), Slots(concurrency.OfTarget())
        judges = self.breaker, self.retries, Column(PushBack())
        # Each policy gets only states of its own column, whatever those are.
        self.parts = cast(Parts, (*judges, *self.rates, *self.slots))
        self.waiting: dict[str, int] = {}
        self._closings = 0
        self._lanes: dict[tuple[str, ...], Lane] = {}
        self._asked: Wish | None = None
        self._lane: Lane

    def lane(self, wish: Wish) -> "Lane":
        """Where this wish meets the row. Equal wishes have equal keys, so they are made once."""
        if wish is self._asked:
            return self._lane
        name = (wish.instance, wish.action, wish.step_type, wish.workflow)
        lane = self._lanes.get(name)
        if lane is None or not lane.holds(wish):
            if len(self._lanes) >= LANES_MAX:
                self._lanes.clear()
            lane = self._lanes[name] = Lane(self, wish)
        self._asked, self._lane = wish, lane
        return lane

    def check(self, wish: Wish) -> Verdict:
        """The first policy that does not admit, or ADMIT. Changes nothing."""
        if wish.left_ms <= 0:
            return deadline.check(wish.left_ms)
        waiting = self.waiting
        for policy, states, key in self.lane(wish).places:
            state, queued = states.get(key), waiting.get(key, 0) if waiting else 0
            if state is None:
                if policy.stirred_by is not None and not queued:
                    continue
                state = policy.fresh
            verdict = policy.check(state, wish, waiting=queued)
            if verdict is not ADMIT:
                return verdict
        return ADMIT

    def circuit(self, wish: Wish) -> Circuit:
        """The breaker that this wish meets."""
        return self.lane(wish).circuit

    def check_at(self, key: str, wish: Wish) -> Verdict:
        """What the policies of this one key say: whether its queue's head may be asked again."""
        for policy, states, its_key in self.lane(wish).places:
            if its_key == key:
                state, queued = states.get(key, policy.fresh), self.waiting.get(key, 0)
                verdict = policy.check(state, wish, waiting=queued)
                if not isinstance(verdict, Admit):
                    return verdict
        return ADMIT

    def take(self, wish: Wish) -> Permit:
        """Everything at once; the permit is closed exactly once by `observe`."""
        lane = self.lane(wish)
        notes: list[int | None] = []
        for policy, states, key in lane.places:
            before = states.get(key)
            if before is None:
                if policy.stirred_by is not None:
                    notes.append(0)
                    continue
                before = policy.fresh
            state, note = policy.take(before, wish)
            if state is not before:
                states[key] = state
            notes.append(note)
        return Permit(wish, lane, tuple(notes))

    def observe(
        self, permit: Permit, outcome: Outcome, *, now_ms: float, retry_after_ms: int = 0
    ) -> Permit | None:
        """The attempt is over. ACCEPTED: what is left of the permit, to be closed at its end."""
        closing = Closing(permit.wish, outcome, now_ms, retry_after_ms)
        is_accepted, left = outcome is Outcome.ACCEPTED, list(permit.notes)
        for number, (policy, states, key) in enumerate(permit.lane.places):
            note = left[number]
            if note is None or (is_accepted and policy.settles_late):
                continue
            left[number] = None
            before = states.get(key)
            if before is None:
                stirred_by = policy.stirred_by
                if stirred_by is not None and outcome not in stirred_by:
                    continue
                before = policy.fresh
            state = policy.observe(before, closing, note=note)
            if policy.is_idle(state, now_ms) if policy.fades else state == policy.fresh:
                states.pop(key, None)
            elif state is not before:
                states[key] = state
        self._closings += 1
        if self._closings >= SWEEP_AFTER and self._closings >= len(self):
            self._closings = 0  # seldom enough to cost each closing next to nothing
            self.sweep(now_ms)
        if not is_accepted or left.count(None) == len(left):
            return None
        return Permit(permit.wish, permit.lane, tuple(left))

    def taken(self) -> dict[str, int]:
        """Slots in use, by key."""
        return {key: count for column in self.slots for key, count in column.states.items()}

    def slot_keys(self, wish: Wish) -> tuple[str, ...]:
        """The keys of the slots that a call needs: its step type's, its target's."""
        return self.lane(wish).slot_keys

    def inflight(self, key: str) -> int:
        """Slots in use at this key."""
        of_type, of_target = self.slots  # a key belongs to one of them
        return of_target.states.get(key) or of_type.states.get(key, 0)

    def limit_at(self, key: str, wish: Wish) -> int:
        """How many slots there are at this key; 0 where it has none."""
        for column, slot_key in zip(self.slots, self.slot_keys(wish), strict=True):
            if slot_key == key:
                return column.slots_of(wish).limit
        return 0

    def full_at(self, wish: Wish) -> str:
        """The key at which no more of this kind may wait; empty: at none."""
        for column, key in zip(self.slots, self.slot_keys(wish), strict=True):
            if self.waiting.get(key, 0) >= column.slots_of(wish).max_waiting:
                return key
        return ""

    def keys(self, wish: Wish) -> list[str]:
        """Where something may have become free when a permit of this wish is closed."""
        return [key for _, _, key in self.lane(wish).places]

    def refill(self) -> None:
        """Rates may have changed: a token awaited at an old rate could be far away."""
        for column in self.rates:
            column.states.clear()

    def queue(self, key: str) -> None:
        """One more waits at this key."""
        self.waiting[key] = self.waiting.get(key, 0) + 1

    def leave_queue(self, key: str) -> None:
        """One of them was woken."""
        left = self.waiting.get(key, 0) - 1
        assert left >= 0, "who leaves a queue stood in it"
        if left:
            self.waiting[key] = left
        else:
            del self.waiting[key]

    def __len__(self) -> int:
        """How many states are kept in all."""
        return sum(map(len, self.parts))

    def sweep(self, now_ms: float) -> None:
        """Forget the states that hold no information."""
        for part in self.parts:
            part.sweep(now_ms)


class Lane:
    """The places of a row that have something to say about wishes of one kind, with their keys."""

    __slots__ = ("_about", "_circuits", "breaker_key", "places", "slot_keys")

    def __init__(self, row: Row, wish: Wish) -> None:
        keyed = [(part, part.key(wish)) for part in row.parts]
        self.places: Places = tuple([(part.policy, part.states, key) for part, key in keyed if key])
        self.slot_keys = tuple([column.key(wish) for column in row.slots])
        self.breaker_key, self._circuits = row.breaker.key(wish), row.breaker.states
        self._about = (wish.rules, wish.contract_rate, wish.pin)

    @property
    def circuit(self) -> Circuit:
        """The breaker there, as it is now."""
        return self._circuits.get(self.breaker_key, FRESH)

    def holds(self, wish: Wish) -> bool:
        """Whether this wish would get the same keys: parameters are exchanged as a whole."""
        rules, contract_rate, pin = self._about
        return rules is wish.rules and contract_rate is wish.contract_rate and pin == wish.pin
