"""The gateway as commands reach it: over HTTP, by the names of the wire's route table.

Every failure, also that nobody answers, is an `AcpFailure`: a command only says what it wants.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from acp_spec.bindings.errors import error
from acp_spec.bindings.fields import ACP_VERSION, VERSION
from acp_spec.bindings.routes import GATEWAY, Body
from acp_spec.codec import json
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.session import Opened, OpenSession, SessionView
from gateway.runtime.tokens import TokenCreated, TokenPage, TokenRequest

T = TypeVar("T", bound=msgspec.Struct)

# A page of the largest trajectory; beyond it something is wrong.
ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024
CONNECT_S: Final = 5.0
ANSWER_S: Final = 30.0


Query = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sent:
    """What a write carries: text is a workflow file, a struct goes as JSON."""

    body: msgspec.Struct | str | None = None
    wait_s: int = 0


NOTHING: Final = Sent()


class Gateway:
    """One gateway. `with Gateway(url, token) as gateway`."""

    def __init__(self, url: str, token: str = "") -> None:
        headers = {ACP_VERSION: VERSION}
        if token:
            headers["authorization"] = f"Bearer {token}"
        # trust_env off: a proxy in the environment must not see tokens meant for this address.
        self._client = httpx.Client(
            base_url=url.rstrip("/"),
            headers=headers,
            timeout=httpx.Timeout(ANSWER_S, connect=CONNECT_S),
            trust_env=False,
        )
        self._url = url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def ask(self, type_: type[T], name: str, *segments: str, **query: str) -> T:
        """A GET of the route `name`, its path filled with `segments`."""
        return _read(type_, self.text(name, *segments, **query))

    def text(self, name: str, *segments: str, **query: str) -> bytes:
        """The body of a GET as it came."""
        given = {key: value for key, value in query.items() if value}
        return self._exchange("GET", _path(name, segments), params=given).content

    def tell(
        self,
        type_: type[T],
        name: str,
        *segments: str,
        body: msgspec.Struct | str | None = None,
        wait_s: int = 0,
    ) -> T:
        """A write to the route `name`; text is sent as a workflow file, a struct as JSON."""
        sent = Sent(body, wait_s)
        response = self._exchange(GATEWAY[name].method, _path(name, segments), sent=sent)
        return _read(type_, response.content or b"{}")

    def open(self, request: OpenSession, *, wait_s: int) -> SessionView:
        """Open a session and see how it stands: ended, if it did so within the wait."""
        sent = Sent(request, wait_s)
        response = self._exchange("POST", _path("open_session", ()), sent=sent)
        if response.status_code == 200 and b'"workflow"' in response.content:
            return _read(SessionView, response.content)
        opened = _read(Opened, response.content)
        return self.ask(SessionView, "get_session", opened.session_id)

    def events(self, session_id: str, *, after: int = 0) -> Iterator[tuple[int, str, bytes]]:
        """The session's events as they come: (number, name, JSON data); ends with the session."""
        headers = {"last-event-id": str(after)} if after else {}
        timeout = httpx.Timeout(None, connect=CONNECT_S)
        with (
            self._translated(),
            self._client.stream(
                "GET", _path("stream_events", (session_id,)), headers=headers, timeout=timeout
            ) as response,
        ):
            if response.status_code != 200:
                response.read()
                _raise_for(response)
                return
            yield from _frames(response.iter_lines())

    def metrics(self) -> str:
        """The page that Prometheus scrapes."""
        return self._exchange("GET", "/metrics").text

    # ---- the operator API is the gateway's own, not in the wire's table ---------------------

    def operate(
        self,
        type_: type[T],
        request: str,
        *,
        body: msgspec.Struct | str | None = None,
        query: Query | None = None,
    ) -> T:
        """One request of the operator API: `"POST /v1/tokens"`, the path quoted (`place`)."""
        method, _, path = request.partition(" ")
        response = self._exchange(method, path, sent=Sent(body), params=query)
        return _read(type_, response.content or b"{}")

    def post_and_wait(self, type_: type[T], path: str, *, body: msgspec.Struct, wait_s: int) -> T:
        """A POST of the operator API that may take so long (`Prefer: wait=N`)."""
        return _read(type_, self._exchange("POST", path, sent=Sent(body, wait_s)).content)

    def create_token(self, request: TokenRequest) -> TokenCreated:
        return self.operate(TokenCreated, "POST /v1/tokens", body=request)

    def list_tokens(self) -> TokenPage:
        return self.operate(TokenPage, "GET /v1/tokens")

    def revoke_token(self, token_id: str) -> None:
        self._exchange("DELETE", place("/v1/tokens/{}", token_id))

    def delete_workflow(self, name: str, version: str) -> None:
        self._exchange("DELETE", place("/v1/workflows/{}/versions/{}", name, version))

    # ---- inside ----------------------------------------------------------------------------------

    def _exchange(
        self, method: str, path: str, *, sent: Sent = NOTHING, params: Query | None = None
    ) -> httpx.Response:
        with self._translated():
            response = self._client.request(
                method,
                path,
                params=params,
                content=_content(sent.body),
                headers=_headers(sent),
                timeout=httpx.Timeout(ANSWER_S + sent.wait_s, connect=CONNECT_S),
            )
        _raise_for(response)
        return response

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except httpx.TimeoutException as problem:
            raise self._unreachable(Reason.TIMEOUT, problem) from None
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            raise self._unreachable(Reason.UNAVAILABLE, problem) from None

    def _unreachable(self, reason: Reason, problem: Exception) -> AcpFailure:
        said = str(problem) or type(problem).__name__
        message = f"no answer from the gateway at {self._url} ({said}); start it with `acp serve`"
        return AcpFailure(error(reason, message, boundary=Boundary.GATEWAY))


def place(template: str, *segments: str) -> str:
    """A path with its `{}` filled: `place("/v1/tokens/{}", token_id)`."""
    return template.format(*(quote(segment, safe="") for segment in segments))


def _raise_for(response: httpx.Response) -> None:
    if response.status_code >= 300:
        raise AcpFailure(json.decode_error(response.status_code, response.content).error)


def _read(type_: type[T], data: bytes) -> T:
    return json.decode_response(type_, data, max_bytes=ANSWER_BYTES_MAX)


def _path(name: str, segments: tuple[str, ...]) -> str:
    parts = iter(segments)
    pieces = [
        quote(next(parts), safe="") + piece.partition("}")[2] if piece.startswith("{") else piece
        for piece in GATEWAY[name].path.split("/")
    ]
    return "/".join(pieces)


def _content(body: msgspec.Struct | str | None) -> bytes | None:
    match body:
        case None:
            return None
        case str():
            return body.encode()
        case _:
            return json.encode(body)


def _headers(sent: Sent) -> dict[str, str]:
    headers = {"prefer": f"wait={sent.wait_s}"} if sent.wait_s else {}
    if sent.body is not None:
        kind = Body.YAML if isinstance(sent.body, str) else Body.JSON
        headers["content-type"] = kind.value
    return headers


def _frames(lines: Iterator[str]) -> Iterator[tuple[int, str, bytes]]:
    """Server-sent events out of their lines; one that says `error` ends the stream."""
    number, name, data = 0, "", ""
    for line in lines:
        field, _, value = line.partition(": ")
        match field:
            case "id":
                number = int(value)
            case "event":
                name = value
            case "data":
                data = value
            case "" if line == "" and data:
                if name == "error":
                    raise AcpFailure(json.decode_error(500, data.encode()).error)
                yield number, name, data.encode()
                name, data = "", ""
            case _:
                pass
