"""Who is next of those who wait at one place: turns between tenants by weight, rank within one.

A tenant's turn comes at its own virtual time, which moves by 1/weight with each turn taken
(start-time fair queueing: Goyal, Vin, Cheng 1996), so a tenant with a thousand waiting gets no more
turns than one with two. Within a tenant the smallest rank goes first, equal ranks as they came.
"""

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable

import msgspec


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt in a line, by name: whoever wakes it looks the session up again.

    `key`: the line it was woken from; empty for one that waits for a component. `rank_ms`: its
    place (`sharing.rank_ms`). `order`: when it came, as its line counts; who must go back keeps it.
    """

    session_id: str
    call_id: str
    attempt: int
    tenant: str
    key: str = ""
    rank_ms: int = 0
    order: int = 0


Entry = tuple[int, int, Waiting]
WeightOf = Callable[[str], float]


class _Tenant:
    """One tenant's line, sorted, and the virtual time of its next turn."""

    __slots__ = ("entries", "gone", "turn")

    def __init__(self, entries: list[Entry], turn: float) -> None:
        self.entries = entries
        self.turn = turn
        self.gone = False


class Lines:
    """The tenants' lines at one place."""

    def __init__(self, weight_of: WeightOf) -> None:
        self._weight_of = weight_of
        self._tenants: dict[str, _Tenant] = {}
        self._turns: list[tuple[float, int, str, _Tenant]] = []
        self._now = 0.0
        self._count = 0
        self._size = 0

    def put(self, waiting: Waiting) -> None:
        """Take a place. One that was here before (`order`) gets its old one back, and its turn."""
        is_back = waiting.order > 0
        self._size += 1
        if not is_back:
            self._count += 1
            waiting = msgspec.structs.replace(waiting, order=self._count)
        name = waiting.tenant
        entry = (waiting.rank_ms, waiting.order, waiting)
        line = self._tenants.get(name)
        if line is None:
            turn = self._now if is_back else self._now + self._step(name)
            self._enter(name, _Tenant([entry], turn), is_back=is_back)
            return
        insort(line.entries, entry)
        if is_back:
            line.gone = True
            back = _Tenant(line.entries, line.turn - self._step(name))
            self._enter(name, back, is_back=True)

    def pop(self) -> Waiting | None:
        """Who is next; None when nobody waits."""
        line = self._next()
        if line is None:
            return None
        heapq.heappop(self._turns)
        waiting = line.entries.pop(0)[2]
        self._size -= 1
        self._now = max(self._now, line.turn)
        if line.entries:
            line.turn += self._step(waiting.tenant)
            self._enter(waiting.tenant, line)
        else:
            self._leave(waiting.tenant)
        return waiting

    def peek(self) -> Waiting | None:
        """Who would be next."""
        line = self._next()
        return None if line is None else line.entries[0][2]

    def ahead_of(self, waiting: Waiting) -> int:
        """About how many go before this one: its own tenant's before it, times the tenants."""
        line = self._tenants.get(waiting.tenant)
        before = (waiting.rank_ms, waiting.order or self._count + 1)
        own = bisect_left(line.entries, before, key=lambda e: e[:2]) if line else 0
        others = len(self._tenants) - (line is not None)
        return min(len(self), own + (own + 1) * others)

    def displaced_by(self, waiting: Waiting) -> Waiting | None:
        """Who has to make room for this one, and has left; None: it has no better claim.

        The longest line by weight loses its last place: a tenant that floods pays for it itself.
        """
        name = waiting.tenant
        longest = max(self._tenants, key=self._length)
        if self._length(longest) > self._length(name, newcomers=1):
            name = longest
        elif name not in self._tenants or self._tenants[name].entries[-1][0] <= waiting.rank_ms:
            return None
        line = self._tenants[name]
        last = line.entries.pop()[2]
        self._size -= 1
        if not line.entries:
            self._leave(name)
        return last

    def __len__(self) -> int:
        return self._size

    def __bool__(self) -> bool:
        return bool(self._tenants)

    def _length(self, tenant: str, *, newcomers: int = 0) -> float:
        line = self._tenants.get(tenant)
        return ((len(line.entries) if line else 0) + newcomers) / self._weight_of(tenant)

    def _step(self, tenant: str) -> float:
        return 1.0 / self._weight_of(tenant)

    def _next(self) -> _Tenant | None:
        """The line whose turn it is; what has left meanwhile is cleared away."""
        while self._turns:
            line = self._turns[0][3]
            if not line.gone:
                return line
            heapq.heappop(self._turns)
        return None

    def _enter(self, name: str, line: _Tenant, *, is_back: bool = False) -> None:
        """Line up for a turn; of equal turns the one that was here before goes first."""
        self._count += 1
        self._tenants[name] = line
        heapq.heappush(
            self._turns, (line.turn, -self._count if is_back else self._count, name, line)
        )

    def _leave(self, name: str) -> None:
        self._tenants.pop(name).gone = True
