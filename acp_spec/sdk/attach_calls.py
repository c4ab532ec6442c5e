"""The calls of an attached component: what it works on, answers it keeps, credits it grants.

An answer is kept until the gateway has it on disk, over any number of streams; what happens twice
on the wire happens once here. Credits and what runs together never exceed the card's
max_concurrency; while too many answers are kept, none are granted.
"""

import asyncio
import logging
from typing import Final, Protocol, runtime_checkable

from acp_spec.bindings.errors import error
from acp_spec.codec import frames
from acp_spec.codec.refusals import Direction
from acp_spec.model.attach import AttemptKey, Key
from acp_spec.model.calls import ErrorBody, ExecuteRequest, ObserveRequest, Reply, Request
from acp_spec.model.enums import Effect, SideEffect, StepRole
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.sdk.arrival import Arrival
from acp_spec.sdk.attach_outbox import Outbox
from acp_spec.sdk.attach_pieces import Pieces
from acp_spec.sdk.dispatch import Dispatcher
from acp_spec.sdk.outcomes import OutcomesUnavailable

CONCURRENCY_DEFAULT: Final = 100
"""Granted where the card names no max_concurrency: more than a thread pool works on at once."""
KEPT_BYTES_MAX: Final = 64 * 1024 * 1024
KEPT_ANSWERS_MAX: Final = 1_000
"""Of answers not acknowledged. Their keys all stand in a hello, which is one message."""

log = logging.getLogger(__name__)


@runtime_checkable
class AnswerStore(Protocol):
    """An outcome store that also keeps answers over a restart of the process."""

    async def keep_answer(self, key: Key, body: bytes) -> None: ...

    async def forget_answer(self, key: Key) -> None: ...

    async def kept_answers(self) -> dict[Key, bytes]: ...


class AttachedCalls:
    """Outlives every stream. All methods are called on the loop's thread."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        *,
        kept_answers_max: int = KEPT_ANSWERS_MAX,
        kept_bytes_max: int = KEPT_BYTES_MAX,
    ) -> None:
        self._dispatcher = dispatcher
        self._kept_max = (kept_answers_max, kept_bytes_max)
        limits = dispatcher.component.limits
        self._limit = limits.max_concurrency or CONCURRENCY_DEFAULT
        self._max_bytes = limits.max_request_bytes
        self._pieces = Pieces(
            max_bytes=self._max_bytes, bodies_max=self._limit, direction=Direction.REQUEST
        )
        self._working: dict[Key, asyncio.Task[None]] = {}
        self._answers: dict[Key, bytes] = {}
        self._kept_bytes = 0
        self._owed = 0
        self._outbox: Outbox | None = None
        outcomes = dispatcher.component.outcomes
        self._durable: set[Key] = set()
        self._store = outcomes if isinstance(outcomes, AnswerStore) else None
        self._forgetting: set[asyncio.Task[None]] = set()
        self._acked_all = asyncio.Event()

    async def load(self) -> None:
        """Take back the answers that an earlier process could not deliver."""
        if self._store is not None:
            for key, body in (await self._store.kept_answers()).items():
                self._durable.add(key)
                self._keep(key, body)

    @property
    def in_flight(self) -> tuple[AttemptKey, ...]:
        return tuple(AttemptKey(call_id=key[0], attempt=key[1]) for key in self._working)

    @property
    def finished_unacked(self) -> tuple[AttemptKey, ...]:
        return tuple(AttemptKey(call_id=key[0], attempt=key[1]) for key in self._answers)

    # ---- streams ---------------------------------------------------------------------------------

    def connected(self, outbox: Outbox) -> None:
        """A new calls stream: grant what is free, and deliver what was not acknowledged."""
        self._outbox = outbox
        self._owed = self._limit - len(self._working)
        self._grant()
        for key, body in self._answers.items():
            outbox.put_body(key, body)

    def disconnected(self) -> None:
        self._outbox = None
        self._pieces.clear()

    def receive(self, data: bytes) -> None:
        """One message of the gateway. Raises AcpFailure when it is none."""
        for frame in frames.read_gateway_calls(data, max_bytes=self._max_bytes):
            self._received(frame)

    def _received(self, frame: frames.FromGateway) -> None:
        match frame:
            case frames.Called(key=key, request=request):
                self._called(key, request)
            case frames.Acked(key=key):
                self._acknowledged(key)
            case frames.Piece():
                whole = self._pieces.add(frame)
                if whole is not None:
                    self._received(self._read(frame.key, whole))
            case frames.Unreadable(key=key, failure=failure):
                self._refuse(key, AcpFailure(failure))

    def _read(self, key: Key, body: bytes | frames.Unreadable) -> frames.Called | frames.Unreadable:
        if isinstance(body, frames.Unreadable):
            return body
        try:
            return frames.read_call(body, max_bytes=self._max_bytes)
        except AcpFailure as failure:
            return frames.Unreadable(key, failure.error)

    # ---- work ------------------------------------------------------------------------------------

    def _called(self, key: Key, request: Request) -> None:
        if key in self._working or key in self._answers:
            return  # the same frame again: its answer is on its way
        task = asyncio.get_running_loop().create_task(self._work(key, request))
        self._working[key] = task

    async def _work(self, key: Key, request: Request) -> None:
        arrival = Arrival(at_ms=self._dispatcher.clock.monotonic_ms(), idempotency_key=key[0])
        answer: Reply
        if request.context.attempt != key[1]:
            text = f"the frame is of attempt {key[1]}, its context of {request.context.attempt}"
            answer = ErrorBody(error=error(Reason.INVALID_REQUEST, text))
        else:
            answer = await self._dispatcher.call(request, arrival)
        body = _body(key, answer)
        if self._store is not None and self._is_write(request):
            try:
                await self._store.keep_answer(key, body)
                self._durable.add(key)
            except OutcomesUnavailable:
                log.exception("the answer of call %s is kept in memory only", key[0])
        self._finished(key, body)

    def _is_write(self, request: Request) -> bool:
        match request:
            case ExecuteRequest(action=action):
                target = self._dispatcher.component.target(StepRole.EXECUTE, action)
                return target is not None and target.effect is Effect.WRITE
            case ObserveRequest():
                return True
            case _:
                return False

    def _refuse(self, key: Key, failure: AcpFailure) -> None:
        if key not in self._working and key not in self._answers:
            self._finished(key, _body(key, ErrorBody(error=failure.error)))

    def _finished(self, key: Key, body: bytes) -> None:
        self._working.pop(key, None)
        self._keep(key, body)
        self._owed += 1
        if self._outbox is not None:
            self._outbox.put_body(key, body)
            self._grant()

    # ---- answers and credits ---------------------------------------------------------------------

    def _keep(self, key: Key, body: bytes) -> None:
        self._answers[key] = body
        self._kept_bytes += len(body)
        self._acked_all.clear()

    def _acknowledged(self, key: Key) -> None:
        body = self._answers.pop(key, None)
        if body is None:
            return
        self._kept_bytes -= len(body)
        if self._store is not None and key in self._durable:
            self._durable.discard(key)
            task = asyncio.get_running_loop().create_task(self._forget(self._store, key))
            self._forgetting.add(task)
            task.add_done_callback(self._forgetting.discard)
        if not self._answers:
            self._acked_all.set()
        self._grant()

    async def _forget(self, store: AnswerStore, key: Key) -> None:
        try:
            await store.forget_answer(key)
        except OutcomesUnavailable:  # it is delivered once more after a restart, and dropped there
            log.exception("the answer of call %s is not forgotten", key[0])

    def _grant(self) -> None:
        """Give credits back, unless too much is kept: nothing kept is ever dropped."""
        answers_max, bytes_max = self._kept_max
        is_full = self._kept_bytes >= bytes_max or len(self._answers) >= answers_max
        if self._owed > 0 and not is_full and self._outbox is not None:
            self._outbox.put(frames.credits_frame(self._owed))
            self._owed = 0

    async def all_acknowledged(self) -> None:
        """Wait until every call is answered and no answer is kept any more, in no store either."""
        while self._working or self._answers or self._forgetting:
            if self._working:
                await asyncio.wait(set(self._working.values()))
            elif self._answers:
                await self._acked_all.wait()
            else:
                await asyncio.wait(set(self._forgetting))


def _body(key: Key, answer: Reply) -> bytes:
    try:
        return frames.answer_body(key, answer)
    except (TypeError, ValueError) as problem:  # a handler's own response object, wrongly filled
        log.error("the answer of call %s cannot be sent: %s", key[0], problem)
        text = f"the call ran, but its answer cannot be sent: {problem}"
        failed = error(Reason.INTERNAL, text, side_effect=SideEffect.UNKNOWN)
        return frames.answer_body(key, ErrorBody(error=failed))
