"""The dashboard's data behind a real gateway: what ended, what is open, and what went wrong."""

from pathlib import Path
from typing import Any

from gateway.stores.records.tests.childhood import patiently
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.desk import desk


def asked(client: Client, path: str, **query: object) -> Any:
    """An answer, waiting while the records' process is started or started again."""
    text = "&".join(f"{name}={value}" for name, value in query.items())
    for _ in patiently():
        reply = client.get(f"/v1/dashboard/{path}?{text}")
        if reply.status != 503:
            assert reply.status == 200, reply.text
            return reply.json
    raise AssertionError("patience has an end")


def ids(page: Any) -> list[str]:
    return [item["session_id"] for item in page["items"]]


def test_what_ended_is_in_the_overview_the_list_and_its_own_page(tmp_path: Path) -> None:
    with desk(tmp_path) as (_, client):
        one, two = client.open("desk", "1"), client.open("desk", "2")
        for session in (one, two):
            client.ended(session)
        page: Any = {"items": []}
        for _ in patiently():
            page = asked(client, "sessions", limit=1, component="clerk", status="succeeded")
            if ids(page) == [two]:
                break
        rest = asked(client, "sessions", limit=1, component="clerk", after=page["after"])
        assert ids(rest) == [one]
        overview = asked(client, "overview")
        assert overview["totals"] == {
            "opened": 2,
            "succeeded": 2,
            "failed": 0,
            "cancelled": 0,
            "fell_back": 0,
            "in_review": 0,
        }
        assert overview["signals"]["worst_fallback"]["rate"] == 0
        (workflow,) = asked(client, "workflows/desk")["versions"]
        assert (workflow["version"], workflow["ended"]) == ("1.0.0", 2)
        clerk = asked(client, "components/clerk")
        assert [row["action"] for row in clerk["actions"]] == ["serve"]
        assert clerk["judged"] == {
            "ended": 2,
            "judged": 0,
            "missing_share": 1.0,
            "operational": 1.0,
        }
        shown = client.get(f"/v1/dashboard/sessions/{one}").json
        kinds = [entry["kind"] for entry in shown["timeline"] if entry["kind"] != "WAIT"]
        assert kinds == ["STEP", "CALL", "ATTEMPT"]
        assert shown["output"] == {"bytes": 1, "json": 1}
        live = client.get("/v1/dashboard/live").json
        assert live["open"] == {"running": 0, "waiting": 0, "is_all": True}
        assert [(row["name"], row["active"]) for row in live["components"]] == [("clerk", 1)]
