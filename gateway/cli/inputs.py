"""Inputs for `acp run`: one JSON value, or a file of many (JSON, JSON lines, CSV with a header).

JSON text passes as it is written; a CSV row becomes an object of strings by its header.
"""

import csv
import json
import sys
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, TextIO

from acp_spec.bindings.errors import invalid_request
from acp_spec.codec.scan import PayloadRefused, check_payload
from acp_spec.model.payload import Payload, payload

INPUT_BYTES_MAX = 4 * 1024 * 1024
STANDARD_INPUT = Path("-")


def inputs_of(text: str | None, file: Path | None, *, limit: int = 0) -> Iterator[Payload]:
    """Every input, in order, at most `limit` (0: all); `null` where none is given."""
    found = _all(text, file)
    for number, (place, data) in enumerate(found):
        if limit and number >= limit:
            return
        yield _checked(data, place)


def _all(text: str | None, file: Path | None) -> Iterator[tuple[str, bytes]]:
    if text is not None:
        yield "--input", text.encode()
    elif file is None:
        yield "--input", b"null"
    elif file.suffix == ".csv":
        yield from _csv_rows(file)
    elif file.suffix in (".jsonl", ".ndjson") or file == STANDARD_INPUT:
        yield from lines_of(file)
    else:
        yield str(file), _read(file).encode()


def _csv_rows(file: Path) -> Iterator[tuple[str, bytes]]:
    with _opened(file) as lines:
        for number, row in enumerate(csv.DictReader(lines), 2):
            yield f"{file}:{number}", json.dumps(row, ensure_ascii=False).encode()


def lines_of(file: Path) -> Iterator[tuple[str, bytes]]:
    """Each line that is not blank, with its place, as it is; of standard input for `-`."""
    with sys.stdin.buffer if file == STANDARD_INPUT else _opened_bytes(file) as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield f"{file}:{number}", line.strip()


def _checked(data: bytes, place: str) -> Payload:
    try:
        check_payload(data, max_bytes=INPUT_BYTES_MAX)
    except PayloadRefused as problem:
        raise invalid_request(f"{place}: {problem}") from None
    return payload(data)


def _read(file: Path) -> str:
    with _opened(file) as opened:
        return opened.read()


def _opened(file: Path) -> TextIO:
    return TextIOWrapper(_opened_bytes(file), encoding="utf-8", newline="")


def _opened_bytes(file: Path) -> BinaryIO:
    try:
        return file.open("rb")
    except OSError as problem:
        raise invalid_request(f"{file}: cannot be read: {problem.strerror}") from None
