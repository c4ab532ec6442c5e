"""The feed: takes the trajectory log on into the store, a batch at a time, each exactly once.

The log is the backlog: while the store is down, nothing is read on and nothing is lost. A line that
no version of ours can use is put aside in a file with its place and the reason, and counted; the
rest goes on. Blocks; runs on one thread.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from acp_spec.model.trajectory import Trajectory
from gateway.stores.forms import UnreadableRecord, read_record
from gateway.stores.masked import masked
from gateway.stores.records.exactly_once import Brought, bring
from gateway.stores.records.feed_status import FeedCounts
from gateway.stores.records.log_tail import BATCH_BYTES_MAX, BATCH_LINES_MAX, Batch
from gateway.stores.records.position import POSITION_FILE, PositionFile
from gateway.stores.records.store import RecordStore
from gateway.stores.records.tiers import OpenCold, Tiers, nothing_cold
from gateway.stores.trajectory_log import Erased, head_of, is_blank, said_by
from gateway.telemetry.logs import get_log
from gateway.telemetry.masking import DEFAULT, Masker

ASIDE_FILE = "quarantine.jsonl"

log = get_log(__name__)


class Aside(msgspec.Struct, frozen=True, kw_only=True):
    """A line that was not used: where it stands, and why."""

    file: str
    start: int
    session_id: str
    why: str


class Told(NamedTuple):
    """What a batch of lines says."""

    sessions: list[Trajectory]
    erased: list[str]
    aside: list[Aside]


class Feed:
    """One log, one store. `step` until it returns False, then wait a little."""

    def __init__(
        self,
        log_directory: Path,
        state_directory: Path,
        *,
        store: RecordStore,
        masker: Masker = DEFAULT,
        cold: OpenCold = nothing_cold,
    ) -> None:
        self.tiers = Tiers(log_directory, state_directory, cold=cold, damaged=self._put_file_aside)
        self._aside = state_directory / ASIDE_FILE
        self._store = store
        self._masker = masker
        self.position = PositionFile(state_directory / POSITION_FILE)
        self.counts = FeedCounts()
        self.is_behind = False
        """The last batch was a big one: more is waiting, most likely."""

    def step(self) -> bool:
        """Feed the next batch; False when there is none. Raises RecordsDown, OSError: try again."""
        batch, is_again = self.position.progress.batch, True
        if batch is None:
            batch, is_again = self.tiers.next_batch(self.position.progress.at), False
            if batch is None:
                self.is_behind = False
                return False
            self.position.begin(batch)
        self._feed(batch, is_again=is_again)
        self.position.done(batch.after)
        self.counts.batches += 1
        return True

    def begin_anew(self) -> None:
        """Into a store that has nothing: all of the log once more, without a word if it is new."""
        if self.position.progress.at.file:
            log.warning("records_store_is_empty", what="it was made anew: all is fed once more")
            self.position.rewind()

    def close(self) -> None:
        """Let the files go."""
        self.position.close()

    def _feed(self, batch: Batch, *, is_again: bool) -> None:
        lines = self.tiers.lines_of(batch)
        is_large = batch.end - batch.start >= BATCH_BYTES_MAX // 2
        self.is_behind = is_large or len(lines) >= BATCH_LINES_MAX
        told = read_lines(lines, batch, masker=self._masker)
        token = f"{batch.file}:{batch.start}-{batch.end}"
        brought = bring(self._store, told.sessions, token=token, ask=is_again)
        if told.erased:
            self._store.erase(told.erased)
        self._put_aside(batch, told.aside, brought=brought)
        self.counts.sessions += brought.sessions
        self.counts.rows += brought.rows
        self.counts.erased += len(told.erased)

    def _put_aside(self, batch: Batch, aside: list[Aside], *, brought: Brought) -> None:
        refused = [
            Aside(file=batch.file, start=batch.start, session_id=name, why=why)
            for name, why in brought.refused
        ]
        self._write_aside([*aside, *refused])

    def _put_file_aside(self, file: str, why: str) -> None:
        """An archived file that cannot be read: what is in it cannot be brought again."""
        self._write_aside([Aside(file=file, start=0, session_id="", why=why)])

    def _write_aside(self, every: list[Aside]) -> None:
        if every:
            with self._aside.open("ab") as file:
                file.writelines(msgspec.json.encode(one) + b"\n" for one in every)
        self.counts.quarantined += len(every)


class _Line(NamedTuple):
    """A trajectory's line and where it stands."""

    sequence: int
    start: int
    text: bytes


def read_lines(lines: Sequence[bytes], batch: Batch, *, masker: Masker = DEFAULT) -> Told:
    """Sort a batch's lines: sessions, tombstones, and what this version cannot read.

    Sessions come without their secrets, which stay in the log alone. One that is erased within the
    batch is not brought at all.
    """
    versions, erased = defaultdict[str, list[_Line]](list), dict[str, None]()
    start = batch.start
    for line in lines:
        said = said_by(line)
        if isinstance(said, Erased):
            erased[said.session_id] = None
        elif not is_blank(line):
            name, sequence = said or (f"line {start}", 0)
            versions[name].append(_Line(sequence, start, line))
        start += len(line)
    sessions, aside = list[Trajectory](), list[Aside]()
    for name, every in versions.items():
        if name not in erased:
            sessions += _newest(every, batch.file, aside=aside, masker=masker)
    return Told(sessions, list(erased), aside)


def _newest(
    every: list[_Line], file: str, *, aside: list[Aside], masker: Masker
) -> list[Trajectory]:
    """A session at its highest sequence that can be read; none where none can.

    Only that one is decoded and masked: the newest says all that those before it did, and a session
    that is judged a thousand times leaves a thousand lines of growing length.
    """
    for line in sorted(every, key=lambda one: -one.sequence):
        found = _session_of(line.text, file, start=line.start, masker=masker)
        if not isinstance(found, Aside):
            return [found]
        aside.append(found)
    return []


def _session_of(line: bytes, file: str, *, start: int, masker: Masker) -> Trajectory | Aside:
    try:
        return masked(read_record(line), masker)
    except (UnreadableRecord, msgspec.DecodeError) as problem:
        name = head.session_id if (head := head_of(line)) is not None else ""
        return Aside(file=file, start=start, session_id=name, why=str(problem))
