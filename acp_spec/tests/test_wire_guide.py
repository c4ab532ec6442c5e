"""The component that docs/wire.md shows works as shown: its answers are read by the codec."""

import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from acp_spec.codec import json
from acp_spec.model.calls import CancelResponse, ExecuteResponse
from acp_spec.model.card import Card, Health
from acp_spec.model.enums import Effect, SideEffect

GUIDE = (Path(__file__).parents[2] / "docs" / "wire.md").read_text(encoding="utf-8")
ANSWER_S = 5
REQUEST = (
    b'{"context":{"session_id":"s","lineage_id":"l","call_id":"c","attempt":1,"body_digest":"d",'
    b'"timeout_ms":5000},"action":"greet","arguments":{"name":"Bo"}}'
)


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    """The address of the guide's component, served on a free port."""
    [code] = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code.rpartition("ThreadingHTTPServer(")[0], names)
    quiet = type("Quiet", (names["Greeter"],), {"log_message": lambda *_: None})
    with ThreadingHTTPServer(("127.0.0.1", 0), quiet) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/acp/v1/"
        server.shutdown()
        thread.join()


def _ask(url: str, body: bytes | None = None) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(url, body, timeout=ANSWER_S) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read()


def test_it_describes_itself(base: str) -> None:
    _, data = _ask(base + "component")
    action = json.decode_response(Card, data).action("greet")
    assert action is not None
    assert action.effect is Effect.READ
    assert json.decode_response(Health, _ask(base + "health")[1]).status.name == "SERVING"


def test_it_answers_a_call(base: str) -> None:
    _, data = _ask(base + "execute", REQUEST)
    response = json.decode_response(ExecuteResponse, data)
    assert bytes(response.output) == b'{"text": "Hello, Bo!"}'
    assert response.side_effect is SideEffect.NONE


def test_it_never_saw_a_call_that_is_cancelled(base: str) -> None:
    _, data = _ask(base + "calls/c/cancel", b"{}")
    assert json.decode_response(CancelResponse, data).state.name == "UNKNOWN_CALL"


@pytest.mark.parametrize(
    ("path", "body", "status"), [("execute", b"{", 400), ("plan", REQUEST, 404)]
)
def test_its_errors_are_acp_errors(base: str, path: str, body: bytes, status: int) -> None:
    answered, data = _ask(base + path, body)
    assert answered == status
    assert json.decode_error(answered, data).error.side_effect is SideEffect.NONE
