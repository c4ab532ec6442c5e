"""A moment in which Ctrl-C and SIGTERM wait: between starting a process and noting that it runs.

Without it an interrupt can fall just there, and leave a process that nobody will stop.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

HELD = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Signals that come inside are raised again at the end. Elsewhere than in the main thread,
    where no signal is ever handled, it changes nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        heard.append(number)

    before = {number: signal.signal(number, note) for number in HELD}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for one in dict.fromkeys(heard):
            signal.raise_signal(one)
