"""A component instance reached over HTTP+JSON (SPEC section 1): the Connection port over a pool.

A request is `{"context":...,` put in front of the journaled body, whose bytes are never touched.
One attempt is one exchange; there is no retry here. Header values that could break the head are
left out: the body is authoritative, headers are copies.
"""

import asyncio
import ssl
from typing import Final, TypeVar
from urllib.parse import quote

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.bindings.fields import ACP_TIMEOUT_MS, JSON
from acp_spec.bindings.routes import COMPONENT_ROUTES
from acp_spec.codec.json import decode_response, encode
from acp_spec.model.calls import CancelRequest, CancelResponse, OperationState
from acp_spec.model.card import Card, Health
from acp_spec.model.context import Context
from acp_spec.model.enums import Boundary, SideEffect, StepRole
from acp_spec.model.errors import AcpFailure, Reason
from gateway.config.credentials import CredentialUnavailable
from gateway.runtime.connection import Outgoing, Sink
from gateway.transports.address_guard import AddressGuard, Target
from gateway.transports.answers import not_sent
from gateway.transports.attempts import Attempt, AttemptKey
from gateway.transports.http_link import Fault, Response
from gateway.transports.http_pool import HttpPool, PoolLimits
from gateway.transports.http_replies import error_of, fault_error, faulty, media_type, read_reply
from gateway.transports.outbound import (
    VERSION_FIELD,
    ConnectionOptions,
    Credentials,
    Fields,
    authorization,
    call_fields,
    no_credentials,
    with_context,
)

T = TypeVar("T", bound=msgspec.Struct)

_PATHS: Final[dict[str, tuple[str, str]]] = {r.name: (r.method, r.path) for r in COMPONENT_ROUTES}
_ROUTE_OF: Final[dict[StepRole, str]] = {role: role.value.lower() for role in StepRole}


class HttpConnection:
    """See `Connection`. All methods are called on the event loop's thread."""

    def __init__(
        self,
        target: Target,
        guard: AddressGuard,
        *,
        options: ConnectionOptions = ConnectionOptions(),
        credentials: Credentials = no_credentials,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.max_request_bytes = options.max_request_bytes
        self.max_response_bytes = options.max_response_bytes
        self._auth = options.auth
        self._credentials = credentials
        limits = PoolLimits(
            connections_max=options.connections_max,
            body_bytes_max=options.max_response_bytes,
            connect_timeout_s=options.connect_timeout_ms / 1000,
        )
        self._target = target
        self._pool = HttpPool(target, guard, limits=limits, tls=tls)
        self._heads = {role: self._head(*_PATHS[name]) for role, name in _ROUTE_OF.items()}
        self.open_attempts: dict[AttemptKey, Attempt] = {}

    # -- calls -----------------------------------------------------------------------------------

    def send(self, outgoing: Outgoing, sink: Sink) -> None:
        attempt = _HttpAttempt(outgoing, sink, connection=self, pool=self._pool)
        limit = self.max_request_bytes
        if limit and len(attempt.body) > limit:
            text = f"the request has {len(attempt.body)} bytes, its card allows {limit}"
            attempt.finish_soon(not_sent(Reason.PAYLOAD_TOO_LARGE, text, boundary=Boundary.GATEWAY))
            return
        try:
            attempt.head = self._heads[outgoing.role]
            if outgoing.auth or self._auth:
                attempt.head += self._authorization(outgoing.auth)
        except CredentialUnavailable as missing:
            attempt.finish_soon(
                not_sent(Reason.UNAVAILABLE, str(missing), boundary=Boundary.GATEWAY)
            )
            return
        self._pool.submit(attempt, fresh=outgoing.fresh_connection)

    def reset(self, call_id: str, attempt: int) -> None:
        found = self.open_attempts.get((call_id, attempt))
        if found is not None:
            found.reset()

    async def close(self) -> None:
        await self._pool.close()

    # -- questions -------------------------------------------------------------------------------

    async def describe(self, timeout_ms: int) -> Card:
        card = await self._ask("describe", Card, timeout_ms=timeout_ms)
        self.max_request_bytes = card.limits.max_request_bytes
        return card

    async def health(self, timeout_ms: int) -> Health:
        return await self._ask("health", Health, timeout_ms=timeout_ms)

    async def cancel(self, call_id: str, attempt: int, *, timeout_ms: int) -> CancelResponse:
        body = encode(CancelRequest(call_id=call_id, attempt=attempt))
        return await self._ask(
            "cancel", CancelResponse, call_id=call_id, body=body, timeout_ms=timeout_ms
        )

    async def operation(self, call_id: str, timeout_ms: int) -> OperationState:
        return await self._ask(
            "get_operation", OperationState, call_id=call_id, timeout_ms=timeout_ms
        )

    async def cancel_operation(self, call_id: str, timeout_ms: int) -> CancelResponse:
        return await self._ask(
            "cancel_operation", CancelResponse, call_id=call_id, timeout_ms=timeout_ms
        )

    async def _ask(
        self, name: str, type_: type[T], *, timeout_ms: int, call_id: str = "", body: bytes = b""
    ) -> T:
        """One question; raises AcpFailure for everything that is no good answer."""
        method, path = _PATHS[name]
        try:
            head = self._head(method, path.replace("{call_id}", quote(call_id, safe="")))
            head += self._authorization("")
        except CredentialUnavailable as missing:
            failure = error(Reason.UNAVAILABLE, str(missing), side_effect=SideEffect.NONE)
            raise AcpFailure(failure) from None
        head += f"{ACP_TIMEOUT_MS}: {timeout_ms}\r\n".encode()
        if method != "GET":
            head += b"content-length: %d\r\n" % len(body)
        question = _Question(head + b"\r\n" + body)
        self._pool.submit(question)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                response = await question.answer
        except TimeoutError:
            text = f"no answer to {method} {path} within {timeout_ms} ms"
            failure = error(Reason.TIMEOUT, text, side_effect=SideEffect.NONE)
            raise AcpFailure(failure) from None
        finally:
            if not question.is_over:
                self._pool.abort(question)
        return self._read(response, type_)

    def _read(self, response: Response, type_: type[T]) -> T:
        if not 200 <= response.status < 300:
            body, _ = error_of(response, max_bytes=self.max_response_bytes)
            raise AcpFailure(body.error)
        if media_type(response) != JSON or response.content_encoding not in (b"", b"identity"):
            text = f"the answer has content type {media_type(response) or 'none'!r}, not {JSON}"
            raise AcpFailure(error(Reason.CONTRACT_VIOLATION, text))
        return decode_response(type_, response.body, max_bytes=self.max_response_bytes)

    # -- heads -----------------------------------------------------------------------------------

    def _head(self, method: str, path: str) -> bytes:
        return (
            f"{method} {self._target.base}{path} HTTP/1.1\r\n"
            f"host: {self._target.authority}\r\n"
            f"content-type: {JSON}\r\n"
            f"{_lines([VERSION_FIELD])}"
        ).encode()

    def _authorization(self, name: str) -> bytes:
        """The header line of the credential `name`, or of the connection's own."""
        name = name or self._auth
        return _lines(authorization(name, self._credentials)).encode() if name else b""


class _HttpAttempt(Attempt):
    """An attempt as an exchange of the pool."""

    def __init__(
        self,
        outgoing: Outgoing,
        sink: Sink,
        *,
        connection: HttpConnection,
        pool: HttpPool,
    ) -> None:
        super().__init__(outgoing, sink, open_attempts=connection.open_attempts)
        self._connection = connection
        self._pool = pool
        self.head = b""
        self.body = with_context(outgoing.context, bytes(outgoing.body))

    def is_sent(self) -> bool:
        return self._pool.is_sent(self)

    def give_up(self) -> None:
        self._pool.abort(self)

    def payload(self) -> bytes:
        context, left_ms = self.outgoing.context, self.stamp_ms()
        if left_ms < context.timeout_ms - 1:  # it waited for a connection
            context = msgspec.structs.replace(context, timeout_ms=left_ms)
            self.body = with_context(context, bytes(self.outgoing.body))
        return b"%b%b%b" % (self.head, _call_headers(context, len(self.body)), self.body)

    def answered(self, response: Response) -> None:
        outgoing = self.outgoing
        limit = self._connection.max_response_bytes
        self.finish(read_reply(response, outgoing.role, effect=outgoing.effect, max_bytes=limit))

    def failed(self, fault: Fault, message: str) -> None:
        self.finish(faulty(fault, message, effect=self.outgoing.effect))


class _Question:
    """A question as an exchange: its answer is a future."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self.is_over = False

    def payload(self) -> bytes:
        return self._request

    def answered(self, response: Response) -> None:
        self.is_over = True
        if not self.answer.done():
            self.answer.set_result(response)

    def failed(self, fault: Fault, message: str) -> None:
        self.is_over = True
        if not self.answer.done():
            self.answer.set_exception(AcpFailure(fault_error(fault, message)))


def _call_headers(context: Context, length: int) -> bytes:
    lines = [f"{name}: {value}\r\n" for name, value in call_fields(context)]
    lines.append(f"{ACP_TIMEOUT_MS}: {context.timeout_ms}\r\ncontent-length: {length}\r\n\r\n")
    return "".join(lines).encode()


def _lines(fields: Fields) -> str:
    return "".join([f"{name}: {value}\r\n" for name, value in fields])
