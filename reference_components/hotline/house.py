"""The demo's processes: a gateway, and every component of the hotline whose language is installed.

The gateway is started as anyone would start it, by its command. Leaving the block stops all of
them, also after Ctrl-C; what could not be started is told, and the others go on.
"""

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from time import monotonic

from acp_spec.bindings.errors import error
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.session import RegisterRequest
from acp_spec.sdk import gateway_questions as ask
from acp_spec.sdk.cli import Output
from acp_spec.sdk.gateway_client import GatewayClient
from acp_spec.sdk.workflow_files import with_contract
from reference_components.build import LOG_TAIL_CHARS, BuildError
from reference_components.launcher import Launcher, LaunchError, Missing, Running
from reference_components.undisturbed import undisturbed

ESSENTIAL = ("hotline-planner", "hotline-memory", "hotline-reflector")
"""Python like the gateway; without them there is no hotline."""
SKILLS = ("ledger", "cards", "rates")
GATEWAY_READY_S = 60.0  # about 2 s alone; a cold disk and busy cores were seen to need 20
GATEWAY_STOP_S = 20.0  # more than its own drain
LEASE_S = 86_400  # the gateway probes what it dials; the lease only has to outlive the demo
WORKFLOW_FILE = "hotline.yaml"
CONTRACT_FILE = "contract.yaml"


@dataclass(frozen=True, slots=True)
class Broken:
    """A component whose language is installed and which did not start all the same."""

    name: str
    why: str


@dataclass(slots=True)
class House:
    """What runs: the gateway's address and folder, the components, and who is not there."""

    url: str
    data_dir: Path
    workflow: str = ""
    running: list[Running] = field(default_factory=list)
    missing: tuple[Missing, ...] = ()
    broken: list[Broken] = field(default_factory=list)

    def has(self, *names: str) -> bool:
        """True when all of these components run."""
        return set(names) <= {one.name for one in self.running}


@contextmanager
def open_house(folder: Path, out: Output) -> Iterator[House]:
    """Start everything below `folder`; raises AcpFailure when there can be no hotline."""
    folder.mkdir(parents=True, exist_ok=True)
    launcher = Launcher(log_dir=folder / "components")
    started: list[subprocess.Popen[bytes]] = []
    try:
        with undisturbed():
            started.append(_start_gateway(folder))
        names = (*ESSENTIAL, *SKILLS)
        with out.progress("starting", total=len(names) + 1) as steps:
            house = House("", folder / "gateway", missing=_missing(launcher, names))
            for name in names:
                steps.say(_doing(launcher, name))
                _start(launcher, house, name=name)
                steps.advance()
            steps.say("starting the gateway")
            house.url = _wait_until_ready(started[0], folder)
        with GatewayClient(house.url) as client:
            _register(client, house)
        yield house
    finally:
        _stop_all(started, launcher)


def _missing(launcher: Launcher, names: tuple[str, ...]) -> tuple[Missing, ...]:
    return tuple(lack for lack in launcher.missing() if lack.name in names)


def _doing(launcher: Launcher, name: str) -> str:
    spec = launcher.spec(name)
    if launcher.is_built(name):
        return f"starting {name} ({spec.language})"
    return f"building {name} ({spec.language}), some ten seconds the first time"


def _start(launcher: Launcher, house: House, *, name: str) -> None:
    if name in {lack.name for lack in house.missing}:
        return
    try:
        house.running.append(launcher.start(name))
    except (BuildError, LaunchError) as problem:
        if name in ESSENTIAL:
            raise AcpFailure(error(Reason.UNAVAILABLE, str(problem))) from None
        house.broken.append(Broken(name, str(problem)))


def _register(client: GatewayClient, house: House) -> None:
    for stale in client.ask(ask.list_components()).components:
        # Registrations are durable: an earlier demo in this folder left those of its processes.
        client.ask(ask.remove_component(stale.component_id))
    for one in house.running:
        request = RegisterRequest(
            url=one.url, transport=one.spec.transport, lease_seconds=LEASE_S, labels={"demo": "1"}
        )
        client.ask(ask.register_component(request))
    folder = files("reference_components.hotline")
    terms = (folder / CONTRACT_FILE).read_bytes()
    source = with_contract((folder / WORKFLOW_FILE).read_text("utf-8"), terms).encode()
    checked = client.ask(ask.validate_workflow(source))
    if not checked.valid:
        told = "; ".join(f"line {one.line}: {one.message}" for one in checked.problems)
        raise AcpFailure(error(Reason.INVALID_REQUEST, f"{WORKFLOW_FILE}: {told}"))
    name, version = _named(source.decode())
    stored = client.ask(ask.put_workflow(name, version, source=source))
    house.workflow = f"{stored.name}@{stored.version}"


def _named(source: str) -> tuple[str, str]:
    """Name and version of our own file, in which each stands on a line of its own."""
    pairs = [line.partition(": ") for line in source.splitlines()]
    values = {key: value.strip() for key, _, value in pairs}
    return values["workflow"], values["version"]


# ---- the gateway's process ---------------------------------------------------------------------


def _start_gateway(folder: Path) -> subprocess.Popen[bytes]:
    command = [
        *(sys.executable, "-m", "gateway", "serve", "--data-dir", str(folder / "gateway")),
        *("--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"),
    ]
    with _log_file(folder).open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            start_new_session=True,  # a Ctrl-C reaches the demo only, which then stops us
        )


def _log_file(folder: Path) -> Path:
    return folder / "gateway.log"


def _wait_until_ready(process: subprocess.Popen[bytes], folder: Path) -> str:
    """The gateway's address; raises AcpFailure with the end of its log."""
    line = _first_line(process)
    try:
        return str(json.loads(line)["http"])
    except (ValueError, KeyError, TypeError):
        log = _log_file(folder)
        tail = log.read_bytes()[-LOG_TAIL_CHARS:].decode(errors="replace")
        message = f"the gateway did not get ready; log {log}:\n{tail}"
        raise AcpFailure(error(Reason.UNAVAILABLE, message)) from None


def _first_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    until = monotonic() + GATEWAY_READY_S
    said = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while b"\n" not in said and selector.select(max(0.0, until - monotonic())):
            chunk = os.read(process.stdout.fileno(), 4096)
            if not chunk:
                break
            said += chunk
    return said


def _stop_all(started: list[subprocess.Popen[bytes]], launcher: Launcher) -> None:
    """End every process; further Ctrl-Cs do not cut this short, its grace does."""
    with undisturbed():
        for process in started:
            process.terminate()
        launcher.stop()
        for process in started:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(GATEWAY_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
