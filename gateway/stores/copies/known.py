"""What a data directory has of the sessions of an import: by sequence, byte for byte, and erased.

Looks at every line of both tiers, at what the outbox has yet to write, and at what was deleted.
"""

import hashlib
from collections import defaultdict

from acp_spec.model.enums import Word
from gateway.stores.copies.log_lines import LogLines
from gateway.stores.ports import Store, Table
from gateway.stores.records.log_tail import Place
from gateway.stores.tables import erasing_row, parse_sequence_row, session_row
from gateway.stores.trajectory_log import Erased, Line, said_by

_DIGEST = 16
_WAITS = b""
"""Instead of a digest: the gateway itself will write this sequence, nobody knows its bytes yet."""


class Standing(Word):
    """How a line stands to what is there."""

    NEW = "NEW"
    THERE = "THERE"
    OLDER = "OLDER"
    ERASED = "ERASED"
    DIFFERS = "DIFFERS"


class Known:
    """Of these sessions, as it is now. Raises OSError."""

    def __init__(self, lines: LogLines, store: Store, *, session_ids: frozenset[str]) -> None:
        self._ids = session_ids
        self._newest: dict[str, int] = {}
        self._digests = defaultdict[Line, set[bytes]](set)
        self._erased = set[str]()
        for _, batch in lines.batches(Place()):
            for line in batch:
                self._learn(line.data)
        for one in session_ids:
            self._learn_of_store(store, one)

    def standing(self, head: Line, line: bytes) -> Standing:
        """What is to be done with a line of an import."""
        if head.session_id in self._erased:
            return Standing.ERASED
        there = self._digests.get(head)
        if there is not None:
            is_same = _WAITS in there or _digest(line) in there
            return Standing.THERE if is_same else Standing.DIFFERS
        is_older = head.sequence < self._newest.get(head.session_id, head.sequence)
        return Standing.OLDER if is_older else Standing.NEW

    def has_lines(self, session_id: str) -> bool:
        """Whether a line of it stands anywhere."""
        return session_id in self._newest

    def add(self, head: Line, digest: bytes) -> None:
        """It is there from here on."""
        self._digests[head].add(digest)
        newest = self._newest.get(head.session_id, head.sequence)
        self._newest[head.session_id] = max(newest, head.sequence)

    def add_line(self, head: Line, line: bytes) -> None:
        """The same of a line."""
        self.add(head, _digest(line))

    def _learn(self, line: bytes) -> None:
        said = said_by(line)
        if said is None or said.session_id not in self._ids:
            return
        if isinstance(said, Erased):
            self._erased.add(said.session_id)
        else:
            self.add_line(said, line)

    def _learn_of_store(self, store: Store, session_id: str) -> None:
        is_gone = store.get(Table.SESSION, session_row(session_id)) is not None
        if is_gone or store.get(Table.META, erasing_row(session_id)) is not None:
            self._erased.add(session_id)
        for key, _ in store.scan(Table.OUTBOX, session_row(session_id)):
            row = parse_sequence_row(key)
            if row.session_id == session_id:
                self.add(Line(row.session_id, row.sequence), _WAITS)


def _digest(line: bytes) -> bytes:
    return hashlib.blake2b(line, digest_size=_DIGEST).digest()
