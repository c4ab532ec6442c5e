"""A governed gateway as its operators meet it: refused, proposed, measured, approved, let in.

The gateway and the component are real processes; the evidence is the conformance suite's own.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from acp_spec.sdk.cli import Exit
from gateway.cli.proposals import app as proposals_command
from gateway.cli.proposals import audit as audit_command
from gateway.runtime.clock import SystemClock
from gateway.runtime.tokens import TokenRequest
from gateway.tests.access.conftest import made
from gateway.tests.e2e.client import Client, Reply
from gateway.tests.e2e.conftest import start_components as start_components
from gateway.tests.served import Served, serve_gateway

PEOPLE = ("pat", "ann", "bob")


@dataclass(frozen=True, slots=True)
class Governed:
    """The gateway, its people's tokens, and its folder."""

    served: Served
    tokens: dict[str, str]
    folder: Path

    def ask(self, method: str, path: str, *, by: str, body: object = None) -> Reply:
        with Client(self.served.url) as client:
            sent = None if body is None else json.dumps(body).encode()
            return client.call(method, path, body=sent, authorization=f"Bearer {self.tokens[by]}")

    def run(self, *words: str, by: str) -> Any:
        place = ("--gateway", self.served.url, "--token", self.tokens[by])
        return CliRunner().invoke(proposals_command, [*words, *place])


def policy(subjects: dict[str, str]) -> dict[str, object]:
    evidence = {"kind": "CONFORMANCE", "bounds": ["counts.failed == 0", "conformant == 1"]}
    governed = {"approvals": {"owner": 1, "sre": 1}, "evidence": [evidence]}
    return {
        "auth": {"mode": "required"},
        "board": {
            "rules": {"NEW_COMPONENT": governed, "RETIREMENT": {"approvals": {"owner": 1}}},
            "roles": {"owner": [subjects["ann"]], "sre": [subjects["bob"]]},
        },
    }


@pytest.fixture(scope="module")
def governed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Governed]:
    folder = tmp_path_factory.mktemp("governed")
    wanted = {name: TokenRequest(scopes=("operate", "submit"), label=name) for name in PEOPLE}
    wanted["admin"] = TokenRequest(scopes=("admin",))
    tokens = made(folder / "data", wanted, SystemClock())
    subjects = {name: f"token:{one.info.token_id}" for name, one in tokens.items()}
    config = folder / "gateway.yaml"
    config.write_text(yaml.safe_dump(policy(subjects)), encoding="utf-8")
    served = serve_gateway(
        data_dir=folder / "data",
        log_file=folder / "gateway.log",
        environ={"ACP_CONFIG": str(config)},
    )
    yield Governed(served, {name: one.token for name, one in tokens.items()}, folder)
    assert served.stop() == 0


def test_a_new_component_comes_in_through_a_proposal_with_the_systems_own_figures(
    governed: Governed, start_components: Callable[..., dict[str, Any]]
) -> None:
    url = start_components("echo")["echo"]["url"]
    registration = {"url": url, "transport": "HTTP", "lease_seconds": 600}
    refused = governed.ask("POST", "/v1/components", by="pat", body=registration)
    assert (refused.status, refused.reason) == (403, "PERMISSION_DENIED")
    wanted = refused.json["error"]["details"]["change"]
    assert (wanted["kind"], wanted["subject"]) == ("NEW_COMPONENT", "component:echo@1")

    change = ("--kind", wanted["kind"], "--subject", wanted["subject"], "--json")
    opened = governed.run("open", *change, "--digest", wanted["digest"], "--title", "e", by="pat")
    assert opened.exit_code == 0, opened.output
    proposal_id = json.loads(opened.stdout)["proposal"]["proposal_id"]

    asked = governed.run(
        "evidence", proposal_id, "--kind", "conformance", "--target", url, "--json", by="pat"
    )
    assert asked.exit_code == 0, asked.output

    def measured() -> Any:
        return governed.ask("GET", f"/v1/proposals/{proposal_id}", by="pat").json

    view = json.loads(asked.stdout)
    figures = view["proposal"]["evidence"][0]["figures"]
    assert figures["conformant"] == 1.0
    assert figures["counts.passed"] > 20
    assert view["missing"] == ["approvals of owner: 0 of 1", "approvals of sre: 0 of 1"]

    said = [
        governed.run("vote", proposal_id, "--role", role, by=voter)
        for voter, role in (("ann", "owner"), ("bob", "sre"))
    ]
    assert [one.exit_code for one in said] == [0, 0], [one.output for one in said]
    assert "APPROVED" in said[1].output
    let_in = governed.ask("POST", "/v1/components", by="pat", body=registration)
    assert let_in.status == 201, let_in.text
    assert measured()["proposal"]["status"] == "APPLIED"
    again = governed.ask("POST", "/v1/components", by="pat", body=registration)
    assert again.status in (200, 201), "a component in service may register again"


def test_figures_of_an_address_that_the_gateway_may_not_call_are_not_measured(
    governed: Governed,
) -> None:
    change = {"kind": "NEW_COMPONENT", "subject": "component:far@1"}
    body = {"change": change, "title": "far"}
    proposal = governed.ask("POST", "/v1/proposals", by="pat", body=body).json["proposal"]
    path = f"/v1/proposals/{proposal['proposal_id']}/evidence"
    asked = {"kind": "CONFORMANCE", "target": "http://169.254.169.254:80"}
    told = governed.ask("POST", path, by="pat", body=asked)
    assert (told.status, told.reason) == (400, "INVALID_REQUEST")
    assert "outbound.allow" in told.message


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"title": "x"}, "change"),
        ({"change": {"kind": "PARTY", "subject": "component:a@1"}, "title": "x"}, "kind"),
        ({"change": {"kind": "RETIREMENT", "subject": "a"}, "title": "x"}, "change.subject"),
        ({"change": {"kind": "RETIREMENT", "subject": "component:a@1"}, "title": ""}, "title"),
        (
            {
                "change": {
                    "kind": "RETIREMENT",
                    "subject": "component:a@1",
                    "digest": "f" * 70_000,
                },
                "title": "x",
            },
            "change.digest",
        ),
    ],
)
def test_a_proposal_that_says_too_little_is_told_where(
    governed: Governed, body: object, place: str
) -> None:
    told = governed.ask("POST", "/v1/proposals", by="pat", body=body)
    assert (told.status, told.reason) == (400, "INVALID_REQUEST")
    assert place in told.message


def test_the_audit_log_is_verified_from_outside_and_a_stopped_gateways_too(
    tmp_path: Path, serve: Callable[..., Served]
) -> None:
    served = serve(data_dir=tmp_path / "data")
    change = {"kind": "RETIREMENT", "subject": "component:a@1"}
    with Client(served.url) as client:
        for number in range(3):
            body = {"change": change, "title": f"number {number}"}
            assert client.post("/v1/proposals", body).status == 201
        head = client.get("/v1/audit").json["head"]
        assert client.get("/v1/audit/verdict", head=head[1]).json["whole"] is True
        told = client.get("/v1/audit/verdict", head="0" * 64).json
        assert (told["whole"], told["number"]) == (False, head[0])
    assert served.stop() == 0
    there = ["--data-dir", str(tmp_path / "data"), "--json"]
    found = CliRunner().invoke(audit_command, ["verify", *there])
    assert (found.exit_code, json.loads(found.stdout)["head"]) == (0, head[1])
    cut = CliRunner().invoke(audit_command, ["verify", *there, "--head", "f" * 64])
    assert cut.exit_code == Exit.FAILED


LOADED = """
workflow: loaded
version: {version}
contract:
  sla:
    echo: {{max_latency_ms: {most_ms}, min_samples: 2}}
steps:
  - {{name: act, role: execute, component: echo, action: echo, input_mapping: {{x: input}}}}
output: act.output
"""


def test_a_load_run_gives_the_figures_of_each_component(
    tmp_path: Path, serve: Callable[..., Served], start_components: Callable[..., dict[str, Any]]
) -> None:
    served = serve(data_dir=tmp_path / "data")
    with Client(served.url) as client:
        client.register(start_components("echo")["echo"]["url"])
        client.put_workflow(LOADED.format(version="1.0.0", most_ms=10_000))
        change = {"kind": "SLA_CHANGE", "subject": "workflow:loaded@1.0.0"}
        opened = client.post("/v1/proposals", {"change": change, "title": "load"}).json
        path = f"/v1/proposals/{opened['proposal']['proposal_id']}"
        asked = {"kind": "LOAD_RUN", "input": '{"a": 1}', "sessions": 2, "seconds": 1}
        told = client.post(f"{path}/evidence", asked, prefer="wait=60")
        assert told.status == 202, told.text
        (evidence,) = told.json["proposal"]["evidence"]
        assert (evidence["exit_code"], evidence["figures"]["passed"]) == (0, 1.0)
        assert evidence["figures"]["checks.echo.figures.calls"] >= 2, "each at least once"
        assert evidence["figures"]["checks.echo.figures.p95_ms"] < 10_000

        replayed = client.post(f"{path}/evidence", {"kind": "REPLAY"})
        assert (replayed.status, replayed.reason) == (400, "INVALID_REQUEST")
        assert "candidates" in replayed.message


def test_what_people_change_stands_in_the_audit_log_with_who_did_it(
    governed: Governed, start_components: Callable[..., dict[str, Any]]
) -> None:
    def entries() -> list[tuple[str, str]]:
        page = governed.ask("GET", "/v1/audit", by="admin").json
        return [(one["action"], one["actor"]) for one in page["entries"]]

    made = governed.ask("POST", "/v1/tokens", by="admin", body={"scopes": ["submit"]}).json
    token_id = made["info"]["token_id"]
    assert governed.ask("DELETE", f"/v1/tokens/{token_id}", by="admin").status == 204
    workflow = LOADED.format(version="1.0.0", most_ms=1).encode()
    with Client(governed.served.url) as client:
        for name in ("pat", "pat"):
            stored = client.call(
                "PUT",
                "/v1/workflows/loaded/versions/1.0.0",
                body=workflow,
                authorization=f"Bearer {governed.tokens[name]}",
                content_type="application/yaml",
            )
            assert stored.status in (200, 201), stored.text
    actors = [actor for _, actor in entries()]
    assert [action for action, _ in entries()][-4:] == [
        "token.created",
        "token.revoked",
        "workflow.activated",
        "workflow.stored",
    ], "the same bytes again are no change"
    assert len({actors[-4], actors[-1]}) == 2, "each by its own token"
    verdict = governed.ask("GET", "/v1/audit/verdict", by="admin").json
    assert verdict["whole"] is True
