"""The kernel's own view: the log's sync has returned before the bytes of the promise go out."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.tests.durability.system_calls import Promise, kept_in_order, read_acts, traced_acp
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import Stranger, card, serving
from gateway.tests.served import serve_gateway

WORKFLOW = """
workflow: both
version: 1.0.0
steps:
  - {name: keyed, role: execute, component: doer, action: keyed}
  - {name: once, role: execute, component: doer, action: once}
output: once.output
"""
PROMISES = (
    Promise("registration", "POST /v1/components ", "HTTP/1.1 201"),
    Promise("workflow", "PUT /v1/workflows/", "HTTP/1.1 201"),
    Promise("token", "POST /v1/tokens ", "HTTP/1.1 201"),
    Promise("open", "POST /v1/sessions ", "HTTP/1.1 201"),
    Promise("cancel", "/cancel ", "HTTP/1.1 202"),
    Promise("BY_KEY call", "POST /v1/sessions ", "POST /acp/v1/execute"),
    Promise("NONE call", "HTTP/1.1 200", "POST /acp/v1/execute"),
    Promise("end", "HTTP/1.1 200", "HTTP/1.1 200"),
    Promise("feedback", "/feedback ", "HTTP/1.1 201"),
)


def story(url: str) -> None:
    """One of each, one after the other, in the order of PROMISES."""
    done = '{"output": 1, "side_effect": "PERFORMED"}'
    actions: dict[str, dict[str, object]] = {"keyed": {"idempotency": "BY_KEY"}, "once": {}}
    doer = Stranger(card("doer", "EXECUTOR", actions=actions), {"execute": lambda body: done})
    with serving(doer), Client(url) as client:
        client.register(doer.url)
        client.put_workflow(WORKFLOW)
        assert client.post("/v1/tokens", {"scopes": ["submit"]}).status == 201
        waiting = client.open("both", mode="MANUAL")
        assert client.post(f"/v1/sessions/{waiting}/cancel").status == 202
        ended = client.run("both").json
        assert ended["status"] == "SUCCEEDED", ended
        given = {"kind": "RATING", "score": 1}
        assert client.post(f"/v1/sessions/{ended['session_id']}/feedback", given).status == 201


@pytest.mark.parametrize("sync", ["true", "false"])
def test_the_sync_returns_before_the_promise_goes_out(
    sync: str, needs: Callable[[str], Path], tmp_path: Path
) -> None:
    """With `journal.sync` off no promise is in order: that is how we know that this looks."""
    program, trace = traced_acp(needs("strace"), tmp_path)
    gateway = serve_gateway(
        data_dir=tmp_path / "data",
        log_file=tmp_path / "gateway.log",
        environ={"ACP_JOURNAL_SYNC": sync},
        acp=program,
    )
    try:
        story(gateway.url)
    finally:
        gateway.stop()
    kept = kept_in_order(read_acts(trace.read_text(encoding="utf-8")), PROMISES)
    assert kept == {promise.name: sync == "true" for promise in PROMISES}
