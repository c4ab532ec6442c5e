"""The lines of a whole trajectory log, hot tier and archive as one, from any place on. Blocks.

Only reads, also beside a gateway that runs: the log grows at its end, and a file that leaves for
the archive meanwhile is found there.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gateway.stores.archive.marker import left
from gateway.stores.records.log_tail import Batch, Place
from gateway.stores.records.order import Order
from gateway.stores.records.tiers import Tiers, cold_tier_of
from gateway.stores.trajectory_log import FOLDER


class LogLine(NamedTuple):
    """A line and where it stands."""

    file: str
    offset: int
    data: bytes


class LogLines:
    """`work`: a directory of one's own for an archived file that is being read.

    `archive_url`: where the archive is now; empty: where the log says. Raises OSError.
    """

    def __init__(
        self,
        data_dir: Path,
        work: Path,
        *,
        archive_url: str = "",
        archive_options: dict[str, str] | None = None,
    ) -> None:
        log_dir = data_dir / FOLDER
        order = Order(
            log_dir=str(log_dir),
            records_dir=str(work),
            key="",
            archive_url=archive_url,
            archive_options=archive_options or {},
        )
        self._log_dir = log_dir
        self.damaged: dict[str, str] = {}
        cold = cold_tier_of(order, log_dir, state_directory=work)
        self._tiers = Tiers(log_dir, work, cold=cold, damaged=self._note_damaged)

    @property
    def has_left(self) -> bool:
        """Whether files left for an archive."""
        return bool(left(self._log_dir).through)

    def batches(self, after: Place) -> Iterator[tuple[Batch, list[LogLine]]]:
        """What stands behind a place, a batch at a time, until there is no more."""
        while (batch := self._tiers.next_batch(after)) is not None:
            yield batch, _placed(batch, self._tiers.lines_of(batch))
            after = batch.after

    def _note_damaged(self, file: str, why: str) -> None:
        self.damaged[file] = why


def _placed(batch: Batch, lines: list[bytes]) -> list[LogLine]:
    found, offset = list[LogLine](), batch.start
    for data in lines:
        found.append(LogLine(batch.file, offset, data))
        offset += len(data)
    return found
