"""Questions to an attached component over its control stream, and who waits for the answers.

A question without an answer in time, or whose stream ends, fails as it would over HTTP: harmless.
"""

import asyncio
from collections import deque
from enum import Enum
from typing import TypeVar

from acp_spec.bindings.errors import error
from acp_spec.codec import frames
from acp_spec.model.attach import CancelOutcome, Key, OperationOutcome
from acp_spec.model.calls import CancelRequest, CancelResponse, OperationState
from acp_spec.model.enums import Boundary, SideEffect
from acp_spec.model.errors import AcpFailure, Reason
from gateway.transports.attach_link import Link


class _Kind(Enum):
    CANCEL = "cancel"
    OPERATION = "operation"
    CANCEL_OPERATION = "cancel_operation"


Answer = CancelResponse | OperationState
A = TypeVar("A", CancelResponse, OperationState)
_Subject = tuple[_Kind, str, int]


class Questions:
    """Answers go to who asked first for the same thing."""

    def __init__(self) -> None:
        self._asked: dict[_Subject, deque[asyncio.Future[Answer]]] = {}

    async def cancel(self, link: Link | None, key: Key, *, timeout_ms: int) -> CancelResponse:
        request = CancelRequest(call_id=key[0], attempt=key[1])
        return await self._ask(
            link, request, subject=(_Kind.CANCEL, *key), type_=CancelResponse, timeout_ms=timeout_ms
        )

    async def operation(
        self, link: Link | None, call_id: str, *, timeout_ms: int
    ) -> OperationState:
        return await self._ask(
            link,
            frames.Named(call_id, stop=False),
            subject=(_Kind.OPERATION, call_id, 0),
            type_=OperationState,
            timeout_ms=timeout_ms,
        )

    async def cancel_operation(
        self, link: Link | None, call_id: str, *, timeout_ms: int
    ) -> CancelResponse:
        return await self._ask(
            link,
            frames.Named(call_id, stop=True),
            subject=(_Kind.CANCEL_OPERATION, call_id, 0),
            type_=CancelResponse,
            timeout_ms=timeout_ms,
        )

    def answered(self, said: CancelOutcome | OperationOutcome) -> None:
        """Hand an answer to whoever waits for it; nobody does: it is too late."""
        match said:
            case CancelOutcome():
                self._resolve((_Kind.CANCEL, *said.key.key), said.response)
            case OperationOutcome(state=OperationState() as state):
                self._resolve((_Kind.OPERATION, said.call_id, 0), state)
            case OperationOutcome(cancelled=CancelResponse() as cancelled):
                self._resolve((_Kind.CANCEL_OPERATION, said.call_id, 0), cancelled)
            case OperationOutcome():
                unsaid = error(Reason.CONTRACT_VIOLATION, "the outcome of the operation is empty")
                failure = AcpFailure(said.error or unsaid)
                for kind in (_Kind.OPERATION, _Kind.CANCEL_OPERATION):
                    if self._resolve((kind, said.call_id, 0), failure):
                        return

    def fail(self, why: str) -> None:
        """Nobody will answer any more."""
        for subject in list(self._asked):
            while self._resolve(subject, _unanswered(Reason.UNAVAILABLE, why)):
                pass

    async def _ask(
        self,
        link: Link | None,
        question: CancelRequest | frames.Named,
        *,
        subject: _Subject,
        type_: type[A],
        timeout_ms: int,
    ) -> A:
        if link is None:
            raise _unanswered(Reason.UNAVAILABLE, "the component is not attached now")
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked.setdefault(subject, deque()).append(future)
        link.say(question)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                answer = await future
        except TimeoutError:
            text = f"no answer to {subject[0].value} within {timeout_ms} ms"
            raise _unanswered(Reason.TIMEOUT, text) from None
        finally:
            self._drop(subject, future)
        assert isinstance(answer, type_)
        return answer

    def _resolve(self, subject: _Subject, answer: Answer | AcpFailure) -> bool:
        waiting = self._asked.get(subject)
        while waiting:
            future = waiting.popleft()
            if future.done():
                continue
            if isinstance(answer, AcpFailure):
                future.set_exception(answer)
            else:
                future.set_result(answer)
            return True
        return False

    def _drop(self, subject: _Subject, future: "asyncio.Future[Answer]") -> None:
        waiting = self._asked.get(subject)
        if waiting is None:
            return
        if future in waiting:
            waiting.remove(future)
        if not waiting:
            del self._asked[subject]


def _unanswered(reason: Reason, message: str) -> AcpFailure:
    return AcpFailure(
        error(reason, message, side_effect=SideEffect.NONE, boundary=Boundary.COMPONENT)
    )
