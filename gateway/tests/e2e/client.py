"""The gateway's API as a stranger uses it: paths, JSON text, status codes; no type of ours.

Bodies are sent and read as text, so that a test sees the bytes. `Client` waits for nothing but an
answer; whoever waits for a state says so with `until`.
"""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import httpx

TIMEOUT_S = 40.0
UNTIL_S = 30.0
TERMINAL = ("SUCCEEDED", "FAILED", "CANCELLED")


class Gone(Exception):
    """Nobody answered, or not to the end: the gateway went away."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: its status, headers and text."""

    status: int
    headers: httpx.Headers
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def reason(self) -> str:
        """The reason of an error answer."""
        found: str = self.json["error"]["reason"]
        return found

    @property
    def message(self) -> str:
        found: str = self.json["error"]["message"]
        return found


@dataclass(frozen=True, slots=True)
class Event:
    """One frame of an event stream."""

    id: int
    type: str
    data: Any


class Client:
    """`with Client("http://127.0.0.1:8080") as client: client.get("/v1/components")`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = httpx.Client(base_url=url, timeout=TIMEOUT_S, trust_env=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()

    # ---- requests ----------------------------------------------------------------------------

    def call(self, method: str, path: str, *, body: bytes | None = None, **headers: str) -> Reply:
        """One request; `content_type="text/plain"` and the like become headers. Raises Gone."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            sent.setdefault("content-type", "application/json")
        try:
            answer = self._http.request(method, path, content=body, headers=sent)
        except httpx.HTTPError as failed:
            raise Gone(f"{type(failed).__name__}: {failed}") from failed
        return Reply(answer.status_code, answer.headers, answer.text)

    def get(self, path: str, **query: str) -> Reply:
        return self.call("GET", f"{path}?{urlencode(query)}" if query else path)

    def post(self, path: str, body: object = None, **headers: str) -> Reply:
        """`body` as JSON; text is sent as it stands."""
        return self.call("POST", path, body=_bytes(body), **headers)

    def delete(self, path: str) -> Reply:
        return self.call("DELETE", path)

    # ---- the steps that most tests begin with -------------------------------------------------

    def register(self, url: str, transport: str = "HTTP", lease_seconds: int = 3600) -> Any:
        """The registration of the component at `url`."""
        body = {"url": url, "transport": transport, "lease_seconds": lease_seconds}
        reply = self.post("/v1/components", body)
        assert reply.status in (200, 201), reply.text
        return reply.json

    def put_workflow(self, source: str) -> str:
        """Store a workflow file; `name@version`."""
        name = _value(source, "workflow")
        version = _value(source, "version")
        path = f"/v1/workflows/{name}/versions/{version}"
        reply = self.call("PUT", path, body=source.encode(), content_type="application/yaml")
        assert reply.status in (200, 201), reply.text
        return f"{name}@{version}"

    def open(self, workflow: str, input_text: str = "null", **fields: object) -> str:
        """Open a session and give its id."""
        reply = self.post("/v1/sessions", opening(workflow, input_text, **fields))
        assert reply.status in (200, 201), reply.text
        found: str = reply.json["session_id"]
        return found

    def run(self, workflow: str, input_text: str = "null", **fields: object) -> Reply:
        """Run a session to its end: the answer with its view."""
        body = opening(workflow, input_text, **fields)
        reply = self.post("/v1/sessions", body, prefer="wait=30")
        assert reply.status == 200, reply.text
        return reply

    def session(self, session_id: str) -> Any:
        return self.get(f"/v1/sessions/{session_id}").json

    def ended(self, session_id: str, within_s: float = UNTIL_S) -> Any:
        """The session once it has ended."""
        return self.until(session_id, lambda view: view["status"] in TERMINAL, within_s=within_s)

    def until(
        self, session_id: str, holds: Callable[[Any], bool], *, within_s: float = UNTIL_S
    ) -> Any:
        """The first view of the session for which `holds`; follows its events, not the clock."""
        view = self.session(session_id)
        if holds(view):
            return view
        deadline = monotonic() + within_s
        for _ in self.events(session_id, within_s=within_s):
            view = self.session(session_id)
            if holds(view):
                return view
            assert monotonic() < deadline, f"not in {within_s} s: {view}"
        raise AssertionError(f"the session ended otherwise: {self.session(session_id)}")

    def trajectory(self, session_id: str) -> Any:
        return self.get(f"/v1/sessions/{session_id}/trajectory").json

    def events(
        self, session_id: str, after: int = 0, *, within_s: float = UNTIL_S
    ) -> Iterator[Event]:
        """The events of a session beyond `after`, until the stream ends."""
        headers = {"last-event-id": str(after)} if after else {}
        path = f"/v1/sessions/{session_id}/events"
        with self._http.stream("GET", path, headers=headers, timeout=within_s) as stream:
            if stream.status_code == 204:
                return
            assert stream.status_code == 200, stream.read()
            yield from frames(stream.iter_lines())

    def events_reply(self, session_id: str, after: int) -> int:
        """The status with which a stream is answered that resumes there."""
        path = f"/v1/sessions/{session_id}/events"
        with self._http.stream("GET", path, headers={"last-event-id": str(after)}) as stream:
            return stream.status_code


def until_called(url: str) -> None:
    """Return once the component there says that it runs a call."""
    deadline, pause = monotonic() + UNTIL_S, threading.Event()
    with Client(url) as component:
        while component.get("/acp/v1/health").json.get("signals", {}).get("inflight", 0) < 1:
            assert monotonic() < deadline, "the call did not arrive"
            pause.wait(0.01)


def frames(lines: Iterator[str]) -> Iterator[Event]:
    """Server-sent events out of lines."""
    fields: dict[str, str] = {}
    for line in lines:
        if line and not line.startswith(":"):
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
        elif not line and "data" in fields:
            yield Event(int(fields["id"]), fields.get("event", ""), json.loads(fields["data"]))
            fields = {}


def opening(workflow: str, input_text: str, **fields: object) -> str:
    """The body that opens a session, around the input's own text."""
    more = "".join(f",{json.dumps(name)}:{json.dumps(value)}" for name, value in fields.items())
    return f'{{"workflow":{json.dumps(workflow)},"input":{input_text}{more}}}'


def _bytes(body: object) -> bytes:
    if isinstance(body, bytes):
        return body
    return body.encode() if isinstance(body, str) else json.dumps(body or {}).encode()


def _value(source: str, key: str) -> str:
    """The value of a top-level key of a small YAML file."""
    lines = (line.partition(":") for line in source.splitlines())
    return next(value.split("#")[0].strip() for name, _, value in lines if name == key)


__all__ = ["TERMINAL", "Client", "Event", "Gone", "Reply", "frames", "opening", "until_called"]
