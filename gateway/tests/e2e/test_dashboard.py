"""The dashboard's data behind a real gateway: what ended, what is open, and what went wrong."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from gateway.cli.tokens import app as tokens_command
from gateway.stores.records.tests.childhood import patiently
from gateway.tests.e2e.client import Client, Reply
from gateway.tests.e2e.desk import WORKFLOW, desk
from gateway.tests.served import serve_gateway

WRONG = {
    "overview?window_ms=1": "window_ms",
    "overview?window_ms=-1": "window_ms",
    "overview?window_ms=1e9": "window_ms",
    "overview?window_ms=99999999999999999999": "window_ms",
    "overview?window_ms=31622400001": "window_ms",
    "overview?window_ms=60000&window_ms=60000": "window_ms",
    "overview?windowms=60000": "windowms",
    "overview?workflow=" + "w" * 201: "workflow",
    "overview?workflow=%00": "workflow",
    "overview?workflow=%ff": "UTF-8",
    "signals?until=tomorrow": "until",
    "signals?until=7258118400001": "until",
    "signals?window_ms=59999": "window_ms",
    "workflows/%00": "name",
    "workflows/w?limit=1": "limit",
    "components/" + "c" * 201: "name",
    "components/c?window_ms=x": "window_ms",
    "sessions?limit=0": "limit",
    "sessions?limit=201": "limit",
    "sessions?limit=ten": "limit",
    "sessions?limit=-1": "limit",
    "sessions?status=DONE": "status",
    "sessions?review=MAYBE": "review",
    "sessions?after=0": "after",
    "sessions?after=%27%20OR%201": "after",
    "sessions?since=-1": "since",
    "sessions?since=2026-11-30": "since",
    "sessions?until=7258118400001": "until",
    "sessions?error=" + "e" * 201: "error",
    "sessions?component=a%00b": "component",
    "sessions?version=" + "v" * 201: "version",
    "sessions?tenant=bank": "tenant",
    "live?now=1": "takes no parameters",
}
STEP = {"step_type": "TOOL", "payload": {"action": "serve", "arguments": {"x": 1}}}


class Bearer(Client):
    """A client that shows one token with every request."""

    def __init__(self, url: str, token: str) -> None:
        super().__init__(url)
        self._shown = f"Bearer {token}"

    def call(self, method: str, path: str, *, body: bytes | None = None, **headers: str) -> Reply:
        return super().call(method, path, body=body, authorization=self._shown, **headers)


def asked(client: Client, path: str, **query: object) -> Any:
    """An answer, waiting while the records' process is started or started again."""
    text = "&".join(f"{name}={value}" for name, value in query.items())
    for _ in patiently():
        reply = client.get(f"/v1/dashboard/{path}?{text}")
        if reply.status != 503:
            assert reply.status == 200, reply.text
            return reply.json
    raise AssertionError("patience has an end")


def computed(client: Client) -> Any:
    """The fourth signal, once the process beside the gateway has looked."""
    for _ in patiently():
        variance = asked(client, "overview")["signals"]["contribution_variance"]
        if "computed_at" in variance:
            return variance
    raise AssertionError("patience has an end")


def ids(page: Any) -> list[str]:
    return [item["session_id"] for item in page.get("items", [])]  # an empty list is left out


def test_what_ended_is_in_the_overview_the_list_and_its_own_page(tmp_path: Path) -> None:
    with desk(tmp_path) as (_, client):
        one, two = sorted(client.open("desk", text) for text in ("1", "2"))  # within one ms, too
        for session in (one, two):
            client.ended(session)
        for _ in patiently():
            if ids(asked(client, "sessions")) == [two, one]:
                break
        page = asked(client, "sessions", limit=1, component="clerk", status="succeeded")
        assert ids(page) == [two]
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
        variance = computed(client)
        assert (variance["workflow"], "value" in variance) == ("desk", False)
        assert variance["reason"] == "a window has no session with a reward"
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


def test_a_parameter_that_is_wrong_is_named_and_starts_nothing(tmp_path: Path) -> None:
    with desk(tmp_path) as (_, client):
        for path, name in WRONG.items():
            reply = client.get(f"/v1/dashboard/{path}")
            assert (reply.status, reply.reason) == (400, "INVALID_REQUEST"), (path, reply.text)
            assert name in reply.message, (path, reply.message)
        assert client.get("/v1/dashboard/sessions/nobody").status == 404
        assert client.get("/v1/records/status").json == {"state": "STOPPED"}


def test_what_is_open_is_listed_and_shown_without_the_records(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "records").write_text("no folder: the records cannot start")
    with desk(tmp_path) as (_, client):
        given = [f'{{"password": "hunter2", "n": {n}}}' for n in range(3)]
        mine = sorted(client.open("desk", text, mode="MANUAL") for text in given)
        client.post(f"/v1/sessions/{mine[1]}/steps", STEP, prefer="wait=20")
        assert client.get("/v1/dashboard/live").json["open"]["running"] == 3
        pages = [client.get("/v1/dashboard/sessions?status=running&limit=2").json]
        pages.append(
            client.get(
                f"/v1/dashboard/sessions?status=running&limit=2&after={pages[0]['after']}"
            ).json
        )
        assert [ids(page) for page in pages] == [[mine[2], mine[1]], [mine[0]]]
        assert "after" not in pages[1]
        for query, wanted in (
            ("component=clerk", [mine[1]]),
            ("component=nobody", []),
            ("workflow=desk&version=1.0.0", mine[::-1]),
            ("version=9", []),
            ("error=TIMEOUT", []),
            ("review=WAITING", []),
            ("until=1", []),
            ("since=1", mine[::-1]),
        ):
            found = client.get(f"/v1/dashboard/sessions?status=running&{query}").json
            assert ids(found) == wanted, query
        shown = client.get(f"/v1/dashboard/sessions/{mine[1]}").json
        assert (shown["is_open"], shown["status"]) == (True, "RUNNING")
        assert shown["input"]["json"]["password"] == "***"
        assert [entry["kind"] for entry in shown["timeline"]][:2] == ["STEP", "CALL"]
        assert client.get(f"/v1/dashboard/sessions/{mine[0]}").json.get("timeline", []) == []
        refused = client.get("/v1/dashboard/overview")
        assert refused.status == 503
        assert "the records are not there now" in refused.message


def test_another_tenant_sees_nothing_of_it(tmp_path: Path) -> None:
    """The bank has a scope that may see everything of its own, and has nothing."""
    data, settings = tmp_path / "data", tmp_path / "settings.yaml"
    admin, bank = token(data, "admin", "default"), token(data, "operate", "bank")
    settings.write_text("auth: {mode: required}\n")
    served = serve_gateway(
        "--config", str(settings), data_dir=data, log_file=tmp_path / "log", environ={}
    )
    try:
        with Bearer(served.url, admin) as own, Bearer(served.url, bank) as theirs:
            own.put_workflow(WORKFLOW)
            running, over = sorted(own.open("desk", "1", mode="MANUAL") for _ in range(2))
            own.post(f"/v1/sessions/{over}/finish", {"output": 1})
            for _ in patiently():
                if ids(asked(own, "sessions")) == [over, running]:
                    break
            assert asked(own, "live")["open"]["running"] == 1
            assert asked(theirs, "live")["open"]["running"] == 0
            assert "items" not in asked(theirs, "sessions") or not ids(asked(theirs, "sessions"))
            for path in ("overview", "signals", "workflows/desk", "components/clerk"):
                text = json.dumps(asked(theirs, path))
                assert "1.0.0" not in text, path
            for session in (running, over):
                assert own.get(f"/v1/dashboard/sessions/{session}").status == 200
                assert theirs.get(f"/v1/dashboard/sessions/{session}").status == 404
    finally:
        served.stop()


def token(data: Path, scope: str, tenant: str) -> str:
    made = CliRunner().invoke(
        tokens_command,
        ["create", "--scope", scope, "--tenant", tenant, "--json", "--data-dir", str(data)],
    )
    found: str = json.loads(made.stdout)["token"]
    return found
