"""What `deploy/` asks of Prometheus: every query of every panel, variable and alert.

Read out of the files; nothing here knows a panel by name: a new one is tested without being told.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[3] / "deploy"
# All of the run: what happened once in the traffic must be in the window.
WINDOW = "5m"
BUILT_IN = {"$__rate_interval": WINDOW, "$__range": WINDOW, "$__interval": WINDOW}
ALL = ".*"
METRIC = re.compile(r"\bacp_[a-z_]+")
VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
LABEL_VALUES = re.compile(r"label_values\((\w+), (\w+)\)")
COMPARED = re.compile(r"(?<=\s)(==|!=|>=|<=|>|<)(?=\s)")


@dataclass(frozen=True, slots=True)
class Query:
    """One query as Prometheus gets it, and where it stands."""

    where: str
    text: str
    exemplars: bool = False

    @property
    def metrics(self) -> set[str]:
        return {family(name) for name in METRIC.findall(self.text)}


def family(name: str) -> str:
    """The metric that a series belongs to."""
    return re.sub(r"_(bucket|sum|count)$", "", name)


def dashboards() -> dict[str, dict[str, Any]]:
    """Every dashboard by its file."""
    files = sorted((DEPLOY / "dashboards").glob("*.json"))
    return {path.name: json.loads(path.read_text(encoding="utf-8")) for path in files}


def panels(dashboard: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All panels, those in collapsed rows too; rows themselves not."""
    for panel in dashboard["panels"]:
        yield from panel.get("panels", ())
        if panel["type"] != "row":
            yield panel


def variables(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = dashboard["templating"]["list"]
    return found


def of_panels() -> list[Query]:
    """Every target of every panel, with all of each variable chosen."""
    return [
        Query(
            f"{name}: {panel['title']} {target['refId']}",
            filled(target["expr"]),
            bool(target.get("exemplar")),
        )
        for name, dashboard in dashboards().items()
        for panel in panels(dashboard)
        for target in panel["targets"]
    ]


def filled(text: str) -> str:
    """The query as Grafana sends it with every variable at All."""
    for name, value in BUILT_IN.items():
        text = text.replace(name, value)
    return VARIABLE.sub(ALL, text)


def of_variables() -> list[tuple[Query, str]]:
    """What each variable lists: the query, and the label whose values it takes."""
    found: list[tuple[Query, str]] = []
    for name, dashboard in dashboards().items():
        for variable in variables(dashboard):
            if variable["type"] == "query":
                asked = LABEL_VALUES.fullmatch(variable["query"]["query"])
                assert asked is not None, variable["query"]
                where = f"{name}: variable {variable['name']}"
                found.append((Query(where, asked[1]), asked[2]))
    return found


def of_alerts() -> list[Query]:
    """Every alert, as it is."""
    text = (DEPLOY / "alerts/acp.rules.yaml").read_text(encoding="utf-8")
    rules = [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
    return [Query(f"alert {rule['alert']}", rule["expr"]) for rule in rules]


def without_filter(alert: Query) -> Query:
    """The alert's expression with comparisons that say 0 or 1: empty only where its data is not."""
    text = re.sub(r"\{[^}]*\}", lambda found: found[0].replace(" ", ""), alert.text)
    return Query(alert.where, COMPARED.sub(r"\1 bool", text))


def documented() -> dict[str, tuple[str, tuple[str, ...]]]:
    """The table of `docs/metrics.md`: type and labels by metric."""
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    text = (DEPLOY.parent / "docs/metrics.md").read_text(encoding="utf-8")
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 4 and cells[0].startswith("`acp_"):
            labels = tuple(re.findall(r"`(\w+)`", cells[2]))
            name = cells[0].strip("`")
            assert name not in found, f"{name} stands twice"
            found[name] = (cells[1], labels)
    return found
