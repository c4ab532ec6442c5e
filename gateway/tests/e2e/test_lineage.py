"""Lineage of real sessions: from an id to the run, to its fellows, to what two runs differ in."""

import json
from pathlib import Path

from typer.testing import CliRunner, Result

from gateway.cli.lineage import app as lineage_command
from gateway.stores.records.tests.childhood import patiently
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.desk import desk
from gateway.tests.e2e.test_records import child_pid

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


def acp(url: str, *words: str) -> Result:
    return CliRunner().invoke(lineage_command, [*words, "--gateway", url])


def opened_in_trace(client: Client, input_text: str) -> str:
    body = f'{{"workflow":"desk","input":{input_text}}}'
    reply = client.call("POST", "/v1/sessions", body=body.encode(), traceparent=PARENT)
    assert reply.status == 201, reply.text
    session: str = reply.json["session_id"]
    client.ended(session)
    return session


def runs(client: Client, **query: str) -> list[str]:
    reply = client.get("/v1/lineage", **query)
    assert reply.status == 200, reply.text
    return [one["session_id"] for one in reply.json["sessions"]]


def test_every_id_of_a_run_leads_to_it_and_to_all_with_its_versions_and_input(
    tmp_path: Path,
) -> None:
    with desk(tmp_path) as (served, client):
        child_pid(client)  # the records are there: nobody waits for their start below
        one, two = client.open("desk", '{"a":1}'), opened_in_trace(client, '{"a":2}')
        client.ended(one)
        page = client.get(f"/v1/lineage/{two}/run").json
        assert page["trace"] == {"trace_id": TRACE, "traceparent": page["trace"]["traceparent"]}
        assert page["work"] == [
            {"work": "step:act", "intended": "clerk@1.0.0", "served": ["clerk@1.0.0"]}
        ]
        assert page["logs"]["file"] == str(served.log_file)
        call = page["calls"][0]["call_id"]
        for name in (two, page["head"]["lineage_id"], TRACE, call):
            assert runs(client, id=name) == [two]
            shown = acp(served.url, name)
            assert shown.exit_code == 0, shown.output
            assert two in shown.stdout
            assert json.loads(acp(served.url, name, "--json").stdout) == page
        assert runs(client, component="clerk@1.0.0") == [two, one]
        assert runs(client, component="clerk@1.0.0", input_sha256=_input(client, one)) == [one]
        listed = acp(served.url, "--component", "clerk", "--json").stdout.splitlines()
        assert [json.loads(line)["session_id"] for line in listed] == [two, one]
        differing = json.loads(acp(served.url, two, "--against", one, "--json").stdout)
        assert {"subject": "INPUT", "at": "/a", "left": "2", "right": "1"} in differing[
            "differences"
        ]
        assert "/a" in acp(served.url, two, "--against", one).stdout
        nothing = acp(served.url, one, "--against", one)
        assert (nothing.exit_code, "differ in nothing" in nothing.stderr) == (0, True)


def _input(client: Client, session: str) -> str:
    found: str = client.get(f"/v1/lineage/{session}/run").json["head"]["input_sha256"]
    return found


def test_what_has_left_memory_is_found_in_the_records_also_after_a_restart(tmp_path: Path) -> None:
    with desk(tmp_path) as (_, client):
        one = opened_in_trace(client, "1")
        call = client.get(f"/v1/lineage/{one}/run").json["calls"][0]["call_id"]
    with desk(tmp_path) as (_, client):  # the next gateway has no session in memory
        for query in ({"id": TRACE}, {"id": call}, {"component": "clerk@1.0.0"}):
            for _ in patiently():
                if runs(client, **query) == [one]:
                    break
        reply = client.get("/v1/lineage", component="clerk@1.0.0").json
        assert reply["sessions"][0]["served"] == ["clerk@1.0.0"]
        assert "only_memory" not in reply
        client.delete(f"/v1/sessions/{one}")
        for _ in patiently():
            if runs(client, id=TRACE) == []:
                break
        assert client.get(f"/v1/lineage/{one}/run").status == 404


def test_what_cannot_be_asked_or_is_not_there_says_so(tmp_path: Path) -> None:
    with desk(tmp_path) as (served, client):
        child_pid(client)
        for query, why in (
            ({}, "have in common"),
            ({"component": "clerk", "since": "soon"}, "since"),
            ({"component": "clerk", "limit": "501"}, "limit"),
            ({"component": "clerk", "colour": "red"}, "no such parameter"),
            ({"input_sha256": "0"}, "64 hexadecimal"),
        ):
            reply = client.get("/v1/lineage", **query)
            assert (reply.status, why in reply.message) == (400, True), reply.text
        assert client.get("/v1/lineage/nothing/run").status == 404
        for words, code in (
            ((), 2),
            (("01ARZ3NDEKTSV4RRFFQ69G5FAV", "--component", "x"), 2),
            (("--against", "01ARZ3NDEKTSV4RRFFQ69G5FAV"), 2),
            (("01ARZ3NDEKTSV4RRFFQ69G5FAV",), 3),
            (("0" * 32,), 3),
        ):
            assert acp(served.url, *words).exit_code == code, words
