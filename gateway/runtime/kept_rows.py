"""What a gateway kept of its own judgements, read at its start: rows that can be read.

A row that cannot is told and left where it is: no count, drill or breach is worth a gateway that
does not start. Not for what grants or governs (tokens, proposals): there nothing is skipped.
"""

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from gateway.stores.ports import Store, Table
from gateway.telemetry.logs import get_log

T = TypeVar("T")
log = get_log("gateway.rows")


def kept_rows(
    store: Store, prefix: bytes, *, kind: type[T], ending: bytes = b""
) -> Iterator[tuple[bytes, T]]:
    """The key behind its prefix, and the row, of all that can be read and whose key ends so."""
    for key, value in store.scan(Table.GOVERNANCE, prefix):
        if not key.endswith(ending):
            continue
        try:
            row = msgspec.json.decode(value, type=kind)
        except msgspec.DecodeError as problem:
            log.error("row_unreadable", cause=problem, key=key.decode("utf-8", "replace"))
            continue
        yield key[len(prefix) :], row
