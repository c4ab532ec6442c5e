"""A real `acp serve` for the matrix: a process on loopback that demands tokens, and its restart.

It knows nothing of the gateway but the command line and the JSON line on standard output. A restart
is a kill -9 and a start on the same data and the same ports.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from tempfile import TemporaryDirectory

from acp_spec.sdk.kept_ports import LOOPBACK, KeptPorts
from conformance_tests.runner.fixtures import Credential, Fixtures, Tokens

ACP = Path(sys.executable).parent / "acp"
READY_WITHIN_S = 60
STOP_WITHIN_S = 20
COMPONENT_NAME = "c-allowed"
SCOPES = {
    "admin": ("admin", "submit", "operate", "component", "annotate"),
    "submit": ("submit",),
    "component": ("component",),
}


class GatewayProcess:
    """One data directory and the process that serves it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept = KeptPorts()  # between a kill and the next start nobody listens there
        self._ports = tuple(f"{LOOPBACK}:{self._kept.take()}" for _ in range(2))
        self._process: asyncio.subprocess.Process | None = None
        self.http = ""
        self.grpc = ""

    async def start(self) -> None:
        """Returns once it said that it is ready."""
        http, grpc = self._ports
        log = (self._folder / "gateway.log").open("ab")
        self._process = await asyncio.create_subprocess_exec(
            *(str(ACP), "serve", "--data-dir", str(self._folder / "data")),
            *("--http", http, "--grpc", grpc, "--log-level", "warning"),
            env={**os.environ, **_SETTINGS},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
        log.close()
        assert self._process.stdout is not None
        async with asyncio.timeout(READY_WITHIN_S):
            line = await self._process.stdout.readline()
        if not line:
            end = (self._folder / "gateway.log").read_text(encoding="utf-8")[-1500:]
            raise RuntimeError(f"acp serve did not start: {end}")
        ready = json.loads(line)
        self.http, self.grpc = (f"{one}://{_address(ready[one])}" for one in ("http", "grpc"))

    async def restart(self) -> None:
        """Kill -9, then start again on the same ports."""
        await self._end(signal.SIGKILL)
        await self.start()

    async def stop(self) -> None:
        await self._end(signal.SIGTERM)
        self._kept.close()

    async def _end(self, number: signal.Signals) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.send_signal(number)
        try:
            async with asyncio.timeout(STOP_WITHIN_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    async def tokens(self) -> Tokens:
        """Made on the directory while nothing serves it."""
        made = {name: await self._token(scopes) for name, scopes in SCOPES.items()}
        other = await self._token(SCOPES["admin"], tenant="other")
        return Tokens(**made, other_tenant=other, component_names=(COMPONENT_NAME,))

    async def _token(self, scopes: tuple[str, ...], *, tenant: str = "conformance") -> str:
        names = ("--name", "*") if "admin" in scopes else ("--name", COMPONENT_NAME)
        process = await asyncio.create_subprocess_exec(
            *(str(ACP), "tokens", "create", "--data-dir", str(self._folder / "data"), "--json"),
            *(part for scope in scopes for part in ("--scope", scope)),
            *(names if "component" in scopes else ()),
            *("--tenant", tenant),
            stdout=asyncio.subprocess.PIPE,
        )
        said, _ = await process.communicate()
        found: str = json.loads(said)["token"]
        return found


SECRET = "secret-of-the-partner"
_SETTINGS = {
    "ACP_AUTH_MODE": "required",
    "ACP_OUTBOUND_CREDENTIALS": '{"partner": "env:ACP_CONFORMANCE_SECRET"}',
    "ACP_CONFORMANCE_SECRET": SECRET,
    # short, so that a case that waits for them does not hold up a run
    "ACP_GRACE_PIN_GRACE_MS": "300",
    "ACP_GRACE_ATTACH_GRACE_MS": "1500",
    "ACP_GRACE_REATTACH_GRACE_MS": "2000",
    "ACP_LEASES_ATTACH_HEARTBEAT_MS": "1000",
    "ACP_OUTBOUND_CONNECT_TIMEOUT_MS": "10000",
    "ACP_LEASES_PROBE_INTERVAL_MS": "300",
}


def _address(url: str) -> str:
    return url.rpartition("://")[2]


@contextlib.asynccontextmanager
async def running_gateway() -> AsyncIterator[tuple[GatewayProcess, Fixtures]]:
    """A gateway with its tokens; stopped and removed at the end."""
    with TemporaryDirectory(prefix="acp-conformance-") as folder:
        process = GatewayProcess(Path(folder))
        tokens = await process.tokens()
        await process.start()
        try:
            yield (
                process,
                Fixtures(
                    tokens=tokens,
                    exposed=True,
                    credential=Credential(name="partner", secret=SECRET),
                ),
            )
        finally:
            await process.stop()
