"""Execute requests as a gateway writes them, for raw HTTP and gRPC tests."""

import hashlib
from typing import TypedDict

import httpx

from acp_spec.model.ids import body_digest

SESSION = "01J00000000000000000000000"


class Context(TypedDict):
    session_id: str
    lineage_id: str
    call_id: str
    attempt: int
    body_digest: str
    timeout_ms: int


def call_id(name: str) -> str:
    """A call id as the gateway makes them: 32 hex digits."""
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def context(name: str, action: str, arguments: str, *, attempt: int = 1) -> Context:
    return {
        "session_id": SESSION,
        "lineage_id": f"{SESSION}.0123456789ab",
        "call_id": call_id(name),
        "attempt": attempt,
        "body_digest": body_digest(action, arguments.encode()),
        "timeout_ms": 5000,
    }


def execute(
    url: str,
    name: str,
    action: str,
    arguments: str,
    *,
    attempt: int = 1,
    headers: dict[str, str] | None = None,
) -> httpx.Response:
    """POST one attempt of the call `name`; `arguments` is JSON text, sent as it stands."""
    about = context(name, action, arguments, attempt=attempt)
    head = httpx.Request("POST", url, json={"context": about, "action": action}).read()
    body = head[:-1] + b',"arguments":' + arguments.encode() + b',"of_the_future":1}'
    return httpx.post(
        f"{url}/acp/v1/execute", content=body, headers=headers or {}, timeout=10, trust_env=False
    )


def reason(response: httpx.Response) -> tuple[int, str, str]:
    """Status, reason and side effect of an error answer."""
    error = response.json()["error"]
    return response.status_code, error["reason"], error["side_effect"]
