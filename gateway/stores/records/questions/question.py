"""One question: its SQL, the values bound to it, and the type of a row of its answer.

`{name:Type}` in the SQL takes the value of that name, as ClickHouse binds it. A row's type has the
names of the columns; what is NULL is absent in it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import msgspec

if TYPE_CHECKING:
    from gateway.stores.records.reach import Answer

Row = TypeVar("Row", bound=msgspec.Struct)

ENDED_STATUSES: Final = "('SUCCEEDED', 'FAILED', 'CANCELLED')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Generic[Row]):
    """Asked of the shipped views; nobody's SQL but ours."""

    sql: str
    row: type[Row]
    values: Mapping[str, str | int]


def rows_of(answer: "Answer", row: type[Row]) -> list[Row]:
    """An answer's rows as what they are. Raises msgspec.ValidationError: the SQL is wrong."""
    names = [column.name for column in answer.meta]
    rows = msgspec.json.decode(answer.data, type=list[list[object]])
    return [
        msgspec.convert(dict(zip(names, values, strict=True)), type=row, strict=False)
        for values in rows
    ]


def nearest_rank(column: str, hundredths: int) -> str:
    """SQL of the least value that so many of a hundred do not exceed; NULL of no values.

    The engine takes place `floor(level * n)` from 0; a level just below gives `ceil(level * n) - 1`
    where that is a whole number, too, for n under 50 million. It selects and does not sort.
    """
    assert 0 < hundredths < 100
    return f"quantileExactOrNull(0.{hundredths - 1:02}9999999)({column})"
