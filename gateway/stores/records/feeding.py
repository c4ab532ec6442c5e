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

from gateway.stores.records.comparing import Comparing, Wish
from gateway.stores.records.endpoint import Endpoint
from gateway.stores.records.feed import Feed
from gateway.stores.records.feed_status import Comparison, FeedCounts, FeedingStatus, Outcome
from gateway.stores.records.log_tail import Place
from gateway.stores.records.order import Order
from gateway.stores.records.store import (
    RecordsDown,
    RecordStore,
    RowsRefused,
    connect,
    migrations,
)
from gateway.stores.records.tiers import Tiers, cold_tier_of
from gateway.telemetry.logs import get_log
from gateway.telemetry.masking import Masker

BACKOFF_FIRST_S, BACKOFF_MAX_S = 0.25, 15.0
"""A store that is restarted is back in a second; a full disk takes a person."""

AS_SCHEDULED: Final = "as scheduled"
COMPARED: Final = "compared"
BOOT_FILE: Final = "boot"
MASKS_FILE: Final = "masks"
STORE_FILE: Final = "store-made-at"
_DAMAGE: Final = (
    *("CANNOT_READ_ALL_DATA", "CHECKSUM_DOESNT_MATCH", "BAD_SIZE_OF_FILE_IN_DATA_PART"),
    *("CORRUPTED_DATA", "UNEXPECTED_END_OF_FILE", "CANNOT_DECOMPRESS", "NO_FILE_IN_DATA_PART"),
)
"""What ClickHouse says of a part that does not hold what it should."""
_GONE: Final = ("UNKNOWN_DATABASE", "UNKNOWN_TABLE")
"""What it says of tables that were there: it is another store now, or an empty one."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

log = get_log(__name__)


class Feeding:
    """The loop and what others may ask of it."""

    def __init__(self, log_directory: Path, directory: Path, *, order: Order) -> None:
        self._log = log_directory
        self._directory = directory
        self._order = order
        self._tick_s = order.tick_ms / 1000
        self._masker = Masker(order.secret_fields, order.secret_patterns)
        self._is_embedded = not order.url
        self._every_s = order.verify_every_ms / 1000
        self._compare_at = time.monotonic() + self._every_s
        self._look_at = 0.0
        self._stop = threading.Event()
        self._store: RecordStore | None = None
        self._feed: Feed | None = None
        self._comparing: Comparing | None = None
        self._wish = ""
        self._wished_through: Place | None = None
        self._wants_all = False
        self._is_damaged = False
        self._comparisons = 0
        self._problem = "not connected yet"
        self._failures = 0

    def stop(self) -> None:
        """End after the batch under way."""
        self._stop.set()

    def prepare(self, endpoint: Endpoint) -> None:
        """Connect, and bring the tables to this version. Raises RecordsDown."""
        self._store = connect(endpoint, writer=self._order.gateway_id)
        steps = self._store.migrate()
        is_changed = 0 < steps < len(migrations())
        if self._is_embedded:
            self._store.merge_less()
        cold = cold_tier_of(self._order, self._log, state_directory=self._directory)
        self._feed = Feed(
            self._log, self._directory, store=self._store, masker=self._masker, cold=cold
        )
        is_new = steps == len(migrations())
        self._see_that_it_is_the_same(self._store, self._feed, is_new=is_new)
        self._problem = ""
        if self._is_first_since_boot():
            self._wish = "the machine was started anew: what was not on disk yet may be gone"
        elif is_changed:
            self._wish = "the tables have new columns: rows of before are filled from the log"
        elif self._is_masked_otherwise(self._feed):
            self._wish = "what counts as a secret was changed: rows of before are masked anew"

    def run(self, endpoint: Endpoint) -> None:
        """Feed until `stop`."""
        while not self._stop.is_set():
            begun = time.monotonic()
            try:
                is_busy = self._turn(endpoint)
            except (RecordsDown, RowsRefused, OSError) as problem:
                self._told(problem)
                self._stop.wait(min(BACKOFF_MAX_S, BACKOFF_FIRST_S * 2**self._failures))
                self._failures = min(self._failures + 1, 10)
            else:
                self._problem, self._failures = "", 0
                if not is_busy:
                    self._stop.wait(max(0.0, begun + self._tick_s - time.monotonic()))
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
        at = feed.position.progress.at if feed is not None else Place()
        return FeedingStatus(
            pid=os.getpid(),
            waiting_bytes=feed.tiers.bytes_after(at) if feed is not None else 0,
            file=at.file,
            offset=at.offset,
            counts=counts,
            comparison=found,
            comparisons=self._comparisons,
            problem=self._problem,
        )

    def _turn(self, endpoint: Endpoint) -> bool:
        """One batch, and one chunk of a comparison; False when the rest can wait for the next tick.

        What came meanwhile waits too: every batch is a part in each table, and each part costs as
        much as all rows of a tick.
        """
        if self._feed is None or self._store is None:
            self.prepare(endpoint)
        assert self._feed is not None
        assert self._store is not None
        if not self._is_embedded and time.monotonic() >= self._look_at:
            self._see_that_it_is_the_same(self._store, self._feed)
        if self._is_damaged:
            self._store.drop_damaged()
            self._is_damaged, self._wish = False, "a part of the store was damaged"
        if self._wants_all:
            self._feed.position.rewind()
            self._wants_all = False
        if self._every_s and time.monotonic() >= self._compare_at and not self._is_comparing:
            self._wish = self._wish or AS_SCHEDULED
        has_fed = self._feed.step()
        if self._wish and not self._is_comparing and self._has_what_was_wished(self._feed, has_fed):
            self._comparing = self._new_comparing(self._store, self._feed.position.progress.at)
            self._wish, self._wished_through = "", None
        return self._compare() or self._feed.is_behind

    def _has_what_was_wished(self, feed: Feed, has_fed: bool) -> bool:
        """Whether the feed is beyond what was there when the comparison was asked for: where
        sessions end all the time, it never comes to the end of the log."""
        if self._wished_through is None:
            self._wished_through = feed.tiers.end()
        return not has_fed or feed.position.progress.at.order >= self._wished_through.order

    def _new_comparing(self, store: RecordStore, end: Place) -> Comparing:
        cold = cold_tier_of(self._order, self._log, state_directory=self._directory)
        # With an unpacked file of its own: the feed goes on in between, and has no use for it.
        folder = self._directory / COMPARED
        tiers = Tiers(self._log, folder, cold=cold, damaged=_not_compared)
        token = f"mend:{os.getpid()}:{time.time_ns()}"
        start = tiers.hot_start() if self._wish == AS_SCHEDULED else Place()
        wish = Wish(self._wish, start, end, token)
        return Comparing(tiers, store, wish=wish, masker=self._masker)

    @property
    def _is_comparing(self) -> bool:
        """A comparison is under way: it is not begun again before it has ended."""
        return self._comparing is not None and self._comparing.found.outcome is Outcome.RUNNING

    def _compare(self) -> bool:
        comparing = self._comparing
        if comparing is None or not self._is_comparing:
            return False
        if not comparing.step():
            self._mark_boot()
            self._mark_masks()
            self._comparisons += 1
            self._compare_at = time.monotonic() + self._every_s
            log.info("records_compared", **_shown(comparing.found))
        return True

    def _told(self, problem: Exception) -> None:
        said = str(problem)[:500]
        self._is_damaged = self._is_damaged or any(word in str(problem) for word in _DAMAGE)
        if self._feed is not None and any(word in str(problem) for word in _GONE):
            self._feed.close()
            self._feed = self._store = self._comparing = None
        if said != self._problem:
            log.error("records_feed_waits", what=said)
        self._problem = said

    def _see_that_it_is_the_same(
        self, store: RecordStore, feed: Feed, *, is_new: bool = False
    ) -> None:
        """Another one has none of what was fed: a cluster that came back empty, a folder that was
        deleted. Its tables may be there, made by another gateway meanwhile."""
        path, made_at = self._directory / STORE_FILE, store.made_at()
        known = path.read_text() if path.is_file() else ""
        if is_new or (known and known != made_at):
            feed.begin_anew()
        if known != made_at:  # a full disk keeps nobody from starting and asking
            path.write_text(made_at)
        self._look_at = time.monotonic() + self._order.look_every_ms / 1000

    def _is_first_since_boot(self) -> bool:
        """Parts of the store are not synced: after a power cut, what was there may not be."""
        path = self._directory / BOOT_FILE
        if not path.is_file():
            self._mark_boot()
        return path.read_text() != _boot_id()

    def _is_masked_otherwise(self, feed: Feed) -> bool:
        """Rows are there that were made while other fields or patterns counted as secrets."""
        path = self._directory / MASKS_FILE
        if not path.is_file() and not feed.position.progress.at.file:
            self._mark_masks()
        return not path.is_file() or path.read_text() != self._masker.digest

    def _mark_masks(self) -> None:
        (self._directory / MASKS_FILE).write_text(self._masker.digest)

    def _mark_boot(self) -> None:
        (self._directory / BOOT_FILE).write_text(_boot_id())


def _not_compared(file: str, why: str) -> None:
    log.error("archived_file_not_compared", file=file, why=why)


def _boot_id() -> str:
    return _BOOT_ID.read_text().strip() if _BOOT_ID.is_file() else ""


def _shown(found: Comparison) -> dict[str, str | int]:
    return {
        "outcome": found.outcome.value,
        "compared": found.compared,
        "differing": found.differing,
    }
