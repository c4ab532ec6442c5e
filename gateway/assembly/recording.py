"""The records' process, as this gateway starts it: with its order on standard input.

The pipe stays open as long as the gateway lives; the process ends with it. Its log lines go where
the gateway's go.
"""

import asyncio
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from gateway.assembly.archiving import (
    RECORDS_FOLDER,
    archive_options,
    archive_url,
    tell_if_missing,
)
from gateway.assembly.ordered_process import OrderedProcess, begun
from gateway.config.credentials import CredentialUnavailable, resolve_credential
from gateway.config.settings import Settings
from gateway.runtime.outbox import Outbox
from gateway.runtime.records import Launch, Records, RecordsState
from gateway.stores.trajectory_log import FOLDER
from gateway.telemetry.metrics import Metrics

if TYPE_CHECKING:
    from gateway.stores.records.endpoint import Endpoint
    from gateway.stores.records.feed_status import FeedingStatus
    from gateway.stores.records.reach import Limits

MODULE = "gateway.stores.records.child"
KEY_BYTES = 32


def records_of(settings: Settings, outbox: Outbox, *, metrics: Metrics, by: str) -> Records:
    """The records of this gateway; nothing runs yet. `by`: the gateway's id."""
    records = Records(
        _launch(settings, by),
        cluster=lambda: _cluster(settings),
        most=lambda: _most(settings),
        on_start=outbox.be_prompt,
    )
    _watch(metrics, records)
    tell_if_no_password(settings)
    return records


def tell_if_no_password(settings: Settings) -> None:
    """A warning at the start, where a cluster is to be used."""
    if settings.records.url:
        tell_if_missing("records_cannot_be_fed", lambda: _password(settings))


def _watch(metrics: Metrics, records: Records) -> None:
    """All 0 while nothing runs; how the feed stood at the last look, every 2 s."""
    reads: dict[str, tuple[str, Callable[[FeedingStatus], float]]] = {
        "records_waiting_bytes": (
            "Bytes of trajectories that the records have not got yet",
            lambda feed: feed.waiting_bytes,
        ),
        "records_drifted_sessions": (
            "Sessions that differed from the log at the last comparison, and were healed",
            lambda feed: feed.comparison.differing,
        ),
        "records_quarantined": (
            "Lines that the records could not use and put aside, since their start",
            lambda feed: feed.counts.quarantined,
        ),
    }
    metrics.watch(
        "records_up",
        "Whether the records can be asked",
        read=lambda: float(records.state is RecordsState.UP),
    )
    for name, (text, figure) in reads.items():
        metrics.watch(name, text, read=_read(records, figure))


def _read(records: Records, figure: "Callable[[FeedingStatus], float]") -> Callable[[], float]:
    return lambda: figure(records.feed) if records.feed is not None else 0.0


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
    try:
        return resolve_credential(credential, environ=os.environ) if credential else ""
    except CredentialUnavailable as problem:
        raise OSError(f"records.password: {problem}") from problem


class _Child(OrderedProcess):
    """The records' process; `ready` before anything is asked."""

    def __init__(self, process: asyncio.subprocess.Process, key: str) -> None:
        super().__init__(process)
        self._key = key

    async def ready(self) -> "Endpoint":
        from gateway.stores.records.endpoint import Endpoint
        from gateway.stores.records.order import Ready

        line = await self.line()
        if not line:
            raise EOFError(f"it ended with {await self.wait()}; the log says why")
        ready = msgspec.json.decode(line, type=Ready)
        return Endpoint(host="127.0.0.1", port=ready.port, password=self._key)

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()


def _launch(settings: Settings, name: str) -> Launch:
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
            verify_every_ms=settings.records.verify_every_ms,
            log_level=settings.log.level.value,
            secret_fields=settings.secrets.fields,
            secret_patterns=settings.secrets.patterns,
            archive_url=archive_url(settings),
            archive_options=archive_options(settings),
            gateway_id=name,
        )
        return _Child(await begun(MODULE, order), key)

    return start
