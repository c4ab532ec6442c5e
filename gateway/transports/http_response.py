"""What leaves over HTTP: bodies, headers, and every failure in the one ACP error shape."""

import math
from typing import Final

import msgspec

from acp_spec.bindings.errors import http_status
from acp_spec.bindings.fields import JSON
from acp_spec.codec import json
from acp_spec.model.calls import ErrorBody
from acp_spec.model.errors import AcpError
from gateway.transports.http_request import Send

Header = tuple[bytes, bytes]

_JSON_TYPE: Final[Header] = (b"content-type", JSON.encode())
# A busy gateway without a better figure: one second spreads callers without losing them.
RETRY_AFTER_S_DEFAULT: Final = 1
_RETRY_LATER: Final = frozenset({429, 503})
# What every answer says: nobody guesses types, nobody keeps other people's sessions.
_TYPED: Final[Header] = (b"x-content-type-options", b"nosniff")
_NOT_KEPT: Final[Header] = (b"cache-control", b"no-store")
# These have no body, and so neither its type nor its length.
_BODILESS: Final = frozenset({204, 304})


class Response(msgspec.Struct, frozen=True, gc=False):
    """A whole answer. `headers` come on top of type and length; `cache` is for what is no data."""

    status: int
    body: bytes = b""
    content_type: Header = _JSON_TYPE
    headers: tuple[Header, ...] = ()
    cache: Header = _NOT_KEPT


async def send_response(send: Send, response: Response) -> None:
    """Write it; 204 and 304 have neither body nor length."""
    headers = [_TYPED, response.cache, *response.headers]
    if response.status not in _BODILESS:
        headers += (response.content_type, (b"content-length", b"%d" % len(response.body)))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})


def failed(failure: AcpError, *headers: Header) -> Response:
    """The answer for an error; 429 and 503 say when to come back, 401 says how."""
    status = http_status(failure)
    more = list(headers)
    if status in _RETRY_LATER:
        more.append((b"retry-after", b"%d" % _retry_after_s(failure.retry_after_ms)))
    if status == 401:
        more.append((b"www-authenticate", b'Bearer realm="acp"'))
    return Response(status, json.encode(ErrorBody(error=failure)), headers=tuple(more))


def text(status: int, body: str, *headers: Header) -> Response:
    """A plain text answer."""
    return Response(status, body.encode(), (b"content-type", b"text/plain; charset=utf-8"), headers)


def _retry_after_s(retry_after_ms: int | None) -> int:
    """Whole seconds, rounded up, so that nobody comes back too early."""
    if not retry_after_ms:
        return RETRY_AFTER_S_DEFAULT
    return max(1, math.ceil(retry_after_ms / 1000))
