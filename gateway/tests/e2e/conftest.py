"""Real processes for end-to-end tests: one gateway per module, components by their own launcher.

The gateway knows no component, so components are started as anyone would: by a command.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import pytest

from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import Stranger, serving
from gateway.tests.served import Served, serve_gateway

START_SECONDS_MAX = 120.0
STOP_SECONDS_MAX = 20.0
Started = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One gateway for all tests of a module."""
    folder = tmp_path_factory.mktemp("gateway")
    gateway = serve_gateway(data_dir=folder / "data", log_file=folder / "gateway.log", environ={})
    yield gateway
    gateway.stop()


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[Client]:
    with Client(served.url) as one:
        yield one


@pytest.fixture(scope="module")
def start_components(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[..., Started]]:
    """`start_components("echo", "slow")` starts them; each by name with `url`, `transport`, `pid`.

    They run in one launcher process, which stops them when its standard input ends.
    """
    launchers: list[subprocess.Popen[bytes]] = []

    def start(*names: str) -> Started:
        logs = tmp_path_factory.mktemp("components")
        command = [sys.executable, "-m", "reference_components", *names, "--logs", str(logs)]
        launcher = subprocess.Popen(
            [*command, "--until-stdin-ends"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        launchers.append(launcher)
        assert launcher.stdout is not None
        return {one["name"]: one for one in _until_ready(launcher.stdout)}

    yield start
    for launcher in launchers:
        assert launcher.stdin is not None
        assert launcher.stdout is not None
        launcher.stdin.close()
        launcher.wait(STOP_SECONDS_MAX)
        launcher.stdout.close()


def _until_ready(lines: IO[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        said = json.loads(line)
        if said.get("ready"):
            return
        if "url" in said:
            yield said
    raise AssertionError("the components did not get ready; see what was printed")


@pytest.fixture(scope="module")
def stranger() -> Iterator[Callable[[Stranger], Stranger]]:
    """`stranger(Stranger(card, answers))` serves it until the module's tests have ended."""
    with ExitStack() as stack:
        yield lambda one: stack.enter_context(serving(one))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of this test's own gateway, over its restarts."""
    return tmp_path / "data"
