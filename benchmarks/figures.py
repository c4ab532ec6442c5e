"""Figures of a bench: their targets, their medians, the printed table and the file of results.

`TARGETS` is the promise, in one place; a figure without a target is told for comparison only.
"""

import datetime
import json
import os
import platform
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

RESULTS = Path(__file__).parent / "results"


class Target(NamedTuple):
    """`value` is the least that is promised, or the most where `at_most`."""

    value: float
    at_most: bool = False

    def met_by(self, value: float) -> bool:
        return value < self.value if self.at_most else value >= self.value

    def __str__(self) -> str:
        return f"{'<' if self.at_most else '>='} {self.value:g}"


def _below(value: float) -> Target:
    return Target(value, at_most=True)


TARGETS = {
    "open, 64 connections: rate": Target(5_000),
    "open, 64 connections: p50": _below(10),
    "open, 64 connections: p99": _below(30),
    "four calls, http, 20 in flight: rate": Target(1_000),
    "four calls, http, 64 in flight: rate": Target(1_200),
    "four calls, attach, 20 in flight: rate": Target(1_200),
    "four calls, attach, 64 in flight: rate": Target(1_500),
    "four calls, grpc, 20 in flight: rate": Target(400),
    "four calls, grpc, 64 in flight: rate": Target(400),
    "four calls, http, one at a time: p50": _below(6),
    "manual step, without the sync: added p50": _below(0.6),
    "5,000 sessions open: memory": _below(600),
    "5,000 sessions open: state read p95": _below(5),
    "1,000 to 100,000 stored sessions: rate kept": Target(85),
    "idle gateway: memory": _below(120),
    "idle gateway: ready after": _below(1.5),
    "peers, 20 in flight: ours over the best": Target(6),
    "peers, 64 in flight: ours over the best": Target(6),
}


class Sample(NamedTuple):
    """What one run of a row gave under one name."""

    name: str
    value: float
    unit: str


@dataclass(slots=True)
class _Runs:
    unit: str
    values: list[float] = field(default_factory=list)
    before: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)


class Figures:
    """All samples of a run; the figure under a name is their median."""

    def __init__(self) -> None:
        self._runs: dict[str, _Runs] = {}

    def add(self, samples: Iterable[Sample], *, load: tuple[float, float]) -> None:
        """Samples of one row, with the load average before and after it."""
        for sample in samples:
            runs = self._runs.setdefault(sample.name, _Runs(sample.unit))
            runs.values.append(sample.value)
            runs.before.append(load[0])
            runs.after.append(load[1])

    def rows(self) -> list[dict[str, object]]:
        """One row per figure: the median, and the load around every run of it."""
        return [_row(name, runs) for name, runs in self._runs.items()]


def _row(name: str, runs: _Runs) -> dict[str, object]:
    value, target = statistics.median(runs.values), TARGETS.get(name)
    return {
        "name": name,
        "value": round(value, 3),
        "unit": runs.unit,
        "target": str(target) if target else None,
        "met": target.met_by(value) if target else None,
        "load": {"before": runs.before, "after": runs.after},
    }


def load_now() -> float:
    """The load average of the last minute."""
    return round(os.getloadavg()[0], 2)


def machine(note: str) -> list[dict[str, object]]:
    """What the figures were measured on, in the form of figures."""
    cpu = "unknown CPU"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
    memory_gb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    facts = {
        "machine": f"{platform.system()} {platform.release()}, {memory_gb:.0f} GB",
        "cpu": f"{cpu}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "measured": note,
    }
    load = load_now()
    return [
        {"name": name, "value": text, "unit": "text", "target": None, "met": None, "load": load}
        for name, text in facts.items()
    ]


def write(rows: list[dict[str, object]], *, suffix: str = "", to: Path | None = None) -> Path:
    """Write the file of results; a second run of a day replaces the first."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    path = to or RESULTS / f"{today}{suffix}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(f" {json.dumps(row)}" for row in rows)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return path


def table(rows: list[dict[str, object]]) -> str:
    """The rows as text for a person."""
    cells = [_cells(row) for row in rows]
    width = max(len(line[0]) for line in cells)
    return "\n".join(f"{name:<{width}}  {value:>24}  {verdict}" for name, value, verdict in cells)


def _cells(row: dict[str, object]) -> tuple[str, str, str]:
    value, target = row["value"], row["target"]
    shown = str(value) if row["unit"] == "text" else f"{value:,} {row['unit']}"
    verdict = f"{'met   ' if row['met'] else 'MISSED'} ({target})" if target else ""
    return str(row["name"]), shown, verdict
