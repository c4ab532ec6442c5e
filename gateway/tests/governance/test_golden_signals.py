"""The golden signals of a real gateway: what it counted, and what its records say afterwards."""

import json
import threading
import time
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from gateway.cli.insight import app
from gateway.stores.records.tests.childhood import patiently
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import Stranger, card, serving
from gateway.tests.governance.desk import WAIT_S, desk, failing, good
from gateway.tests.served import serve_gateway

CALLERS = 6
FALLEN = 3
HANGING = 1_000
JUDGED = """
workflow: judged
version: 1.0.0
steps:
  - {name: ask, role: execute, component: signal, action: signal.advise, on_error: continue,
     input_mapping: {q: input.q}}
  - {name: judge, role: reflect, component: signal-judge}
output: ask.output
fallback: {output: '"somebody will call you"'}
"""
JUDGE = Stranger(
    card("signal-judge", "REFLECTOR"), {"reflect": lambda _: '{"verdict": "FALLBACK"}'}
)
AWAY = """
workflow: away
version: 1.0.0
limits: {deadline_ms: 2000}
steps: [{name: ask, role: execute, component: signal, action: signal.advise}]
output: ask.output
"""


def test_metrics_and_records_of_the_same_sessions_agree(tmp_path: Path) -> None:
    """Some are served, for some the adviser fails; all records are there once it has stopped."""
    data = tmp_path / "data"
    served = serve_gateway(data_dir=data, log_file=tmp_path / "log", environ={})
    try:
        with Client(served.url) as client, desk(client, "golden", by_turns) as one:
            for _ in range(2 * CALLERS):
                one.serve()
            live = counted(client.get("/metrics").text)
    finally:
        assert served.stop() == 0
    ran = CliRunner().invoke(app, ["signals", "--from", str(data), "--json"])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    assert sum(row["succeeded"] + row["failed"] for row in found["workflows"]) == 2 * CALLERS
    for row in found["workflows"]:
        for status in ("succeeded", "failed", "cancelled"):
            key = ("acp_sessions_ended_total", row["workflow"], status.upper())
            assert live.get(key, 0) == row[status], key
        assert in_bucket(live, row["workflow"], row["p95_ms"] / 1000)
    for row in found["components"]:
        assert live["acp_component_sessions_total", row["component"]] == row["sessions"]
        assert live["acp_component_fallbacks_total", row["component"]] == row["fallbacks"]
    assert {(row["succeeded"], row["failed"]) for row in found["workflows"]} == {(CALLERS, CALLERS)}
    assert {row["component"] for row in found["components"]} == {"golden", "golden-books"}


def test_metrics_and_queries_of_the_same_window_agree_whatever_went_wrong(tmp_path: Path) -> None:
    """Served, refused by the component, hanging and then cancelled, and nobody there at all."""
    asked, over = threading.Event(), threading.Event()

    def advise(question: int) -> str | tuple[int, str]:
        if question == HANGING:
            asked.set()
            over.wait(WAIT_S)
        return by_turns(question)

    began_ms = now_ms()
    served = serve_gateway(data_dir=tmp_path / "data", log_file=tmp_path / "log", environ={})
    try:
        with Client(served.url) as client:
            with desk(client, "signal", advise) as one:
                one.stack.callback(over.set)
                for _ in range(2 * CALLERS):
                    one.serve()
                session = client.open("signal", json.dumps({"q": HANGING}))
                assert asked.wait(WAIT_S)
                client.post(f"/v1/sessions/{session}/cancel")
                over.set()
                assert client.ended(session)["status"] == "CANCELLED"
                client.register(one.stack.enter_context(serving(JUDGE)).url)
                client.put_workflow(JUDGED)
                for question in range(FALLEN):
                    view = client.run("judged", json.dumps({"q": question})).json
                    assert view["fell_back"]
                client.put_workflow(AWAY)
            assert client.run("away").json["status"] == "FAILED"
            found = signals_of(client, 2 * CALLERS + FALLEN + 2, since_ms=began_ms)
            live = counted(client.get("/metrics").text)
    finally:
        assert served.stop() == 0
    agree(live, found)
    counts = {
        row["workflow"]: (row["succeeded"], row["failed"], row["cancelled"])
        for row in found["workflows"]
    }
    assert counts == {
        "signal@1.0.0": (CALLERS, CALLERS, 1),
        "judged@1.0.0": (FALLEN, 0, 0),
        "away@1.0.0": (0, 1, 0),
    }
    rates = [row["fallback_rate"] for row in found["components"]]
    assert rates == sorted(rates, reverse=True)
    worst = found["components"][0]
    assert (worst["component"], worst["fallbacks"]) == ("signal", FALLEN)


def signals_of(client: Client, ended: int, *, since_ms: int) -> Any:
    """The query's answer, once the records have all that ended.

    An answer comes from several questions at once; only one that was asked after all had come is
    of all in each of its parts.
    """
    have_come = False
    for _ in patiently():
        until_ms = now_ms() + 1_000
        length_ms = max(60_000, until_ms - since_ms)
        reply = client.get("/v1/dashboard/signals", window_ms=str(length_ms), until=str(until_ms))
        if reply.status == 503:
            continue
        assert reply.status == 200, reply.text
        rows = reply.json.get("workflows", [])
        if have_come:
            return reply.json
        counts = (row["succeeded"] + row["failed"] + row["cancelled"] for row in rows)
        have_come = sum(counts) == ended
    raise AssertionError("patience has an end")


def agree(live: dict[tuple[str, ...], float], found: Any) -> None:
    """Every count of one is that of the other, and nothing is in one alone."""
    for row in found["workflows"]:
        for status in ("succeeded", "failed", "cancelled"):
            key = ("acp_sessions_ended_total", row["workflow"], status.upper())
            assert live.get(key, 0) == row[status], key
        decided = row["succeeded"] + row["failed"]
        rate = row["succeeded"] / decided if decided else None
        assert row["success_rate"] == rate
        assert in_bucket(live, row["workflow"], row["p95_ms"] / 1000)
    counted_workflows = {key[1] for key in live if key[0] == "acp_sessions_ended_total"}
    assert counted_workflows == {row["workflow"] for row in found["workflows"]}
    for row in found["components"]:
        assert live["acp_component_sessions_total", row["component"]] == row["sessions"]
        assert live.get(("acp_component_fallbacks_total", row["component"]), 0) == row["fallbacks"]
    counted_components = {key[1] for key in live if key[0] == "acp_component_sessions_total"}
    assert counted_components == {row["component"] for row in found["components"]}


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def by_turns(question: int) -> str | tuple[int, str]:
    return failing(question) if question % 2 else good(question)


def counted(page: str) -> dict[tuple[str, ...], float]:
    return {
        (
            sample.name,
            *(sample.labels[name] for name in sorted(sample.labels, reverse=True)),
        ): float(sample.value)
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def in_bucket(live: dict[tuple[str, ...], float], workflow: str, p95_s: float) -> bool:
    """The first bucket that holds 95 of 100 is the one that the figure lies in."""
    below = sorted(
        (float(key[2]), count)
        for key, count in live.items()
        if key[0] == "acp_session_seconds_bucket" and key[1] == workflow
    )
    total = below[-1][1]
    lower = max([bound for bound, count in below if count < 0.95 * total], default=0.0)
    upper = next(bound for bound, count in below if count >= 0.95 * total)
    return lower <= p95_s <= upper
