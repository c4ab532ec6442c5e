"""The feed as the child runs it: in a loop, with pauses while the store is down, and in the open.

One thread feeds and compares. Other threads ask how it stands, or for a comparison; they change
nothing but that one wish. A fault of the store or the disk is told, waited out and tried again: the
log keeps what is not fed.
"""

import os
import threading
import time
from pathlib import Path
from typing import Final

import msgspec

from gateway.stores.records.comparing import Comparing, Comparison, Outcome
from gateway.stores.records.endpoint import Endpoint
from gateway.stores.records.feed import Feed, FeedCounts
from gateway.stores.records.log_tail import bytes_after
from gateway.stores.records.order import Order
from gateway.stores.records.store import RecordsDown, RecordStore, RowsRefused, connect
from gateway.telemetry.logs import get_log

BACKOFF_FIRST_S, BACKOFF_MAX_S = 0.25, 15.0
"""A store that is restarted is back in a second; a full disk takes a person."""

BOOT_FILE: Final = "boot"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

log = get_log(__name__)


class FeedingStatus(msgspec.Struct, frozen=True, kw_only=True):
    """`waiting_bytes`: of the log, not in the store yet. `problem`: why nothing is fed now."""

    pid: int
    waiting_bytes: int
    file: str
    offset: int
    counts: FeedCounts
    comparison: Comparison
    problem: str = ""


class Feeding:
    """The loop and what others may ask of it."""

    def __init__(self, log_directory: Path, directory: Path, *, order: Order) -> None:
        self._log = log_directory
        self._directory = directory
        self._tick_s = order.tick_ms / 1000
        self._stop = threading.Event()
        self._store: RecordStore | None = None
        self._feed: Feed | None = None
        self._comparing: Comparing | None = None
        self._wish = ""
        self._wants_all = False
        self._problem = "not connected yet"
        self._failures = 0

    def stop(self) -> None:
        """End after the batch under way."""
        self._stop.set()

    def prepare(self, endpoint: Endpoint) -> None:
        """Connect, and bring the tables to this version. Raises RecordsDown."""
        self._store = connect(endpoint)
        self._store.migrate()
        self._feed = Feed(self._log, self._directory, store=self._store)
        self._problem = ""
        if self._is_first_since_boot():
            self._wish = "the machine was started anew: what was not on disk yet may be gone"

    def run(self, endpoint: Endpoint) -> None:
        """Feed until `stop`."""
        while not self._stop.is_set():
            try:
                is_busy = self._turn(endpoint)
            except (RecordsDown, RowsRefused, OSError) as problem:
                self._told(problem)
                self._stop.wait(min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2**self._failures))
                self._failures = min(self._failures + 1, 10)
            else:
                self._problem, self._failures = "", 0
                if not is_busy:
                    self._stop.wait(self._tick_s)
        if self._feed is not None:
            self._feed.close()

    def answer(self, path: str, body: bytes) -> bytes | None:
        """Our own paths: how it stands, compare, feed everything again."""
        if path == "verify":
            self._wish = "asked for"
        elif path == "backfill":
            self._wants_all = True
        elif path != "status":
            return None
        return msgspec.json.encode(self.status())

    def status(self) -> FeedingStatus:
        """How the feed stands now."""
        feed, comparing = self._feed, self._comparing
        counts = feed.counts if feed is not None else FeedCounts()
        found = comparing.found if comparing is not None else Comparison()
        if self._wish:
            found = Comparison(outcome=Outcome.RUNNING, why=self._wish)
        if feed is None:
            return _status(counts, found, problem=self._problem)
        at = feed.position.progress.at
        waiting = bytes_after(self._log, at)
        status = _status(counts, found, problem=self._problem)
        return msgspec.structs.replace(
            status, waiting_bytes=waiting, file=at.file, offset=at.offset
        )

    def _turn(self, endpoint: Endpoint) -> bool:
        """One batch, and one chunk of a comparison; False when there was nothing to do."""
        if self._feed is None or self._store is None:
            self.prepare(endpoint)
        assert self._feed is not None
        assert self._store is not None
        if self._wants_all:
            self._feed.position.rewind()
            self._wants_all = False
        is_busy = self._feed.step()
        if self._wish and not is_busy:
            self._comparing = self._new_comparing(self._store)
            self._wish = ""
        return self._compare(self._feed) or is_busy

    def _new_comparing(self, store: RecordStore) -> Comparing:
        token = f"mend:{os.getpid()}:{time.time_ns()}"
        return Comparing(self._log, store, token=token, why=self._wish)

    def _compare(self, feed: Feed) -> bool:
        comparing = self._comparing
        if comparing is None or comparing.found.outcome is not Outcome.RUNNING:
            return False
        if not comparing.step(feed.position.progress.at):
            self._mark_boot()
            log.info("records_compared", **_shown(comparing.found))
        return True

    def _told(self, problem: Exception) -> None:
        said = str(problem)[:500]
        if said != self._problem:
            log.error("records_feed_waits", what=said)
        self._problem = said

    def _is_first_since_boot(self) -> bool:
        """Parts of the store are not synced: after a power cut, what was there may not be."""
        path = self._directory / BOOT_FILE
        if not path.is_file():
            self._mark_boot()
        return path.read_text() != _boot_id()

    def _mark_boot(self) -> None:
        (self._directory / BOOT_FILE).write_text(_boot_id())


def _boot_id() -> str:
    return _BOOT_ID.read_text().strip() if _BOOT_ID.is_file() else ""


def _status(counts: FeedCounts, found: Comparison, *, problem: str) -> FeedingStatus:
    return FeedingStatus(
        pid=os.getpid(),
        waiting_bytes=0,
        file="",
        offset=0,
        counts=counts,
        comparison=found,
        problem=problem,
    )


def _shown(found: Comparison) -> dict[str, str | int]:
    return {
        "outcome": found.outcome.value,
        "compared": found.compared,
        "differing": found.differing,
    }
