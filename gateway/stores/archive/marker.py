"""What the trajectory log knows of the files that have left it: one small file beside its days.

Written before a file leaves, by the archive's one writer; read by whoever reads the log, so that
nobody takes an archived trajectory for one that never was.
"""

import os
from pathlib import Path
from typing import Final

import msgspec

from gateway.stores.archive.object_store import sync_directory

MARKER: Final = "archive.json"


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """`url` and `gateway_id`: where the files are. `through`: the last that left; all before it
    left too. `expired_before`: days that retention took, if any.
    """

    url: str = ""
    gateway_id: str = ""
    through: str = ""
    expired_before: str = ""

    @property
    def day(self) -> str:
        """The day of the last file that left; empty if none did."""
        return self.through.partition("/")[0]


def left(log_directory: Path) -> Left:
    """What has left this log; nothing, where nothing has."""
    try:
        data = (log_directory / MARKER).read_bytes()
    except FileNotFoundError:
        return Left()
    return msgspec.json.decode(data, type=Left)


def mark(log_directory: Path, told: Left) -> None:
    """On disk when it returns."""
    beside = log_directory / (MARKER + ".part")
    with beside.open("wb") as file:
        file.write(msgspec.json.encode(told))
        file.flush()
        os.fsync(file.fileno())
    beside.replace(log_directory / MARKER)
    sync_directory(log_directory)
