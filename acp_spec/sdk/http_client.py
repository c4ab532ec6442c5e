"""A component over HTTP+JSON: one attempt per call, failures as values (SPEC section 5).

For tests, tools and adapters. Redirects, environment proxies and decompression are off; nothing is
retried. A failure before the request could leave is side effect NONE, any later one UNKNOWN.
"""

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from acp_spec.bindings import fields
from acp_spec.bindings.errors import error
from acp_spec.codec import json
from acp_spec.model.calls import (
    CancelRequest,
    CancelResponse,
    ErrorBody,
    ExecuteRequest,
    ExecuteResponse,
    ObserveRequest,
    ObserveResponse,
    OperationState,
    PlanRequest,
    PlanResponse,
    Progress,
    ReflectRequest,
    ReflectResponse,
    Request,
)
from acp_spec.model.card import Card, Health
from acp_spec.model.enums import Boundary, SideEffect
from acp_spec.model.errors import AcpError, AcpFailure, Reason
from acp_spec.sdk.carriage import ANSWER_SLACK_MS, QUESTION_TIMEOUT_MS, beside
from acp_spec.sdk.client import StreamItem

T = TypeVar("T", bound=msgspec.Struct)

_NOTHING_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
)


class HttpComponentClient:
    """`async with HttpComponentClient("http://127.0.0.1:8080") as client`.

    `transport` replaces the sockets: the in-process pair of `sdk.testing` is one.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        max_response_bytes: int = fields.MAX_RESPONSE_BYTES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._base = base_url.rstrip("/") + "/acp/v1/"
        self._token = token
        self._max_bytes = max_response_bytes
        self._client = httpx.AsyncClient(
            transport=transport,
            trust_env=False,
            follow_redirects=False,
            headers={"accept-encoding": "identity"},
        )

    async def describe(self) -> Card | ErrorBody:
        return await self._ask("GET", "component", answer=Card)

    async def health(self) -> Health | ErrorBody:
        return await self._ask("GET", "health", answer=Health)

    async def plan(self, request: PlanRequest) -> PlanResponse | ErrorBody:
        return await self._call("plan", request, answer=PlanResponse)

    async def execute(self, request: ExecuteRequest) -> ExecuteResponse | ErrorBody:
        return await self._call("execute", request, answer=ExecuteResponse)

    async def observe(self, request: ObserveRequest) -> ObserveResponse | ErrorBody:
        return await self._call("observe", request, answer=ObserveResponse)

    async def reflect(self, request: ReflectRequest) -> ReflectResponse | ErrorBody:
        return await self._call("reflect", request, answer=ReflectResponse)

    async def cancel(self, request: CancelRequest) -> CancelResponse | ErrorBody:
        path = f"calls/{quote(request.call_id, safe='')}/cancel"
        return await self._ask("POST", path, answer=CancelResponse, body=json.encode(request))

    async def get_operation(self, call_id: str) -> OperationState | ErrorBody:
        return await self._ask(
            "GET", f"operations/{quote(call_id, safe='')}", answer=OperationState
        )

    async def cancel_operation(self, call_id: str) -> CancelResponse | ErrorBody:
        path = f"operations/{quote(call_id, safe='')}/cancel"
        return await self._ask("POST", path, answer=CancelResponse)

    async def execute_stream(self, request: ExecuteRequest) -> AsyncIterator[StreamItem]:
        """Progress as it arrives, then the response; a stream cut before it ends in UNKNOWN."""
        sent = self._request("POST", "execute", body=json.encode(request), request=request)
        sent.headers["accept"] = fields.NDJSON
        try:
            response = await self._client.send(sent, stream=True)
        except httpx.HTTPError as failed:
            yield ErrorBody(error=transport_error(failed))
            return
        try:
            async for item in self._items(response):
                yield item
        finally:
            await response.aclose()

    async def close(self) -> None:
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _call(self, path: str, request: Request, *, answer: type[T]) -> T | ErrorBody:
        sent = self._request("POST", path, body=json.encode(request), request=request)
        return await self._exchange(sent, answer)

    async def _ask(
        self, method: str, path: str, *, answer: type[T], body: bytes | None = None
    ) -> T | ErrorBody:
        return await self._exchange(self._request(method, path, body=body), answer)

    def _request(
        self, method: str, path: str, *, body: bytes | None, request: Request | None = None
    ) -> httpx.Request:
        context = request.context if request is not None else None
        headers = beside(context, self._token)
        allowed_ms = QUESTION_TIMEOUT_MS if context is None else context.timeout_ms
        if context is not None:
            headers[fields.ACP_TIMEOUT_MS] = str(context.timeout_ms)
        if body is not None:
            headers[fields.CONTENT_TYPE] = fields.JSON
        return self._client.build_request(
            method,
            self._base + path,
            content=body,
            headers=headers,
            timeout=(allowed_ms + ANSWER_SLACK_MS) / 1000,
        )

    async def _exchange(self, sent: httpx.Request, answer: type[T]) -> T | ErrorBody:
        try:
            response = await self._client.send(sent, stream=True)
            try:
                data = await self._body(response)
            finally:
                await response.aclose()
            if response.status_code != 200:
                return json.decode_error(response.status_code, data)
            return json.decode_response(answer, data, max_bytes=self._max_bytes)
        except httpx.HTTPError as failed:
            return ErrorBody(error=transport_error(failed))
        except AcpFailure as failure:
            return ErrorBody(error=failure.error)

    async def _body(self, response: httpx.Response) -> bytes:
        parts: list[bytes] = []
        size = 0
        async for part in response.aiter_raw():
            size += len(part)
            if size > self._max_bytes:
                raise _too_large(self._max_bytes)
            parts.append(part)
        return b"".join(parts)

    async def _items(self, response: httpx.Response) -> AsyncIterator[StreamItem]:
        rest = b""
        try:
            async for part in response.aiter_raw():
                *lines, rest = (rest + part).split(b"\n")
                for line in lines:
                    item = self._item(response.status_code, line)
                    yield item
                    if not isinstance(item, Progress):
                        return
                if len(rest) > self._max_bytes:
                    raise _too_large(self._max_bytes)
            yield self._item(response.status_code, rest) if rest else _cut()
        except httpx.HTTPError as failed:
            yield ErrorBody(error=transport_error(failed))
        except AcpFailure as failure:
            yield ErrorBody(error=failure.error)

    def _item(self, status: int, line: bytes) -> StreamItem:
        if status != 200:
            return json.decode_error(status, line)
        try:
            keys = set(msgspec.json.decode(line, type=dict[str, msgspec.Raw]))
        except msgspec.MsgspecError:
            keys = set()
        if keys and keys <= {"progress", "message"}:
            return json.decode_response(Progress, line, max_bytes=self._max_bytes)
        if "error" in keys:
            return json.decode_response(ErrorBody, line, max_bytes=self._max_bytes)
        return json.decode_response(ExecuteResponse, line, max_bytes=self._max_bytes)


def transport_error(failed: httpx.HTTPError) -> AcpError:
    """What a failure of the transport means: did the request leave, or not?"""
    text = f"{type(failed).__name__}: {failed}" if str(failed) else type(failed).__name__
    if isinstance(failed, _NOTHING_SENT):
        return error(
            Reason.UNAVAILABLE,
            f"The component cannot be reached ({text}).",
            side_effect=SideEffect.NONE,
            boundary=Boundary.COMPONENT,
        )
    reason = Reason.TIMEOUT if isinstance(failed, httpx.TimeoutException) else Reason.UNAVAILABLE
    return error(
        reason,
        f"The connection failed while the component had the call ({text}).",
        side_effect=SideEffect.UNKNOWN,
        boundary=Boundary.COMPONENT,
    )


def _cut() -> ErrorBody:
    return ErrorBody(
        error=error(
            Reason.UNAVAILABLE,
            "The stream ended before the response came.",
            side_effect=SideEffect.UNKNOWN,
            boundary=Boundary.COMPONENT,
        )
    )


def _too_large(max_bytes: int) -> AcpFailure:
    return AcpFailure(
        error(
            Reason.PAYLOAD_TOO_LARGE,
            f"The component's answer is larger than {max_bytes} bytes.",
            side_effect=SideEffect.UNKNOWN,
            boundary=Boundary.COMPONENT,
        )
    )
