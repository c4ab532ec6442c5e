"""Whole sessions over a component that does something wrong, and what they must come to.

In one workflow the session goes on behind each failure, in the other it fails with it.
"""

from typing import Any, NamedTuple

from gateway.tests.e2e.client import Client

WORKFLOWS = """
workflow: {name}
version: 1.0.0
steps:
  - {{name: once, role: execute, component: {name}, action: once, on_error: continue}}
  - {{name: keyed, role: execute, component: {name}, action: keyed, on_error: continue}}
  - {{name: look, role: execute, component: {name}, action: look, on_error: continue}}
output: once.status
recovery: {{policy: backoff, base_ms: 1, max_ms: 5}}
---
workflow: {name}_strict
version: 1.0.0
steps: [{{name: once, role: execute, component: {name}, action: once}}]
output: once.output
"""


class Comes(NamedTuple):
    """What a fault comes to; the side effect of a WRITE, and of a READ (SPEC ERR-009, ERR-010)."""

    code: str
    reason: str
    side_effect: str = "UNKNOWN"
    of_read: str = "NONE"


def put_workflows(client: Client, name: str) -> None:
    for source in WORKFLOWS.format(name=name).split("---"):
        client.put_workflow(source)


def rows_of(client: Client, session_id: str) -> dict[str, list[Any]]:
    """The attempts of each step, in order."""
    found: dict[str, list[Any]] = {}
    for row in client.trajectory(session_id)["calls"]:
        found.setdefault(row["step"], []).append(row)
    return found


def check_sessions(client: Client, name: str, comes: Comes) -> None:
    """Both workflows' sessions end as these say, and their rows tell what is known."""
    view = client.run(name).json
    assert (view["status"], view["output"]) == ("SUCCEEDED", "FAILED"), view
    rows = rows_of(client, view["session_id"])
    for step in ("once", "keyed", "look"):
        for row in rows[step]:
            failure = row["error"]
            side_effect = comes.of_read if step == "look" else comes.side_effect
            assert (failure["code"], failure["reason"]) == comes[:2], row
            assert failure.get("boundary", "COMPONENT") == "COMPONENT"  # the default is left out
            assert failure["message"]
            assert row.get("side_effect", "UNKNOWN") == failure["side_effect"] == side_effect
    if comes.side_effect == "UNKNOWN":
        assert len(rows["once"]) == 1, "it may have been done: it is not sent again"
    ended = client.run(f"{name}_strict").json
    assert (ended["status"], ended["error"]["reason"]) == ("FAILED", comes.reason)
