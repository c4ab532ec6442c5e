"""The hotline, all five languages of it: data flows, every claim has its source, memory matters.

The components run as their launcher starts them; the workflow is the file that the demo uses.
"""

import csv
import json
import os
import signal
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from acp_spec.sdk.cli import add_commands
from acp_spec.sdk.workflow_files import with_contract
from gateway.tests.e2e.client import Client, Reply
from gateway.tests.e2e.json_texts import compact
from gateway.tests.e2e.stranger import elements, member
from gateway.tests.served import Served

HOTLINE = files("reference_components") / "hotline"
PYTHON = ("hotline-planner", "hotline-memory", "hotline-reflector")
TOOLS = ("cobc", "go", "javac", "java", "node", "npm")
Start = Callable[..., dict[str, Any]]


def hotline() -> str:
    """The workflow with its contract, as the demo stores it."""
    workflow = (HOTLINE / "hotline.yaml").read_text(encoding="utf-8")
    return with_contract(workflow, (HOTLINE / "contract.yaml").read_bytes())


@pytest.fixture(scope="module")
def house(client: Client, start_components: Start, needs: Callable[[str], Path]) -> dict[str, Any]:
    """All components of the hotline, registered; the workflow stored."""
    for tool in TOOLS:
        needs(tool)
    started = start_components(*PYTHON, "ledger", "cards", "rates")
    for one in started.values():
        client.register(one["url"], transport=one["transport"])
    client.put_workflow(hotline())
    return started


def call(client: Client, question: str, customer: str) -> Reply:
    """One customer's call, from the question to its end."""
    asked = json.dumps({"query": question, "customer": customer})
    return client.run("hotline", asked, labels={"customer": customer})


def told(client: Client, reply: Reply) -> str:
    """The text of the trajectory of the session in a reply."""
    return compact(client.get(f"/v1/sessions/{reply.json['session_id']}/trajectory").text)


def executed(trajectory: str) -> list[str]:
    rows = elements(member(trajectory, "calls"))
    return [row for row in rows if json.loads(row)["role"] == "EXECUTE"]


def test_the_hotline_keeps_its_contract_and_its_cases_come_out_as_they_should(
    client: Client, house: dict[str, Any]
) -> None:
    root = typer.Typer()
    add_commands(root)
    file, cases = (str(HOTLINE / name) for name in ("hotline.yaml", "cases.yaml"))
    arguments = ["contract", "check", file, "--target", client.url, "--cases", cases]
    result = CliRunner().invoke(root, arguments)
    assert result.exit_code == 0, result.output
    assert "the contract holds: 7 checks" in result.output


def test_what_one_language_answers_another_one_gets_byte_for_byte(
    client: Client, house: dict[str, Any]
) -> None:
    question = "The exchange rate of my card payment abroad was wrong"
    reply = call(client, question, "ben")
    assert reply.json["status"] == "SUCCEEDED", reply.text
    converted, fee = executed(told(client, reply))
    assert (member(converted, "component"), member(fee, "component")) == ('"rates"', '"ledger"')
    amount = member(member(converted, "output"), "converted")
    assert member(member(fee, "arguments"), "amount") == amount
    assert "." in amount
    assert amount in reply.json["output"]["answer"]


def test_every_question_ends_well_and_every_claim_has_a_source_that_says_so(
    client: Client, house: dict[str, Any]
) -> None:
    rows = list(csv.DictReader((HOTLINE / "queries.csv").read_text(encoding="utf-8").splitlines()))
    served: set[str] = set()
    claims = 0
    for row in rows:
        reply = call(client, row["text"], row["customer"])
        assert reply.json["status"] == "SUCCEEDED", reply.text
        assert reply.json["output"]["answer"]
        trajectory = told(client, reply)
        served |= {json.loads(one)["component"] for one in elements(member(trajectory, "calls"))}
        claims += check_claims(trajectory)
    assert served == {*PYTHON, "ledger", "cards", "rates"}
    assert claims > len(rows)


def check_claims(trajectory: str) -> int:
    """Each source resolves in the settled calls, and the first holds the claim's value."""
    settled = {json.loads(member(row, "call_id")): row for row in executed(trajectory)}
    claims = elements(member(trajectory, "claims") or "[]")
    for claim in claims:
        found = [resolved(pointer, settled) for pointer in json.loads(claim)["sources"]]
        assert found, claim
        assert found[0] == member(claim, "value"), claim
    return len(claims)


def resolved(pointer: str, settled: dict[str, str]) -> str:
    """The text at a JSON Pointer into `{calls: {<call_id>: its settled attempt}}`."""
    _, calls, call_id, *path = pointer.split("/")
    assert calls == "calls"
    text = settled[call_id]
    for part in path:
        text = member(text, part)
        assert text, pointer
    return text


def test_the_second_plan_is_changed_by_what_the_first_session_remembered(
    client: Client, house: dict[str, Any]
) -> None:
    def card_asked_about() -> str:
        session = call(client, "The contactless chip stopped working", "cleo").json["session_id"]
        (goal,) = client.trajectory(session)["plan"][-1]["plan"]["sub_goals"]
        found: str = goal["arguments"]["card"]
        return found

    before = card_asked_about()
    assert card_asked_about() == before
    lost = call(client, "I lost my card somewhere in town", "cleo").json["session_id"]
    replaced = client.trajectory(lost)["calls"]
    (new,) = [row["output"]["card"] for row in replaced if row.get("action") == "cards.replace"]
    assert card_asked_about() == new != before
    assert call(client, "The contactless chip stopped working", "ben").json["output"]["answer"]


def test_a_component_that_dies_takes_no_question_with_it(
    serve: Callable[[], Served], start_components: Start, needs: Callable[[str], Path]
) -> None:
    needs("javac"), needs("java")
    started = start_components(*PYTHON, "cards")
    with Client(serve().url) as client:
        for one in started.values():
            client.register(one["url"], transport=one["transport"])
        client.put_workflow(hotline())
        os.kill(started["cards"]["pid"], signal.SIGKILL)
        reply = call(client, "I lost my card somewhere in town", "ada")
        view = reply.json
        assert view["status"] == "SUCCEEDED", reply.text
        assert view["output"]["handover"] is True
        rows = [
            row for row in client.trajectory(view["session_id"])["calls"] if row["step"] == "act"
        ]
        assert rows
        assert all("error" in row for row in rows)
