"""BY_KEY calls while they run and after: one runner per call_id, everyone else waits or is
answered.

`begin` either makes the caller the first (it must then `settle` exactly once) or says what to
answer instead. The flight is entered before the store is read, so two repeats can never both
become the first.
"""

import asyncio
from dataclasses import dataclass, field

from acp_spec.model.errors import Reason
from acp_spec.sdk.clock import Clock
from acp_spec.sdk.faults import refusal
from acp_spec.sdk.outcomes import Judgement, OutcomeStore, Record, Stage, judge


@dataclass(slots=True, kw_only=True)
class Flight:
    """A call_id that is running now, and the highest attempt that asked for it."""

    call_id: str
    digest: str
    attempt: int
    settled: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    """The caller runs the handler and settles `flight`."""

    flight: Flight


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiter:
    """Another attempt runs; `begin` again once `flight.settled`."""

    flight: Flight


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    outcome: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Begun before this process; nobody will ever know how it ended."""


Begun = First | Waiter | Remembered | Lost


class CallBook:
    def __init__(self, store: OutcomeStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._flights: dict[str, Flight] = {}

    async def begin(self, call_id: str, *, attempt: int, digest: str, ttl_ms: float) -> Begun:
        """What this attempt is. Raises AcpFailure for conflict, stale attempt, no room."""
        running = self._flights.get(call_id)
        if running is not None:
            return _join(running, attempt=attempt, digest=digest)
        flight = Flight(call_id=call_id, digest=digest, attempt=attempt)
        self._flights[call_id] = flight
        begun: Begun | None = None
        try:
            begun = await self._begin(flight, ttl_ms)
        finally:
            if not isinstance(begun, First):
                self._leave(flight)
        return begun

    async def settle(self, flight: Flight, *, outcome: bytes | None, ttl_ms: float) -> None:
        """The runner is done. `outcome` None = it failed with side effect NONE: a repeat may
        run.
        """
        record = Record(
            call_id=flight.call_id,
            digest=flight.digest,
            attempt=flight.attempt,
            stage=Stage.FREE if outcome is None else Stage.SETTLED,
            expires_at_ms=self._clock.wall_ms() + ttl_ms,
            outcome=outcome or b"",
        )
        try:
            await self._store.put(record)
        finally:
            self._leave(flight)

    async def _begin(self, flight: Flight, ttl_ms: float) -> Begun:
        now_ms = self._clock.wall_ms()
        record = await self._store.get(flight.call_id)
        match judge(record, digest=flight.digest, attempt=flight.attempt, now_ms=now_ms):
            case Judgement.CONFLICT:
                raise _conflict(flight.call_id)
            case Judgement.STALE:
                raise _stale(flight.call_id, flight.attempt)
            case Judgement.REPEAT:
                assert record is not None
                await self._raise_attempt(record, flight.attempt)
                return Remembered(outcome=record.outcome)
            case Judgement.LOST:
                return Lost()
            case Judgement.RUN:
                if record is None and not await self._store.has_room(now_ms):
                    raise refusal(
                        Reason.OVERLOADED,
                        "The component remembers as many outcomes as it may; give it more room.",
                    )
                await self._store.put(_begun(flight, now_ms + ttl_ms))
                return First(flight=flight)

    async def _raise_attempt(self, record: Record, attempt: int) -> None:
        if attempt > record.attempt:
            await self._store.put(
                Record(
                    call_id=record.call_id,
                    digest=record.digest,
                    attempt=attempt,
                    stage=record.stage,
                    expires_at_ms=record.expires_at_ms,
                    outcome=record.outcome,
                )
            )

    def _leave(self, flight: Flight) -> None:
        del self._flights[flight.call_id]
        flight.settled.set()


def _join(running: Flight, *, attempt: int, digest: str) -> Waiter:
    if running.digest != digest:
        raise _conflict(running.call_id)
    if attempt < running.attempt:
        raise _stale(running.call_id, attempt)
    running.attempt = attempt
    return Waiter(flight=running)


def _begun(flight: Flight, expires_at_ms: float) -> Record:
    return Record(
        call_id=flight.call_id,
        digest=flight.digest,
        attempt=flight.attempt,
        stage=Stage.BEGUN,
        expires_at_ms=expires_at_ms,
    )


def _conflict(call_id: str) -> Exception:
    return refusal(
        Reason.IDEMPOTENCY_CONFLICT,
        f"Call {call_id} was made before with another body; use a new call_id for other arguments.",
    )


def _stale(call_id: str, attempt: int) -> Exception:
    return refusal(
        Reason.STALE_ATTEMPT,
        f"Attempt {attempt} of call {call_id} came after a later one; it is not run.",
    )
