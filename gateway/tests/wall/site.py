"""Where a scenario plays: a real gateway, component processes, a proxy in front of each."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from acp_spec.sdk.kept_ports import KeptPorts
from gateway.tests.e2e.client import Client, Gone
from gateway.tests.faults.town import Town
from gateway.tests.served import Served, serve_gateway
from gateway.tests.wall.fault_proxy import FaultProxy, proxying

TIMEOUT_MS, DEADLINE_MS = 400, 6_000
PATIENT_TIMEOUT_MS, PATIENT_DEADLINE_MS = 15_000, 60_000
"""Of components whose fault must cost no call: no busy machine makes one too late."""
STOP_S = 10.0
ENVIRON = {
    "ACP_LEASES_PROBE_INTERVAL_MS": "1000",
    "ACP_GRACE_CANCEL_GRACE_MS": "1000",
    "ACP_GRACE_PIN_GRACE_MS": "500",
    "ACP_GRACE_ATTACH_GRACE_MS": "500",
    "ACP_GOVERNANCE_ENABLED": "false",  # a breaker would spare the component most of the fault
}
WORKFLOW = """
workflow: {name}
version: 1.0.0
steps:
  - {{name: look, role: execute, component: {name}, action: look, on_error: continue}}
  - {{name: keyed, role: execute, component: {name}, action: keyed, on_error: continue}}
  - {{name: once, role: execute, component: {name}, action: once, on_error: continue}}
output: once.status
limits: {{deadline_ms: {deadline_ms}}}
recovery: {{policy: backoff, base_ms: 5, max_ms: 60}}
"""


@dataclass
class Place:
    """One component process and its log."""

    name: str
    log: Path
    process: subprocess.Popen[str]
    url: str
    timeout_ms: int
    deadline_ms: int

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(STOP_S)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.process.pid, number)

    def again(self) -> None:
        """Start it again where it was, with the log it left."""
        port = self.url.rpartition(":")[2]
        self.process, _ = _start(self.name, self.log, port=port, timeout_ms=self.timeout_ms)


@dataclass
class Site:
    """A gateway over its lives, and everything around it."""

    folder: Path
    town: Town
    gateway: Served
    places: dict[str, Place] = field(default_factory=dict)
    proxies: dict[str, FaultProxy] = field(default_factory=dict)
    ports: KeptPorts = field(default_factory=KeptPorts)
    """Of the components: a killed one comes back where it was."""
    away_ms: float = 0.0
    """For how long there was no gateway that could have ended anything."""

    def client(self) -> Client:
        return Client(self.gateway.url)

    def settle(self, name: str, *, is_patient: bool = False) -> FaultProxy:
        """A component behind a proxy, registered, with its workflow."""
        log, port = self.folder / f"{name}.log", str(self.ports.take())
        timeout_ms = PATIENT_TIMEOUT_MS if is_patient else TIMEOUT_MS
        deadline_ms = PATIENT_DEADLINE_MS if is_patient else DEADLINE_MS
        process, url = _start(name, log, port=port, timeout_ms=timeout_ms)
        self.places[name] = Place(name, log, process, url, timeout_ms, deadline_ms)
        proxy = self.proxies[name] = self.town.stay(proxying(url))
        with self.client() as client:
            client.register(proxy.url)
            client.put_workflow(WORKFLOW.format(name=name, deadline_ms=deadline_ms))
        return proxy

    def kill_gateway(self) -> None:
        """SIGKILL, and a new life over the same directory."""
        with self.without_gateway():
            self.gateway.kill()
            self.gateway = start_gateway(self.folder)

    @contextmanager
    def without_gateway(self) -> Iterator[None]:
        """Meanwhile there is none, or it is stopped."""
        begun_s = monotonic()
        yield
        self.away_ms += (monotonic() - begun_s) * 1_000

    def close(self) -> None:
        for place in self.places.values():
            place.kill()
            assert place.process.stdout is not None
            place.process.stdout.close()
        self.gateway.kill()
        self.ports.close()


def start_gateway(folder: Path) -> Served:
    return serve_gateway(data_dir=folder / "data", log_file=folder / "gateway.log", environ=ENVIRON)


def open_sessions(site: Site, name: str, count: int) -> list[str]:
    """Ids of sessions that were acknowledged; a gateway that dies meanwhile opens fewer."""
    opened = []
    with site.client() as client:
        for _ in range(count):
            try:
                opened.append(client.open(name))
            except Gone:
                break
    return opened


def _start(
    name: str, log: Path, *, port: str, timeout_ms: int
) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "gateway.tests.wall.ledger"]
    command += [name, str(log), port, str(timeout_ms)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    assert url, f"the component {name} did not start"
    return process, url
