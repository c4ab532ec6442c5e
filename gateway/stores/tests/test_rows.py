"""What grants or governs is read as it was written, or the store is damaged."""

import msgspec
import pytest

from gateway.stores.errors import StoreCorrupt
from gateway.stores.ports import Table
from gateway.stores.rows import read_row


class Right(msgspec.Struct, frozen=True):
    tenant: str


def test_a_row_is_what_was_written() -> None:
    assert read_row(Table.TOKEN, (b"k", b'{"tenant":"t"}'), kind=Right) == Right("t")


@pytest.mark.parametrize("value", [b"", b'{"tenant":', b'{"tenant":7}', b"{}", b"\xff"])
def test_one_that_cannot_be_read_is_named_with_what_to_do(value: bytes) -> None:
    with pytest.raises(StoreCorrupt) as damaged:
        read_row(Table.GOVERNANCE, (b"proposal\0\xff1", value), kind=Right)
    said = str(damaged.value)
    assert said.startswith("the row 'proposal/\\\\xff1' of table GOVERNANCE cannot be read (")
    assert said.endswith(": restore a backup")
