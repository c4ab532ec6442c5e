"""The records' process, as this gateway starts it: with its order on standard input.

The pipe stays open as long as the gateway lives; the process ends with it. Its log lines go where
the gateway's go.
"""

import asyncio
import secrets
import sys
from typing import TYPE_CHECKING

import msgspec

from gateway.config.credentials import resolve_credential
from gateway.config.settings import Settings
from gateway.runtime.outbox import Outbox
from gateway.runtime.records import Launch, Records
from gateway.stores.trajectory_log import FOLDER

if TYPE_CHECKING:
    from gateway.stores.records.endpoint import Endpoint
    from gateway.stores.records.reach import Limits

MODULE = "gateway.stores.records.child"
RECORDS_FOLDER = "records"
KEY_BYTES = 32


def records_of(settings: Settings, outbox: Outbox) -> Records:
    """The records of this gateway; nothing runs yet."""
    return Records(
        _launch(settings),
        cluster=lambda: _cluster(settings),
        most=lambda: _most(settings),
        on_start=outbox.be_prompt,
    )


def _cluster(settings: Settings) -> "Endpoint | None":
    from gateway.stores.records.endpoint import endpoint_of

    url = settings.records.url
    return endpoint_of(url, _password(settings)) if url else None


def _most(settings: Settings) -> "Limits":
    from gateway.stores.records.reach import Limits

    most = settings.records
    return Limits(timeout_ms=most.query_timeout_ms, rows=most.query_rows_max)


def _password(settings: Settings) -> str:
    import os

    credential = settings.records.password
    return resolve_credential(credential, environ=os.environ) if credential is not None else ""


class _Child:
    """One process; `ready` before anything is asked."""

    def __init__(self, process: asyncio.subprocess.Process, key: str) -> None:
        self._process = process
        self._key = key
        self.pid = process.pid

    async def ready(self) -> "Endpoint":
        from gateway.stores.records.endpoint import Endpoint
        from gateway.stores.records.order import Ready

        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise EOFError(f"it ended with {await self._process.wait()}; the log says why")
        ready = msgspec.json.decode(line, type=Ready)
        return Endpoint(host="127.0.0.1", port=ready.port, password=self._key)

    async def wait(self) -> int:
        return await self._process.wait()

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()


def _launch(settings: Settings) -> Launch:
    async def start() -> _Child:
        from gateway.stores.records.order import Order

        key = secrets.token_hex(KEY_BYTES)
        data_dir = settings.data_dir.absolute()
        order = Order(
            log_dir=str(data_dir / FOLDER),
            records_dir=str(data_dir / RECORDS_FOLDER),
            key=key,
            url=settings.records.url,
            password=_password(settings),
            tick_ms=settings.records.tick_ms,
            log_level=settings.log.level.value,
        )
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            MODULE,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(msgspec.json.encode(order) + b"\n")
        return _Child(process, key)

    return start
