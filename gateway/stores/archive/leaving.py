"""Which files may leave the trajectory log. One rule, for the pass and for whoever starts it.

Reads names only and needs nothing of the extra.
"""

from pathlib import Path
from typing import Final, NamedTuple

from acp_spec.model.times import MS_PER_DAY, rfc3339
from gateway.stores.archive.manifest import order_of
from gateway.stores.records.position import progress_in
from gateway.stores.trajectory_log import log_files

_DAY: Final = len("YYYY-MM-DD")


class Leaving(NamedTuple):
    """`free`: may leave now, in their order. `waiting`: old enough, but the records have not got so
    many yet."""

    free: list[str]
    waiting: int


def leaving(log_directory: Path, records_directory: Path, *, last_day: str) -> Leaving:
    """Files of that day and before, but the newest, which the gateway may be writing; where records
    were ever kept, those that their feed is beyond. Raises OSError.
    """
    names = [path.relative_to(log_directory).as_posix() for path in log_files(log_directory)]
    due = [name for name in names[:-1] if written_on(name) <= last_day]
    fed = progress_in(records_directory)
    free = [name for name in due if fed is None or order_of(name) < order_of(fed.at.file)]
    return Leaving(free, len(due) - len(free))


def written_on(file: str) -> str:
    """The day on which a file of the log was begun."""
    return file[:_DAY]


def day_before(time_ms: int, days: int) -> str:
    """The day so many days earlier."""
    return rfc3339(max(0, time_ms - days * MS_PER_DAY))[:_DAY]
