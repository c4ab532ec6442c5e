"""The questions that a demo asks: a CSV file with a column `text`, `customer` if there is one.

Without a file the hotline's own are asked. Customers that a file does not name take turns, so that
a file of texts alone is still calls of several people.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from itertools import cycle
from pathlib import Path

CUSTOMERS = ("ada", "ben", "cleo")
"""Those of customers.json."""
OWN_FILE = "queries.csv"
FIELD_CHARACTERS_MAX = 131_072  # what the csv module takes as one field


class InputError(Exception):
    """A file that cannot be asked; the message says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One call of one customer."""

    text: str
    customer: str


def questions(file: Path | None, limit: int = 0) -> list[Question]:
    """All questions, or `limit` of them spread over the whole file. Raises InputError."""
    lines = _lines(file)
    found = list(_rows(lines, str(file or OWN_FILE)))
    if not found:
        raise InputError(f"{file}: there is no question in it")
    if not limit or limit >= len(found):
        return found
    return [found[number * len(found) // limit] for number in range(limit)]


def _lines(file: Path | None) -> list[str]:
    if file is None:
        own = files("reference_components.hotline") / OWN_FILE
        return own.read_text(encoding="utf-8").splitlines(keepends=True)
    try:
        return file.read_text(encoding="utf-8-sig").splitlines(keepends=True)
    except OSError as problem:
        raise InputError(f"{file}: {problem.strerror}") from problem
    except UnicodeDecodeError as problem:
        raise InputError(f"{file}: is not UTF-8 (byte {problem.start})") from problem


def _rows(lines: list[str], name: str) -> Iterator[Question]:
    turns = cycle(CUSTOMERS)
    reader = csv.DictReader(lines)
    try:
        if "text" not in (reader.fieldnames or ()):
            columns = ", ".join(reader.fieldnames or ()) or "nothing"
            raise InputError(f"{name}: needs a column named text in its first line, has {columns}")
        for row in reader:
            text = (row["text"] or "").strip()
            if text:
                yield Question(text=text, customer=row.get("customer") or next(turns))
    except csv.Error as problem:
        raise InputError(f"{name}, line {reader.line_num}: {problem}") from problem
