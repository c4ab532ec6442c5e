"""A version that needs approval serves nobody by its name either; real gateway, both bindings."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from acp_spec.bindings.routes import GATEWAY
from acp_spec.model.enums import Mode
from acp_spec.model.gateway_calls import OpenSessionRequest
from acp_spec.model.session import OpenSession
from gateway.runtime.clock import SystemClock
from gateway.runtime.tokens import TokenRequest
from gateway.tests.access.conftest import made
from gateway.tests.asking import Asker, Outcome
from gateway.tests.e2e.client import Client, Reply
from gateway.tests.e2e.stranger import READ, Stranger, card, serving
from gateway.tests.served import serve_gateway

WORKFLOW = """
workflow: desk
version: {version}
contract: {{sla: {{clerk: {{max_latency_ms: 10000, min_samples: 2}}}}}}
steps:
  - {{name: act, role: execute, component: clerk, action: serve, input_mapping: {{x: input}}}}
output: act.output
"""
VERSIONS = ("1.0.0", "1.1.0", "2.0.0", "3.0.0")
REFUSED = ("PERMISSION_DENIED", "PERMISSION_DENIED")


@dataclass(frozen=True, slots=True)
class Office:
    """A gateway whose board must approve major versions: `pat` works, `ann` approves."""

    client: Client
    asker: Asker
    tokens: dict[str, str]

    def ask(self, method: str, path: str, body: object = None, *, by: str = "pat") -> Reply:
        sent = None if body is None else json.dumps(body).encode()
        token = f"Bearer {self.tokens[by]}"
        return self.client.call(method, path, body=sent, authorization=token, prefer="wait=60")

    def propose(self, version: str) -> str:
        change = {"kind": "MAJOR_VERSION", "subject": f"workflow:desk@{version}"}
        reply = self.ask("POST", "/v1/proposals", {"change": change, "title": "next"})
        assert reply.status == 201, reply.text
        found: str = reply.json["proposal"]["proposal_id"]
        return found

    def approve(self, proposal_id: str) -> None:
        path = f"/v1/proposals/{proposal_id}"
        content = self.ask("GET", path).json["content"]
        vote = {"role": "owner", "agrees": True, "content": content}
        reply = self.ask("POST", f"{path}/votes", vote, by="ann")
        assert (reply.status, reply.json["proposal"]["status"]) == (200, "APPROVED"), reply.text

    def opens(self, workflow: str, mode: Mode = Mode.AUTOMATIC) -> tuple[Outcome, Outcome]:
        request = OpenSessionRequest(session=OpenSession(workflow=workflow, mode=mode))
        return self.asker.both(GATEWAY["open_session"], request, token=self.tokens["pat"])


def config(owner: str) -> dict[str, Any]:
    rules = {"MAJOR_VERSION": {"approvals": {"owner": 1}}}
    return {"auth": {"mode": "required"}, "board": {"rules": rules, "roles": {"owner": [owner]}}}


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    folder: Path = tmp_path_factory.mktemp("office")
    wanted = {name: TokenRequest(scopes=("operate", "submit")) for name in ("pat", "ann")}
    tokens = made(folder / "data", wanted, SystemClock())
    settings = folder / "gateway.yaml"
    settings.write_text(yaml.safe_dump(config(f"token:{tokens['ann'].info.token_id}")))
    served = serve_gateway(
        data_dir=folder / "data", log_file=folder / "log", environ={"ACP_CONFIG": str(settings)}
    )
    clerk = Stranger(
        card("clerk", "EXECUTOR", actions={"serve": READ}), {"execute": lambda _: '{"output": 1}'}
    )
    with ExitStack() as stack:
        stack.callback(served.stop)
        client = stack.enter_context(Client(served.url))
        asker = stack.enter_context(Asker(http=served.http, grpc_address=served.grpc))
        url = stack.enter_context(serving(clerk)).url
        one = Office(client, asker, {name: token.token for name, token in tokens.items()})
        body = {"url": url, "transport": "HTTP", "lease_seconds": 600}
        assert one.ask("POST", "/v1/components", body).status == 201
        for version in VERSIONS:
            stored = client.call(
                "PUT",
                f"/v1/workflows/desk/versions/{version}",
                body=WORKFLOW.format(version=version).encode(),
                authorization=f"Bearer {one.tokens['pat']}",
                content_type="application/yaml",
            )
            assert stored.status == 201, stored.text
        yield one


@pytest.mark.parametrize("name", ["desk@2.0.0", "desk@^2", "desk@>=1.2"])
@pytest.mark.parametrize("mode", [Mode.AUTOMATIC, Mode.MANUAL])
def test_a_version_that_nobody_approved_is_refused_by_its_name_on_both_bindings(
    office: Office, name: str, mode: Mode
) -> None:
    answers = office.opens(name, mode)
    assert tuple(one.reason for one in answers) == REFUSED
    for one in answers:
        assert "MAJOR_VERSION needs an approved proposal" in one.message


@pytest.mark.parametrize("name", ["desk", "desk@1.0.0", "desk@^1", "desk@1.1.0"])
def test_what_is_active_or_needs_no_approval_opens(office: Office, name: str) -> None:
    assert all(one.is_success for one in office.opens(name)), office.opens(name)


def test_the_gateways_own_measurement_runs_what_it_measures_for_the_approval(
    office: Office,
) -> None:
    proposal = office.propose("2.0.0")
    asked = {"kind": "LOAD_RUN", "input": "1", "sessions": 2, "seconds": 1}
    told = office.ask("POST", f"/v1/proposals/{proposal}/evidence", asked)
    assert told.status == 202, told.text
    (evidence,) = told.json["proposal"]["evidence"]
    assert (evidence["exit_code"], evidence["figures"]["passed"]) == (0, 1.0), evidence
    assert tuple(one.reason for one in office.opens("desk@2.0.0")) == REFUSED, "nobody else does"


def test_an_approved_version_opens_by_its_name_and_one_that_was_active_for_ever(
    office: Office,
) -> None:
    proposal = office.propose("3.0.0")
    assert tuple(one.reason for one in office.opens("desk@3.0.0")) == REFUSED
    office.approve(proposal)
    assert all(one.is_success for one in office.opens("desk@3.0.0"))
    for version in ("3.0.0", "1.0.0"):
        path = f"/v1/workflows/desk/versions/{version}/activate"
        assert office.ask("POST", path).status == 200
    assert all(one.is_success for one in office.opens("desk@3.0.0")), "it served: it is known"
