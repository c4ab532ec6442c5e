"""What can go wrong with durable state, in words that tell a person what to do.

A store raises only these; foreign exceptions are translated once, inside the store. Errors about
one record name its session and sequence, so that one bad record never hides the other sessions.
"""


class StoreError(Exception):
    """Base of everything a store raises."""


class StoreBusy(StoreError):
    """Another process holds the directory."""


class StoreCorrupt(StoreError):
    """What is on disk cannot be read as it was written."""


class StoreTooNew(StoreError):
    """The directory was written by a newer gateway."""


class StoreFailed(StoreError):
    """A read, write or sync did not happen (disk full, input/output error, store closed)."""


class DirectoryUnusable(StoreFailed):
    """The data directory cannot be made, or not be read and written by this user."""


class RecordError(StoreError):
    """One record of one session cannot be used; the others can."""

    def __init__(self, session_id: str, sequence: int, *, what: str) -> None:
        super().__init__(f"session {session_id}, record at sequence {sequence}: {what}")
        self.session_id = session_id
        self.sequence = sequence


class RecordCorrupt(RecordError):
    """The record's bytes were changed, cut, or belong to another row."""


class EventUnknown(RecordError):
    """The record holds an event this gateway does not know: a newer one wrote it."""


class KeyGone(RecordError):
    """The session's key was destroyed (the session was deleted): its payloads are gone for good."""
