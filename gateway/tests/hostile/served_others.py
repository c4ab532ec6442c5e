"""While something costly is asked of a gateway, others still get their answers."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from gateway.tests.e2e.client import Client
from gateway.tests.hostile.conftest import Target

# How long another request may wait meanwhile: the largest file that is taken is read in one go,
# and on a busy machine that is seconds. What this catches took minutes.
OTHERS_S_MAX: Final = 10.0


@contextmanager
def others_are_served(target: Target) -> Iterator[None]:
    """Ask for something small all the time; no answer may take long."""
    slowest, ended = 0.0, threading.Event()

    def ask() -> None:
        nonlocal slowest
        with Client(f"http://{target.http}") as client:
            while not ended.is_set():
                began = time.monotonic()
                assert client.get("/v1/sessions/01ARZ3NDEKTSV4RRFFQ69G5FAV").status == 404
                slowest = max(slowest, time.monotonic() - began)
                ended.wait(0.01)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        ended.set()
        asking.join(30)
    assert slowest < OTHERS_S_MAX, f"another request waited {slowest:.2f} s"
