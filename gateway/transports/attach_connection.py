"""A component that dialled in, as the Connection port: calls over a link that may drop and return.

An attempt waits here for a credit, is stamped when it is written, and stays open while its link is
gone: the next hello of the instance says which attempts it still has. Whether an instance may come
back, and until when, is the hub's matter.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.codec import frames, json
from acp_spec.codec.refusals import Direction
from acp_spec.model.attach import CancelOutcome, Key, OperationOutcome
from acp_spec.model.calls import (
    CancelResponse,
    ErrorBody,
    OperationState,
    Progress,
    Reply,
)
from acp_spec.model.card import Card, Health
from acp_spec.model.context import Signals
from acp_spec.model.enums import Boundary, CancelState, HealthStatus, SideEffect
from acp_spec.model.errors import AcpError, AcpFailure, Reason
from acp_spec.sdk.attach_pieces import Pieces
from gateway.runtime.connection import Answer, Outgoing, Sink
from gateway.transports.answers import (
    RESPONSE_OF,
    lost,
    not_sent,
    stated_error,
    success,
    unreadable,
    violation,
)
from gateway.transports.attach_link import CREDITS_MAX, Link
from gateway.transports.attach_questions import Questions
from gateway.transports.attempts import Attempt
from gateway.transports.grpc_connection import REQUESTS
from gateway.transports.outbound import with_context

Acknowledge = Callable[[Key], None]
"""The answer of this attempt was handed on: acknowledge it once it is on disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What the component says it has, and what it cannot have."""

    known: Collection[Key]
    same_process: bool


class AttachConnection:
    """See `Connection`. All methods are called on the event loop's thread."""

    def __init__(self, card: Card, *, max_response_bytes: int, acknowledge: Acknowledge) -> None:
        self.card = card
        self.signals: Signals | None = None
        self._max_bytes = max_response_bytes
        self._acknowledge = acknowledge
        self._open: dict[Key, Attempt] = {}
        self._waiting: OrderedDict[Key, AttachAttempt] = OrderedDict()
        self._questions = Questions()
        self._pieces = Pieces(
            max_bytes=max_response_bytes, bodies_max=CREDITS_MAX, direction=Direction.RESPONSE
        )
        self._link: Link | None = None
        self._credits = 0
        self._is_closed = False

    @property
    def waiting(self) -> int:
        """Attempts that wait for a credit or for the link."""
        return len(self._waiting)

    @property
    def is_linked(self) -> bool:
        """Whether the instance is there now."""
        return self._link is not None

    @property
    def credits(self) -> int:
        """Calls that may be written now."""
        return self._credits

    # ---- calls -----------------------------------------------------------------------------------

    def send(self, outgoing: Outgoing, sink: Sink) -> None:
        attempt = AttachAttempt(self, outgoing, sink=sink)
        if self._is_closed:
            attempt.finish_soon(_gone("the instance has left"))
            return
        self._waiting[attempt.key] = attempt
        self._feed()

    def adopt(self, outgoing: Outgoing, sink: Sink) -> None:
        """Wait for the answer of an attempt that an earlier run of this gateway sent.

        Its service time counts from here: how long the gateway was away is not the component's.
        """
        attempt = AttachAttempt(self, outgoing, sink=sink)
        attempt.sent = True
        attempt.stamp_ms()

    def reset(self, call_id: str, attempt: int) -> None:
        found = self._open.get((call_id, attempt))
        if found is not None:
            found.reset()

    def _feed(self) -> None:
        """Hand waiting attempts to the link while there are credits."""
        while self._link is not None and self._credits and self._waiting:
            key, attempt = self._waiting.popitem(last=False)
            self._credits -= 1
            self._link.calls.put_body(key, attempt.write)

    def not_written(self) -> None:
        """A credit that was taken is not needed after all."""
        self._credits += 1
        self._feed()

    def no_longer_waits(self, key: Key) -> None:
        self._waiting.pop(key, None)
        self._pieces.forget(key)

    # ---- the link --------------------------------------------------------------------------------

    def linked(self, link: Link, promise: Promise) -> None:
        """The instance is there (again), and says what it has of what was sent before."""
        self.unlinked()
        self._link = link
        resend: OrderedDict[Key, AttachAttempt] = OrderedDict()
        for key, attempt in list(self._open.items()):
            assert isinstance(attempt, AttachAttempt)
            if key in promise.known or not attempt.sent:
                continue
            if promise.same_process:  # it keeps what it got until it is acknowledged
                attempt.sent = False
                if not attempt.is_reported:
                    resend[key] = attempt
            else:
                effect = attempt.outgoing.effect
                attempt.finish(
                    lost(Reason.UNAVAILABLE, "the instance was restarted", effect=effect)
                )
        resend.update(self._waiting)
        self._waiting = resend

    def unlinked(self) -> None:
        """The link is gone: what was sent stays open, what was not waits again."""
        self._link = None
        self._credits = 0
        self._pieces.clear()
        self._questions.fail("the component's stream is gone")
        for key, attempt in self._open.items():
            assert isinstance(attempt, AttachAttempt)
            if not attempt.sent and not attempt.is_reported:
                self._waiting.setdefault(key, attempt)

    def give_up(self, why: str) -> None:
        """Nobody comes back: what was sent is lost, what waits was never sent."""
        self._is_closed = True
        self.unlinked()
        self.refuse_waiting(why)
        for attempt in list(self._open.values()):
            attempt.finish(lost(Reason.UNAVAILABLE, why, effect=attempt.outgoing.effect))

    def refuse_waiting(self, why: str) -> None:
        """Nothing more is written to this instance."""
        for attempt in list(self._waiting.values()):
            attempt.finish(_gone(why))

    # ---- what comes in ---------------------------------------------------------------------------

    def receive(self, received: list[frames.FromComponent]) -> None:
        for frame in received:
            match frame:
                case frames.Answered(key=key, answer=answer):
                    if not isinstance(answer, Progress):
                        self._answered(key, answer)
                case frames.Granted(count=count):
                    self._credits = min(CREDITS_MAX, self._credits + max(0, count))
                case frames.Piece():
                    self._piece(frame)
                case frames.Unreadable(key=key, failure=failure):
                    self._answered(key, failure)
        self._feed()

    def _piece(self, piece: frames.Piece) -> None:
        if piece.key not in self._open:
            if piece.is_last:
                self._acknowledge(piece.key)
            return
        whole = self._pieces.add(piece)
        if whole is not None:
            self.receive([self._read(piece.key, whole)])

    def _read(
        self, key: Key, body: bytes | frames.Unreadable
    ) -> frames.Answered | frames.Unreadable:
        if isinstance(body, frames.Unreadable):
            return body
        try:
            read = frames.read_answer(body, max_bytes=self._max_bytes)
        except AcpFailure as failure:
            return frames.Unreadable(key, failure.error)
        if read.key != key:
            text = "the answer in pieces is another attempt's"
            return frames.Unreadable(key, error(Reason.CONTRACT_VIOLATION, text))
        return read

    def _answered(self, key: Key, answer: Reply | AcpError) -> None:
        attempt = self._open.get(key)
        if isinstance(attempt, AttachAttempt) and attempt.sent:
            attempt.finish(_answer_of(answer, attempt.outgoing))
        self._acknowledge(key)  # also what nobody waits for: the component may forget it

    def heard(self, said: CancelOutcome | OperationOutcome) -> None:
        """An answer to a question over the control stream."""
        self._questions.answered(said)

    # ---- questions -------------------------------------------------------------------------------

    async def describe(self, timeout_ms: int) -> Card:
        return self.card

    async def health(self, timeout_ms: int) -> Health:
        status = HealthStatus.NOT_SERVING if self._link is None else HealthStatus.SERVING
        return Health(status=status, signals=self.signals)

    async def cancel(self, call_id: str, attempt: int, *, timeout_ms: int) -> CancelResponse:
        waiting = [k for k in self._waiting if k[0] == call_id and attempt in (0, k[1])]
        for key in waiting:
            self._waiting[key].reset()
        sent = any(k[0] == call_id and attempt in (0, k[1]) for k in self._open)
        if waiting and not sent:
            return CancelResponse(state=CancelState.STOPPED, side_effect=SideEffect.NONE)
        return await self._questions.cancel(self._link, (call_id, attempt), timeout_ms=timeout_ms)

    async def operation(self, call_id: str, timeout_ms: int) -> OperationState:
        return await self._questions.operation(self._link, call_id, timeout_ms=timeout_ms)

    async def cancel_operation(self, call_id: str, timeout_ms: int) -> CancelResponse:
        return await self._questions.cancel_operation(self._link, call_id, timeout_ms=timeout_ms)

    async def close(self) -> None:
        """The instance left the registry. (When the gateway stops, `forsake` came before.)"""
        self.give_up("the instance left the registry")

    def forsake(self) -> None:
        """The gateway stops: attempts stay open in the journal, for the next start to adopt."""
        for attempt in list(self._open.values()):
            assert isinstance(attempt, AttachAttempt)
            attempt.forget()
        self._waiting.clear()

    @property
    def open_attempts(self) -> dict[Key, Attempt]:
        return self._open


class AttachAttempt(Attempt):
    """`sent` is true from the moment its frame was made."""

    sent = False

    def __init__(self, connection: AttachConnection, outgoing: Outgoing, *, sink: Sink) -> None:
        super().__init__(outgoing, sink, open_attempts=connection.open_attempts)
        self._connection = connection

    @property
    def key(self) -> Key:
        return self._key

    @property
    def is_reported(self) -> bool:
        return self._is_reported

    def is_sent(self) -> bool:
        return self.sent

    @property
    def waits_for(self) -> Boundary:
        """Without a credit it stands in the gateway's own queue; without a link nobody is there."""
        return Boundary.GATEWAY if self._connection.is_linked else Boundary.COMPONENT

    def give_up(self) -> None:
        self._connection.no_longer_waits(self._key)

    def finish(self, answer: Answer) -> None:
        self._connection.no_longer_waits(self._key)
        super().finish(answer)

    def forget(self) -> None:
        """End without a word."""
        self._end()

    def write(self) -> bytes | None:
        """The call's body, its time stamped now; None: it is over, or never could be written."""
        body = None if self._is_over or self._is_reported else self._body()
        if body is None:
            asyncio.get_running_loop().call_soon(self._connection.not_written)
        else:
            self.sent = True
        return body

    def _body(self) -> bytes | None:
        outgoing, limit = self.outgoing, self._connection.card.limits.max_request_bytes
        context = msgspec.structs.replace(outgoing.context, timeout_ms=self.stamp_ms())
        try:
            request = REQUESTS[outgoing.role].decode(with_context(context, bytes(outgoing.body)))
        except msgspec.MsgspecError as wrong:
            text = f"the request is not one of {outgoing.role.value}: {wrong}"
            self.finish_soon(not_sent(Reason.INVALID_REQUEST, text, boundary=Boundary.GATEWAY))
            return None
        body = frames.call_body(self._key, outgoing.role, request=request)
        if limit and len(body) > limit:
            text = f"the request has {len(body)} bytes, its card allows {limit}"
            self.finish_soon(not_sent(Reason.PAYLOAD_TOO_LARGE, text, boundary=Boundary.GATEWAY))
            return None
        return body


def _answer_of(answer: Reply | AcpError, outgoing: Outgoing) -> Answer:
    match answer:
        case AcpError():
            return unreadable(answer, outgoing.effect)
        case ErrorBody():
            return stated_error(answer, outgoing.effect)
        case Reply() if type(answer) is RESPONSE_OF[outgoing.role]:
            return success(answer, json.encode(answer), effect=outgoing.effect)
        case _:
            pass
    text = f"the answer is a {type(answer).__name__}, the call was {outgoing.role.value}"
    return violation(text, outgoing.effect)


def _gone(why: str) -> Answer:
    return not_sent(Reason.UNAVAILABLE, why, boundary=Boundary.COMPONENT)
