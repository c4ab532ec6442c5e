"""Open permits by attempt: each is closed once, by the outcome its attempt came to.

An attempt that began a long operation keeps the part of its permit that judges the target; it is
closed when the operation ends, however that comes about: by poll, call-back, timeout, or the end of
its session. Nothing here is durable: after a restart every target is judged anew.
"""

from gateway.engine.events import AttemptEnded
from gateway.engine.states import CallState, Phase, SessionState
from gateway.governance.outcome import Ending, Outcome, outcome_of, without_error
from gateway.governance.wish import Permit
from gateway.runtime.connection import Answer
from gateway.runtime.queueing import Admission

Address = tuple[str, int]
"""(call_id, attempt)."""

FAIR_SHARE = 0.5
"""An attempt that got less of its call's own timeout than this was late before it was sent."""


class OpenPermits:
    """Of one gateway's attempts."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._open: dict[Address, Permit] = {}
        self._operations: dict[str, dict[Address, Permit]] = {}

    def __len__(self) -> int:
        """How many are open: attempts in flight, and operations still to be judged."""
        return len(self._open) + sum(map(len, self._operations.values()))

    def __contains__(self, address: Address) -> bool:
        return address in self._open

    def put(self, address: Address, permit: Permit) -> None:
        assert address not in self._open, "an attempt is admitted once"
        self._open[address] = permit

    def close(self, state: SessionState, ended: AttemptEnded, *, answer: Answer) -> None:
        """The attempt is over; nothing, if an earlier run of this gateway admitted it."""
        address = (ended.call_id, ended.attempt)
        permit = self._open.pop(address, None)
        if permit is None:
            return
        outcome = _outcome(state, ended, answer=answer)
        after_ms = (ended.error.retry_after_ms or 0) if ended.error is not None else 0
        rest = self._admission.observe(permit, outcome, retry_after_ms=after_ms)
        if rest is not None:
            self._operations.setdefault(state.session_id, {})[address] = rest
            self._admission.demand.stands_still(state.session_id)

    def lose(self, address: Address, outcome: Outcome = Outcome.CANCELLED) -> None:
        """Nobody will answer (its session was erased, or it never left): its slots come back."""
        permit = self._open.pop(address, None)
        if permit is not None:
            self._admission.observe(permit, outcome)

    def settle(self, state: SessionState) -> None:
        """Close what is kept for operations of this session that are over by now."""
        mine = self._operations.get(state.session_id) if self._operations else None
        if mine is None:
            return
        for address, permit in list(mine.items()):
            call = state.calls.get(address[0])
            if call is None or call.phase is not Phase.OPERATION:
                del mine[address]
                self._admission.observe(permit, _of_operation(call))
        if not mine:
            del self._operations[state.session_id]


def _outcome(state: SessionState, ended: AttemptEnded, *, answer: Answer) -> Outcome:
    if ended.error is None:
        return without_error(accepted=ended.operation_poll_after_ms is not None)
    return outcome_of(_ending(state.calls[ended.call_id], ended, answer=answer))


def _ending(call: CallState, ended: AttemptEnded, *, answer: Answer) -> Ending:
    """What is known of it, and what excuses the target."""
    started = call.started(ended.attempt)
    given_ms = started.timeout_ms if started is not None else 0
    return Ending(
        error=ended.error,
        stated=answer.answered and ended.error is answer.error,
        not_sent=ended.not_sent,
        is_cancelled=call.cancelling,
        is_short_of_time=given_ms < call.created.timeout_ms * FAIR_SHARE,
    )


def _of_operation(call: CallState | None) -> Outcome:
    """What an operation came to; one that its session outlived or cancelled is nobody's failure."""
    stands = call.attempt if call is not None else None
    ended = stands.operation if stands is not None else None
    if ended is None:
        return Outcome.CANCELLED
    return outcome_of(Ending(error=ended.error, stated=ended.by != "timeout"))
