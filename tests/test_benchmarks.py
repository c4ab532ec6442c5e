"""The bench itself works: every row measures something, and the file of results has its form."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
KEYS = {"name", "value", "unit", "target", "met", "load"}
EVERY_ROW_S_MAX = 600


@pytest.mark.long
def test_every_row_of_the_bench_measures_something_and_tells_it_in_the_agreed_form(
    tmp_path: Path,
) -> None:
    rows = _bench("benchmarks/bench.py", tmp_path / "results.json")
    names = [str(row["name"]) for row in rows]
    assert len(set(names)) == len(names)
    told = {name.partition(":")[0].partition(",")[0] for name in names}
    assert {"machine", "cpu", "open", "four calls", "manual step", "idle gateway"} <= told
    assert {"100 sessions open", "20 to 200 stored sessions", "cost of a session"} <= told
    assert any(row["target"] for row in rows)
    for row in rows:
        assert set(row) == KEYS
        assert (row["target"] is None) is (row["met"] is None)
        assert row["unit"] == "text" or isinstance(row["value"], int | float)


@pytest.mark.long
def test_the_peers_that_can_be_had_do_the_same_job_and_one_that_cannot_is_skipped(
    tmp_path: Path,
) -> None:
    rows = _bench("benchmarks/bench_peers.py", tmp_path / "results.json")
    names = [str(row["name"]) for row in rows]
    assert "acp, 20 in flight: rate" in names
    assert "acp, 64 in flight: rate" in names
    assert all(set(row) == KEYS for row in rows)


def _bench(script: str, out: Path) -> list[dict[str, object]]:
    command = [sys.executable, str(ROOT / script), "--quick", "--out", str(out)]
    done = subprocess.run(command, check=False, capture_output=True, timeout=EVERY_ROW_S_MAX)
    assert done.returncode == 0, done.stderr.decode()
    rows: list[dict[str, object]] = json.loads(out.read_text(encoding="utf-8"))
    return rows
