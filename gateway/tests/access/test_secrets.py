"""No secret stands anywhere but where it belongs: not in logs, records, errors, pages or files."""

import json
import re
import secrets
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from gateway.runtime.clock import SystemClock
from gateway.tests.access.conftest import MINE, made, requests
from gateway.tests.access.peers import FORBIDDEN, Heard, Peer, Said, peer
from gateway.tests.asking import Asker
from gateway.tests.e2e.stranger import card
from gateway.tests.served import Served, serve_gateway

# Long random words, so that a hit is no chance.
BY_ENVIRONMENT: Final = f"env-{secrets.token_hex(16)}"
BY_FILE: Final = f"file-{secrets.token_hex(16)}"
EXPORT: Final = f"otlp-{secrets.token_hex(16)}"
ACTIONS: Final = (
    {"name": "good", "effect": "READ", "idempotency": "NATURAL"},
    {"name": "bad", "effect": "WRITE", "idempotency": "NONE"},
    {"name": "slow", "effect": "WRITE", "idempotency": "NONE", "operation_timeout_ms": 600_000},
)
WORKFLOW: Final = """
workflow: secretive
version: 1.0.0
steps:
  - {name: good, role: execute, component: vault, action: good, input_mapping: {x: input}}
  - {name: bad, role: execute, component: vault, action: bad, on_error: continue}
  - {name: slow, role: execute, component: vault, action: slow}
output: good.output
"""


@dataclass(frozen=True, slots=True)
class Story:
    """A gateway after a session in which much went wrong, and every secret of it."""

    served: Served
    session_id: str
    secrets: dict[str, str]
    said: list[str]


def vault(heard: Heard) -> Said:
    """Takes no call without the credential, fails one of them, and accepts a third."""
    if heard.path.endswith("/component"):
        return Said(json.dumps({**card("vault", "EXECUTOR"), "actions": ACTIONS}).encode())
    if heard.path.endswith("/health"):
        return Said(b'{"status":"SERVING"}')
    if f"Bearer {BY_ENVIRONMENT}" != heard.headers.get("authorization"):
        return Said(b'{"error":{"code":"UNAUTHENTICATED","reason":"UNAUTHENTICATED"}}', 401)
    action = json.loads(heard.body)["action"]
    if action == "slow":
        return Said(b'{"operation":{"poll_after_ms":600000}}')
    return Said(b'{"output":1}') if action == "good" else Said(b"<html>broken", 500)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("secretive")
    tokens = made(folder / "data", requests(), SystemClock())
    (folder / "secret.txt").write_text(BY_FILE + "\n")
    settings = folder / "settings.yaml"
    settings.write_text(config(folder))
    served = serve_gateway(
        "--config", str(settings), "--log-level", "debug",
        data_dir=folder / "data", log_file=folder / "gateway.log",
        environ={"ACP_AUTH_MODE": "required", "VAULT_SECRET": BY_ENVIRONMENT},
    )  # fmt: skip
    known = {name: token.token.split("_", 2)[2] for name, token in tokens.items()}
    known |= {"environment": BY_ENVIRONMENT, "file": BY_FILE, "export": EXPORT}
    token = tokens[MINE].token
    with (
        peer(vault, FORBIDDEN) as one,
        Asker(http=served.http, grpc_address=served.grpc, token=token) as me,
    ):
        said = told(me, one, served, token)
        session_id = json.loads(said[-1])["session_id"]
        back = next(
            json.loads(heard.body)["context"]["callback"]
            for heard in one.heard
            if b'"callback"' in heard.body
        )
        known["call-back"] = back["token"].partition(".")[2]
        said += ends(me, session_id, back, token)
    assert served.stop() == 0
    return Story(served, session_id, known, said)


def config(folder: Path) -> str:
    return f"""
outbound:
  credentials: {{vault: "env:VAULT_SECRET", other: "file:{folder / "secret.txt"}"}}
tracing:
  enabled: true
  endpoint: http://127.0.0.1:9/v1/traces
  headers: {{authorization: "{EXPORT}"}}
"""


def told(me: Asker, one: Peer, served: Served, token: str) -> list[str]:
    """Register twice (once with a credential that is not right), open, and fail in many ways."""
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}

    def post(path: str, body: object, **more: str) -> str:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        reply = me.send("POST", path, headers={**headers, **more}, body=data)
        return reply.data.decode() + reply.message

    said = [
        post("/v1/components", {"url": one.url, "auth": "nobody"}),
        post("/v1/components", {"url": "http://user:pw@127.0.0.1:1", "auth": "other"}),
        post("/v1/components", {"url": one.url, "auth": "vault", "lease_seconds": 600}),
        post("/v1/sessions", "{", authorization=f"Bearer {token}x"),
        post("/v1/sessions", "{"),
    ]
    put = me.send(
        "PUT", "/v1/workflows/secretive/versions/1.0.0",
        headers={**headers, "content-type": "application/yaml"}, body=WORKFLOW.encode(),
    )  # fmt: skip
    assert put.status == 201, put
    said.append(post("/v1/sessions", {"workflow": "secretive", "input": 1}))
    session_id = json.loads(said[-1])["session_id"]
    with me.events(session_id) as lines:
        for line in lines:
            said.insert(0, line)
            if any(b'"slow"' in heard.body for heard in one.heard):
                break
    return said


def ends(me: Asker, session_id: str, back: dict[str, str], token: str) -> list[str]:
    """Complete with wrong tokens, then the right one, and read everything there is to read."""
    path = back["url"].partition("/v1/")[2]
    json_type = {"content-type": "application/json"}
    said = []
    for shown in (token, back["token"][:-1] + "x", back["token"]):
        headers = {**json_type, "authorization": f"Bearer {shown}"}
        said.append(me.send("POST", f"/v1/{path}", headers=headers, body=b'{"output":2}').message)
    mine = {"authorization": f"Bearer {token}"}
    for place in (
        f"/v1/sessions/{session_id}", f"/v1/sessions/{session_id}/trajectory", "/v1/components",
        "/v1/sessions", "/v1/workflows", "/v1/tokens", "/metrics", "/openapi.json", "/docs",
    ):  # fmt: skip
        reply = me.send("GET", place, headers=mine)
        assert reply.status == 200, place
        said.append(reply.data.decode())
    with me.events(session_id) as lines:
        said += list(lines)
    return said


def test_the_story_had_what_could_leak(story: Story) -> None:
    said = "\n".join(story.said)
    assert len(story.secrets) > 10
    assert "CONTRACT_VIOLATION" in said or "UNAVAILABLE" in said
    assert '"slow"' in said
    assert re.search(r'"status": ?"SUCCEEDED"', said), "the call-back ended it"


def test_no_answer_and_no_event_holds_a_secret(story: Story) -> None:
    said = "\n".join(story.said)
    for name, secret in story.secrets.items():
        assert secret not in said, name


def test_no_log_line_holds_a_secret(story: Story) -> None:
    log = story.served.log()
    assert log
    for name, secret in story.secrets.items():
        assert secret not in log, name


def test_no_file_holds_a_secret(story: Story) -> None:
    files = [path for path in story.served.data_dir.rglob("*") if path.is_file()]
    assert any(path.suffix == ".jsonl" or "trajector" in str(path) for path in files)
    for path in files:
        data = path.read_bytes()
        for name, secret in story.secrets.items():
            assert secret.encode() not in data, (name, path)


def test_printed_settings_hold_no_secret(story: Story, tmp_path: Path) -> None:
    settings = story.served.data_dir.parent / "settings.yaml"
    acp = Path(sys.executable).parent / "acp"
    for flags in ((), ("--json",)):
        printed = subprocess.run(
            [acp, "serve", "--print-config", "--config", settings, *flags],
            env={"PATH": "/usr/bin", "VAULT_SECRET": BY_ENVIRONMENT, "COLUMNS": "400"},
            check=True,
            capture_output=True,
        )
        text = (printed.stdout + printed.stderr).decode()
        assert "VAULT_SECRET" in text
        for name, secret in story.secrets.items():
            assert secret not in text, name


def test_a_broken_settings_file_is_told_without_its_values(story: Story, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text(
        f"tracing:\n  headers: [{EXPORT}]\n"
        f"outbound:\n  credentials: {{vault: {BY_ENVIRONMENT}}}\n  allow: [{BY_FILE}]\n"
    )
    acp = Path(sys.executable).parent / "acp"
    told = subprocess.run(
        [acp, "serve", "--config", broken, "--data-dir", tmp_path / "data"],
        check=False,
        capture_output=True,
        timeout=60,
    )
    assert told.returncode == 2
    text = (told.stdout + told.stderr).decode()
    assert "outbound.credentials" in text
    assert BY_ENVIRONMENT not in text
    assert EXPORT not in text
