"""Comparing the whole log with the store, a chunk at a time, and healing what differs.

Damaged parts go first: what they held is missing then, and comes again. Then the log is read from
its first line to where the feed stands; as scheduled only its hot tier, as whoever archives in a
store far away pays for each byte that is read. Each session is compared by the number
of its rows and their hashes; only where that differs, row by row. Runs between two batches of the
feed and on its thread, so that there is one writer.
"""

from typing import Final, NamedTuple

from gateway.stores.records.exactly_once import mend
from gateway.stores.records.feed import read_lines
from gateway.stores.records.feed_status import Comparison, Outcome
from gateway.stores.records.log_tail import Batch, Place
from gateway.stores.records.store import RecordStore
from gateway.stores.records.tiers import Tiers
from gateway.telemetry.masking import DEFAULT, Masker

NAMED_MAX: Final = 100
"""Sessions named in an answer; beyond that they are only counted."""


class Wish(NamedTuple):
    """Why a comparison is made, where in the log it begins and ends, and what its inserts are told
    by. Behind the end the feed had not been yet."""

    why: str
    start: Place
    end: Place
    token: str


class Comparing:
    """One pass over the log."""

    def __init__(
        self,
        tiers: Tiers,
        store: RecordStore,
        *,
        wish: Wish,
        masker: Masker = DEFAULT,
    ) -> None:
        self._tiers = tiers
        self._store = store
        self._token = wish.token
        self._masker = masker
        self._at, self._end = wish.start, wish.end
        self._has_looked = False
        self.found = Comparison(outcome=Outcome.RUNNING, why=wish.why)

    def step(self) -> bool:
        """Compare the next chunk; False once all before the end was. Raises RecordsDown."""
        if not self._has_looked:
            self.found.damaged_parts = self._store.drop_damaged()
            self._has_looked = True
        batch = self._tiers.next_batch(self._at)
        if batch is not None:
            batch = _clipped(batch, self._end)
        if batch is None:
            self.found.outcome = Outcome.HEALED if self.found.differing else Outcome.IDENTICAL
            return False
        told = read_lines(self._tiers.lines_of(batch), batch, masker=self._masker)
        token = f"{self._token}:{batch.file}:{batch.start}"
        differing = list(mend(self._store, told.sessions, token=token))
        back = list(self._store.digests(told.erased)) if told.erased else []
        if back:
            self._store.erase(back)
        found = self.found
        found.compared += len({one.session_id for one in told.sessions})
        found.differing += len(differing) + len(back)
        found.unusable += len(told.aside)
        found.sessions = [*found.sessions, *differing, *back][:NAMED_MAX]
        self._at = batch.after
        return True


def _clipped(batch: Batch, end: Place) -> Batch | None:
    """What of it lies before the end; None where nothing does. New lines come while it is read,
    and those before them are compared all the same."""
    if batch.after.order <= end.order:
        return batch
    if batch.file != end.file or batch.start >= end.offset:
        return None
    return Batch(batch.file, batch.start, end.offset)
