"""A gateway that counts its own function calls: `counted_gateway.py serve ...` with BENCH_PROFILE.

SIGUSR1 begins, SIGUSR2 ends and writes the profile (cProfile's) to the file.
"""

import cProfile
import os
import signal
from pathlib import Path
from types import FrameType

from gateway.cli import main


def _run() -> None:
    profile = cProfile.Profile()
    path = Path(os.environ["BENCH_PROFILE"])

    def begin(number: int, frame: FrameType | None) -> None:
        profile.enable()

    def write(number: int, frame: FrameType | None) -> None:
        profile.disable()
        beside = path.with_suffix(".part")
        profile.dump_stats(str(beside))
        beside.replace(path)

    signal.signal(signal.SIGUSR1, begin)
    signal.signal(signal.SIGUSR2, write)
    main()


if __name__ == "__main__":
    _run()
