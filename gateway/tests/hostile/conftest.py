"""Real processes to be attacked: a gateway, and a component that serves with the SDK.

One of each per module. When a module's tests have ended both must still be alive, hold little
memory, have logged no failure of their own, and stop when they are told to.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from acp_spec.bindings.routes import GATEWAY
from acp_spec.model import gateway_calls as calls
from acp_spec.model.session import RegisterRequest
from gateway.tests.asking import Asker
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import Stranger, serving
from gateway.tests.processes import peak_rss_mib
from gateway.tests.served import Served, serve_gateway

# An idle gateway takes 100 MiB; what a module throws at it may cost buffers, never what it says.
PEAK_MIB_MAX = 400.0
STOP_S_MAX = 20.0
# What is logged when something failed that nobody expected: our own fault, whoever caused it.
OWN_FAILURES = ("request_failed", "loop_survived", "Traceback")

WORKFLOW = """
workflow: plain
version: 1.0.0
steps:
  - {name: act, role: execute, component: echo, action: echo, input_mapping: {x: input}}
output: act.output
"""


@dataclass(frozen=True, slots=True)
class Target:
    """A process under attack, on both of its ports."""

    name: str
    http: str
    grpc: str
    pid: int
    log_file: Path
    probe: str

    def asker(self) -> Asker:
        return Asker(http=self.http, grpc_address=self.grpc)

    def assert_well(self) -> None:
        """Alive on both bindings, within its memory, and without a failure of its own."""
        with self.asker() as asker:
            assert asker.is_alive(self.probe), f"{self.name} does not answer"
        assert peak_rss_mib(self.pid) < PEAK_MIB_MAX, f"{self.name} took too much memory"
        log = self.log_file.read_text(encoding="utf-8", errors="replace")
        for sign in OWN_FAILURES:
            assert sign not in log, log[max(0, log.index(sign) - 300) :][:3000]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway with the defaults: tokens off, on loopback."""
    folder = tmp_path_factory.mktemp("gateway")
    one = serve_gateway(data_dir=folder / "data", log_file=folder / "gateway.log", environ={})
    yield one
    assert one.stop() == 0


@pytest.fixture(scope="module")
def gateway(served: Served) -> Iterator[Target]:
    one = Target("gateway", served.http, served.grpc, served.pid, served.log_file, "/readyz")
    yield one
    one.assert_well()


@pytest.fixture(scope="module")
def echo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """The echo component: an SDK server in a process of its own."""
    log_file = tmp_path_factory.mktemp("echo") / "echo.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "reference_components.echo"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, "ACP_PORT": "0", "ACP_GRPC_PORT": "0"},
        )
    assert process.stdout is not None
    ready = json.loads(process.stdout.readline())
    http, grpc = (ready[name].partition("//")[2] for name in ("http", "grpc"))
    one = Target("echo", http, grpc, process.pid, log_file, "/acp/v1/health")
    try:
        yield one
        one.assert_well()
    finally:
        process.terminate()
        status = process.wait(STOP_S_MAX)
        process.stdout.close()
    assert status == 0


@pytest.fixture(scope="module", params=["gateway", "echo"])
def target(request: pytest.FixtureRequest) -> Target:
    """Each of the two."""
    one: Target = request.getfixturevalue(request.param)
    return one


@pytest.fixture(scope="module")
def asker(gateway: Target) -> Iterator[Asker]:
    with gateway.asker() as one:
        yield one


@pytest.fixture(scope="module")
def client(gateway: Target) -> Iterator[Client]:
    with Client(f"http://{gateway.http}") as one:
        yield one


@pytest.fixture(scope="module")
def plain(gateway: Target, echo: Target, asker: Asker) -> str:
    """The workflow `plain`, which gives its input back through the echo component."""
    registration = RegisterRequest(url=f"http://{echo.http}", lease_seconds=3600)
    assert asker.over_http(GATEWAY["register_component"], registration).is_success
    put = calls.PutWorkflowRequest(name="plain", version="1.0.0", source=WORKFLOW)
    assert asker.over_http(GATEWAY["put_workflow"], put).is_success
    return "plain"


@pytest.fixture(scope="module")
def stranger() -> Iterator[Callable[[Stranger], Stranger]]:
    """`stranger(Stranger(card, answers))` serves it until the module's tests have ended."""
    with ExitStack() as stack:
        yield lambda one: stack.enter_context(serving(one))
