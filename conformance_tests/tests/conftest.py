"""The reference components, started once as the processes anybody would start."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Start = Callable[[str], tuple[str, ...]]


@pytest.fixture(scope="module")
def start_component(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """`start_component(name)` gives every URL that it serves; it is stopped with the module."""
    started: list[subprocess.Popen[str]] = []

    def start(name: str) -> tuple[str, ...]:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "reference_components", name),
                *("--logs", str(tmp_path_factory.mktemp(name)), "--until-stdin-ends"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        for line in process.stdout:
            said = json.loads(line)
            if said.get("name") == name:
                return (said["url"], *_over_grpc(Path(said["log"])))
        raise AssertionError(f"{name} did not start")

    yield start
    for process in started:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(30)


def _over_grpc(log: Path) -> list[str]:
    """Components of the Python SDK serve gRPC too and say where in their first line."""
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith('{"ready"'):
            return [json.loads(line)["grpc"]]
    return []
