"""The clock and the sink of one attempt, the same for every transport that makes single calls.

Rule: `sink(answer, False)` exactly once, `sink(answer, True)` at most once after it. When time is
up the attempt is reported, and its answer is still listened for during `late_grace_ms` (SPEC 9.3).
"""

import abc
import asyncio

import msgspec

from acp_spec.model.enums import Boundary
from acp_spec.model.errors import Reason
from gateway.runtime.connection import Answer, Outgoing, Sink
from gateway.transports.answers import lost, not_sent

AttemptKey = tuple[str, int]


class Attempt(abc.ABC):
    """One attempt on its way. A transport says whether it was sent, and how to give it up."""

    def __init__(
        self, outgoing: Outgoing, sink: Sink, *, open_attempts: "dict[AttemptKey, Attempt]"
    ) -> None:
        self.outgoing = outgoing
        self._sink = sink
        self._open = open_attempts
        self._loop = asyncio.get_running_loop()
        context = outgoing.context
        self._key = (context.call_id, context.attempt)
        self._deadline = self._loop.time() + context.timeout_ms / 1000
        self._timer = self._loop.call_at(self._deadline, self._time_out)
        self._written_at: float | None = None
        self._is_reported = False
        self._is_over = False
        open_attempts[self._key] = self

    @abc.abstractmethod
    def is_sent(self) -> bool:
        """Whether the peer may have got it."""

    @property
    def waits_for(self) -> Boundary:
        """Who is slow while it cannot be written: a connection that does not come up."""
        return Boundary.COMPONENT

    @abc.abstractmethod
    def give_up(self) -> None:
        """Break it off at the transport; nothing comes back any more."""

    def stamp_ms(self) -> int:
        """Time left of this attempt, as it is written into the request: at least 1. What is before
        this moment was waiting in the gateway; service time counts from here."""
        now = self._written_at = self._loop.time()
        return max(1, int((self._deadline - now) * 1000))

    @property
    def left_ms(self) -> int:
        """Time left of it now, in the same way."""
        return max(1, int((self._deadline - self._loop.time()) * 1000))

    def finish(self, answer: Answer) -> None:
        """What the transport got; only the first counts. Never called inside `send`."""
        if self._is_over:
            return
        self._end()
        late, self._is_reported = self._is_reported, True
        if not late or answer.answered:  # a late loss tells nothing new
            self._sink(self._timed(answer), late)

    def finish_soon(self, answer: Answer) -> None:
        """`finish`, from inside `send`."""
        self._loop.call_soon(self.finish, answer)

    def reset(self) -> None:
        """Break it off now; it is reported as lost unless it was reported before."""
        if self._is_over:
            return
        sent = self.is_sent()
        self._end()
        self.give_up()
        if self._is_reported:
            return
        self._is_reported = True
        message = "the gateway gave the call up"
        answer = (
            lost(Reason.CANCELLED, message, effect=self.outgoing.effect)
            if sent
            else not_sent(Reason.CANCELLED, message, boundary=Boundary.GATEWAY)
        )
        self._loop.call_soon(self._sink, answer, False)

    def _time_out(self) -> None:
        self._is_reported = True
        message = f"no answer within {self.outgoing.context.timeout_ms} ms"
        if self.is_sent():
            grace_s = self.outgoing.late_grace_ms / 1000
            self._timer = self._loop.call_later(grace_s, self._stop_listening)
            timed_out = lost(Reason.TIMEOUT, message, effect=self.outgoing.effect)
            self._sink(self._timed(timed_out), False)
        else:
            self._stop_listening()
            text = f"{message}: there was no connection yet"
            self._sink(not_sent(Reason.TIMEOUT, text, boundary=self.waits_for), False)

    def _timed(self, answer: Answer) -> Answer:
        if self._written_at is None:
            return answer
        service_ms = int((self._loop.time() - self._written_at) * 1000)
        return msgspec.structs.replace(answer, service_ms=service_ms)

    def _stop_listening(self) -> None:
        self._end()
        self.give_up()

    def _end(self) -> None:
        self._is_over = True
        self._timer.cancel()
        if self._open.get(self._key) is self:
            del self._open[self._key]
