"""The promised share of wrong values holds, and the bench prints its figures as promised."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
WRONG_MOST = 0.02
PROMISED = ("exact", "folded", "synonym", "nearest", "refused", "wrong")


def test_under_two_percent_of_the_values_come_out_wrong(data_file: Callable[[str], Path]) -> None:
    data_file("banking77/categories.json")
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "bench_semantics.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["half"] == "measure"
    assert figures["wrong"] < WRONG_MOST
    assert abs(sum(figures[name] for name in PROMISED) - 1.0) < 0.001
    assert figures["by_kind"]["exact"] == {"exact": figures["by_kind"]["exact"]["exact"]}
    assert set(figures["by_kind"]["spelling"]) <= {"exact", "folded"}
