"""What all tests share: the tools a test needs, the data sets, free ports, a real gateway process.

A missing tool or data set is a failure in CI and a skip that names its package elsewhere; the list
of skips closes every run, so that nobody mistakes a thin run for a whole one.
"""

import gc
import logging
import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import hypothesis
import pytest

from acp_spec.sdk.kept_ports import KeptPorts
from gateway.tests.served import Served, serve_gateway

# tool -> Debian package; every tool a test may ask for stands here
PACKAGES = {
    "cc": "gcc",
    "chromium": "chromium",
    "cobc": "gnucobol",
    "curl": "curl",
    "go": "golang-go",
    "java": "default-jre-headless",
    "javac": "default-jdk-headless",
    "make": "make",
    "node": "nodejs",
    "npm": "npm",
    "prometheus": "prometheus",
    "promtool": "prometheus",
    "strace": "strace",
    "systemd-analyze": "systemd",
}

# A run started in the background of a shell ignores Ctrl-C, and so would every process it starts:
# tests that interrupt would then wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline per example: two cores are shared with real servers, a slow example proves nothing.
# In CI every run draws the same examples: what one run refuses the next one must refuse, too.
# hypothesis does so by itself where it sees a CI, and this says it where it sees none.
CI = os.environ.get("CI", "").lower() == "true"
hypothesis.settings.register_profile("house", deadline=None, derandomize=CI)
hypothesis.settings.load_profile("house")


@pytest.fixture(autouse=True)
def _logging_stays_as_it_was() -> Iterator[None]:
    """A test that left logging off would blind whichever test comes after it in that process."""
    root = logging.getLogger()
    before = root.level, root.manager.disable
    yield
    found = root.level, root.manager.disable
    root.setLevel(before[0])
    logging.disable(before[1])
    assert found == before, f"the test left logging at (level, disabled below) {found}"


def is_ci() -> bool:
    """True where everything must be installed."""
    return CI


def skip_or_fail(message: str) -> NoReturn:
    """Fail in CI, where nothing may be missing; skip elsewhere."""
    if is_ci():
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="session")
def needs() -> Callable[[str], Path]:
    """`needs("cobc")` gives the tool's path, or skips (in CI: fails) naming the package."""

    def find(tool: str) -> Path:
        package = PACKAGES[tool]
        found = shutil.which(tool)
        if found is None:
            skip_or_fail(f"needs {tool}: apt-get install {package}")
        return Path(found)

    return find


@pytest.fixture(scope="session")
def data_file() -> Callable[[str], Path]:
    """`data_file("banking77/test.csv")` gives a path below ACP_DATA, or skips (in CI: fails)."""

    def find(relative: str) -> Path:
        root = os.environ.get("ACP_DATA", "")
        path = Path(root) / relative
        if not root or not path.exists():
            skip_or_fail(f"needs the data file {relative}: set ACP_DATA, see docs/data.md")
        return path

    return find


@pytest.fixture(scope="session")
def in_cpu_s() -> Callable[..., object]:
    """`in_cpu_s(0.5, work, *given)` gives what `work` returns, and fails where that takes longer.

    The best of three counts: what always takes long does so every time, a busy machine does not.
    Without the cyclic collector, whose time depends on what other tests left behind. For bounds
    that keep the gateway from being held up by one request, far above what the work takes.
    """

    def bounded(limit_s: float, work: Callable[..., object], *given: object) -> object:
        best = float("inf")
        for _ in range(3):
            gc.disable()
            began = time.process_time()
            try:
                returned = work(*given)
            finally:
                best = min(best, time.process_time() - began)
                gc.enable()
            if best < limit_s:
                return returned
        pytest.fail(f"{best:.2f} s of CPU time; at most {limit_s} s")

    return bounded


@pytest.fixture
def free_port() -> Iterator[Callable[[], int]]:
    """Gives ports that nobody else is given while the test runs, whether it listens there or not.

    Prefer port 0 wherever a program takes it and is not started again at the same place.
    """
    with KeptPorts() as ports:
        yield ports.take


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """`serve(*flags, data_dir=..., environ=...)` starts a real `acp serve` on free ports.

    Returns once the gateway said it is ready; whatever still runs at the end is stopped. Calling it
    again with the same `data_dir` (default: one folder per test) is a restart.
    """
    started: list[Served] = []

    def start(
        *flags: str, data_dir: Path | None = None, environ: dict[str, str] | None = None
    ) -> Served:
        folder = data_dir if data_dir is not None else tmp_path / "data"
        log_file = tmp_path / f"gateway-{len(started)}.log"
        served = serve_gateway(*flags, data_dir=folder, log_file=log_file, environ=environ or {})
        started.append(served)
        return served

    yield start
    for served in started:
        served.stop()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Close the run with what was not run, and why."""
    reasons = Counter(
        str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        for report in terminalreporter.stats.get("skipped", [])
    )
    terminalreporter.section("skips")
    for reason, count in sorted(reasons.items()):
        terminalreporter.line(f"{count:4d} x {reason.removeprefix('Skipped: ')}")
    if not reasons:
        terminalreporter.line("nothing was skipped")
