"""A real Prometheus with the configuration of `deploy/`, scraping a gateway of the test."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml

from acp_spec.sdk.kept_ports import KeptPorts
from gateway.tests.observing.boards import DEPLOY
from gateway.tests.observing.receiver import LOCAL, until

SCRAPE_EVERY = "250ms"
ASK_S = 30.0
STOP_S = 20.0


class Refused(Exception):
    """Prometheus did not take the query."""


@dataclass(frozen=True, slots=True)
class Prometheus:
    """`ask` takes PromQL; the answers are Prometheus' own JSON."""

    url: str

    def ask(self, query: str) -> list[dict[str, Any]]:
        """The result of an instant query."""
        found: list[dict[str, Any]] = self._get("query", query=query)["result"]
        return found

    def exemplars(self, query: str) -> list[dict[str, Any]]:
        """Exemplars of the series that a query names, of the last hour."""
        found: list[dict[str, Any]] = self._get(
            "query_exemplars", query=query, start="0", end="4102444800"
        )
        return found

    def rules(self) -> list[dict[str, Any]]:
        """The alerts as they stand."""
        groups: list[dict[str, Any]] = self._get("rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def is_ready(self) -> bool:
        try:
            with urlopen(f"{self.url}/-/ready", timeout=ASK_S) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def wait_for(self, query: str, value: float) -> None:
        """Until a sum has come to that value, and two more scrapes behind it are in."""
        until(lambda: sum(float(one["value"][1]) for one in self.ask(query)) >= value)
        seen = self._scrapes()
        until(lambda: self._scrapes() >= seen + 2)

    def _scrapes(self) -> int:
        return sum(int(one["value"][1]) for one in self.ask("count_over_time(up[1h])"))

    def _get(self, what: str, **query: str) -> Any:
        try:
            with urlopen(f"{self.url}/api/v1/{what}?{urlencode(query)}", timeout=ASK_S) as answer:
                body = json.load(answer)
        except OSError as failed:
            raise Refused(f"{query.get('query')}: {failed}") from failed
        assert body["status"] == "success", body
        return body["data"]


@contextmanager
def scraping(program: Path, target: str, *, folder: Path) -> Iterator[Prometheus]:
    """A Prometheus that scrapes `target` and evaluates the alerts until the end of the block."""
    config = folder / "prometheus.yaml"
    config.write_text(yaml.safe_dump(_config(target)), encoding="utf-8")
    with KeptPorts() as ports, (folder / "log").open("wb") as log:
        listen = f"{LOCAL}:{ports.take()}"
        command: list[str | Path] = [
            *(program, f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}"),
            *(f"--web.listen-address={listen}", "--enable-feature=exemplar-storage"),
        ]
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        one = Prometheus(f"http://{listen}")
        try:
            until(one.is_ready)
            yield one
        finally:
            process.terminate()
            process.wait(STOP_S)


def _config(target: str) -> dict[str, Any]:
    """The one that is shipped, but for where, how often, and the token: this gateway wants none."""
    path = DEPLOY / "prometheus/prometheus.yaml"
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    found["global"] = {"scrape_interval": SCRAPE_EVERY, "evaluation_interval": "1s"}
    found["rule_files"] = [str((path.parent / name).resolve()) for name in found["rule_files"]]
    (job,) = found["scrape_configs"]
    job["static_configs"] = [{"targets": [target]}]
    del job["authorization"]
    return found
