"""Dashboards are what Grafana takes, and names in them, alerts, docs and code are the same ones."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

import tidy
from gateway.telemetry.metrics import LOOPS
from gateway.tests.e2e.client import Client
from gateway.tests.observing import boards
from gateway.tests.observing.boards import DEPLOY
from gateway.tests.served import Served

ROOT = DEPLOY.parent
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
NO_METRICS = {
    *("acp_contract_check", "acp_spec", "acp_versions"),
    # what `acp insight signals` writes for the textfile collector; no gateway serves them
    *("acp_records_success_rate", "acp_records_contribution_variance"),
}
COLUMNS = 24
LOOP_NAMED = re.compile(r'(?:loop=|loop_failed\(|^LOOP\b[^=\n]*= )"([^"]+)"', re.MULTILINE)
DASHBOARDS = boards.dashboards()


@pytest.mark.parametrize("name", DASHBOARDS)
def test_grafanas_own_types_know_every_field(name: str) -> None:
    """What its types do not know they leave out when they write it again."""
    register_default_plugins()
    read = Dashboard.from_json(DASHBOARDS[name])
    again = json.loads(JSONEncoder().encode(read))
    assert lost(DASHBOARDS[name], again, at=name) == []


def lost(ours: Any, theirs: Any, *, at: str) -> list[str]:
    """Where the second is not as the first, by path."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        gone = [f"{at}/{key}" for key in ours if key not in theirs]
        kept = [key for key in ours if key in theirs]
        return gone + [
            one for key in kept for one in lost(ours[key], theirs[key], at=f"{at}/{key}")
        ]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [one for n, (a, b) in pairs for one in lost(a, b, at=f"{at}/{n}")]
    return [] if ours == theirs else [at]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_asks_only_the_datasource_that_is_chosen(name: str) -> None:
    found = DASHBOARDS[name]
    first = boards.variables(found)[0]
    assert (first["name"], first["type"], first["query"]) == (
        "datasource",
        "datasource",
        "prometheus",
    )
    for panel in boards.panels(found):
        assert panel["datasource"] == DATASOURCE, panel["title"]
        assert all(target["datasource"] == DATASOURCE for target in panel["targets"])
    for variable in boards.variables(found)[1:]:
        assert variable["datasource"] == DATASOURCE, variable["name"]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_have_ids_of_their_own_and_do_not_lie_on_each_other(name: str) -> None:
    everything = DASHBOARDS[name]["panels"]
    assert max(Counter(panel["id"] for panel in everything).values()) == 1
    taken: Counter[tuple[int, int]] = Counter()
    for panel in everything:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= COLUMNS, panel["title"]
        rows = range(place["y"], place["y"] + place["h"])
        columns = range(place["x"], place["x"] + place["w"])
        taken.update((x, y) for x in columns for y in rows)
    assert max(taken.values()) == 1


@pytest.mark.parametrize("name", DASHBOARDS)
def test_every_variable_in_a_query_is_one_of_the_dashboard(name: str) -> None:
    known = {variable["name"] for variable in boards.variables(DASHBOARDS[name])}
    for panel in boards.panels(DASHBOARDS[name]):
        for target in panel["targets"]:
            text = target["expr"]
            for built_in in boards.BUILT_IN:
                text = text.replace(built_in, "")
            used = {braced or bare for braced, bare in boards.VARIABLE.findall(text)}
            assert used <= known, panel["title"]


def test_dashboards_are_told_apart() -> None:
    uids = Counter(found["uid"] for found in DASHBOARDS.values())
    assert max(uids.values()) == 1
    assert set(DASHBOARDS) == {
        *("overview.json", "components.json", "governance.json"),
        *("records.json", "rollouts.json"),
    }


def test_the_table_has_every_metric_of_a_gateway_and_no_other(
    serve: Callable[..., Served],
) -> None:
    with Client(serve().url) as client:
        page = client.get("/metrics").text
    told = dict(re.findall(r"^# TYPE (\w+) (\w+)$", page, re.MULTILINE))
    table = {name: kind for name, (kind, _) in boards.documented().items()}
    new = {name: kind for name, kind in told.items() if table.get(name) != kind}
    assert new == {}, (
        "give each a row in docs/metrics.md (type and labels as in the code) and a panel"
    )
    assert set(table) - set(told) == set(), "docs/metrics.md has rows of what no gateway has"


def test_dashboards_and_alerts_ask_for_metrics_of_the_table_with_their_labels() -> None:
    table = boards.documented()
    selector = re.compile(r"\b(acp_\w+)\{([^}]*)\}")
    for query in [*boards.of_panels(), *boards.of_alerts(), *(q for q, _ in boards.of_variables())]:
        assert query.metrics <= set(table), query.where
        for name, matchers in selector.findall(query.text):
            used = set(re.findall(r"(\w+)(?:=~|!~|!=|=)", matchers))
            allowed = {*table[boards.family(name)][1], "instance", "job"}
            assert used <= allowed, query.where


def test_every_metric_is_on_a_dashboard() -> None:
    shown = {name for query in boards.of_panels() for name in query.metrics}
    assert set(boards.documented()) - shown == set(), "give it a panel, or a line of one"


def test_every_metric_that_a_page_names_is_there() -> None:
    table = set(boards.documented()) | NO_METRICS
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", DEPLOY / "README.md"]
    for page in pages:
        named = {boards.family(one) for one in re.findall(r"\bacp_[a-z_]+\b", page.read_text())}
        unknown = {one for one in named if one not in table and f"{one}_total" not in table}
        assert unknown == set(), page.name


def test_every_loop_that_may_fail_is_counted_from_the_start() -> None:
    """`increase` does not see a first failure whose series begins with it."""
    named: set[str] = set()
    for source in tidy.read_tree(ROOT):
        if source.path.startswith("gateway/") and not source.is_test:
            named |= set(LOOP_NAMED.findall(source.text))
    assert named == set(LOOPS)


def test_prometheus_takes_the_configuration(needs: Callable[[str], Path]) -> None:
    command: list[str | Path] = [
        needs("promtool"),
        "check",
        "config",
        "--syntax-only",
        "prometheus.yaml",
    ]
    done = subprocess.run(
        command, cwd=DEPLOY / "prometheus", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = yaml.safe_load((DEPLOY / "prometheus/prometheus.yaml").read_text())
    assert (DEPLOY / "prometheus" / found["rule_files"][0]).resolve().exists()


def test_grafana_is_told_where_traces_and_dashboards_are() -> None:
    (source,) = yaml.safe_load((DEPLOY / "grafana/datasources.yaml").read_text())["datasources"]
    (link,) = source["jsonData"]["exemplarTraceIdDestinations"]
    assert link["name"] == "trace_id", "the label of the exemplars"
    (provider,) = yaml.safe_load((DEPLOY / "grafana/dashboards.yaml").read_text())["providers"]
    assert provider["type"] == "file"
