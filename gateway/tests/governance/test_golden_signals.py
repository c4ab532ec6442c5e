"""The golden signals of a real gateway: what it counted, and what its records say afterwards."""

import json
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from gateway.cli.insight import app
from gateway.tests.e2e.client import Client
from gateway.tests.governance.desk import desk, failing, good
from gateway.tests.served import serve_gateway

CALLERS = 6


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
