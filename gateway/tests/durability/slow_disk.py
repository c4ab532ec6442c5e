"""A store whose disk is slow, so that whoever answers before the sync is caught in the act."""

import threading

from gateway.stores.forgetful import ForgetfulStore

SYNC_S = 0.03
"""Far longer than an answer takes over loopback (~2 ms), short enough for hundreds of syncs."""


class SlowDisk(ForgetfulStore):
    """What was written when a sync began is on disk once the sync returns, not before."""

    def __init__(self) -> None:
        super().__init__()
        self._one_at_a_time = threading.Lock()

    def sync(self) -> None:
        with self._one_at_a_time:
            self._sync()

    def _sync(self) -> None:
        self.syncs += 1
        count = len(self._unsynced)
        if self._fail_sync and self.syncs >= self._fail_sync:
            super().sync()
        threading.Event().wait(SYNC_S)
        self._durable += self._unsynced[:count]
        del self._unsynced[:count]
