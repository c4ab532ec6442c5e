"""Rows of things that grant or govern: read as they were written, or the store counts as damaged.

Nothing of them is skipped: a gateway without one of its tokens, proposals or workflows would do
what nobody decided. Rows that it can do without are `gateway.runtime.kept_rows`.
"""

from typing import TypeVar

import msgspec

from gateway.stores.errors import StoreCorrupt
from gateway.stores.ports import Table

T = TypeVar("T")


def read_row(table: Table, row: tuple[bytes, bytes], *, kind: type[T]) -> T:
    """The row, a key and its value; StoreCorrupt names it, so that a person finds it."""
    key, value = row
    try:
        return msgspec.json.decode(value, type=kind)
    except msgspec.DecodeError as problem:
        name = key.replace(b"\0", b"/").decode("utf-8", "backslashreplace")
        what = f"the row {name!r} of table {table.name} cannot be read ({problem})"
        raise StoreCorrupt(f"{what}: restore a backup") from None
