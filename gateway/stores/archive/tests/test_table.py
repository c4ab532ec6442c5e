"""The Parquet form: typed columns, and every line back byte for byte."""

import io
import tempfile
from pathlib import Path

import pyarrow.parquet
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.stores.archive.packing import pack, rebuild, unpack
from gateway.stores.archive.table import COLUMNS
from gateway.stores.records.tests.sessions import line, name_of, new_log, whole

DOCS = Path(__file__).parents[4] / "docs" / "archive.md"
LINE = st.one_of(
    st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"") + b"\n"),
    st.integers(0, 9).map(lambda length: b" " * length + b"\n"),
    st.integers(0, 3).map(lambda number: line(whole(number))),
)


@settings(max_examples=15, deadline=None)
@given(lines=st.lists(LINE, max_size=8), torn=st.binary(max_size=5))
def test_any_file_comes_back_from_either_form(lines: list[bytes], torn: bytes) -> None:
    raw = b"".join(lines) + torn.replace(b"\n", b"")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        packed, table, back = folder / "packed", folder / "table", folder / "back"
        found = pack(io.BytesIO(raw), packed, table=table)
        assert found.raw_bytes == len(raw)
        unpack(packed, back, raw_sha256=found.raw_sha256)
        assert back.read_bytes() == raw
        rebuild(table, back, raw_sha256=found.raw_sha256)
        assert back.read_bytes() == raw


def test_the_columns_say_what_the_session_says(tmp_path: Path) -> None:
    one = whole(1, comments=("late",))
    future = b'{"session_id":"S","sequence":3,"schema_version":"9.0","brand_new":1}\n'
    log = new_log(tmp_path / "log")
    log.entomb([name_of(5)], 0)
    log.close()
    (buried,) = (tmp_path / "log").rglob("*.jsonl")
    lines = [line(one), future, b"   \n", b"nothing\n", b"\xff\n", buried.read_bytes()]
    pack(lines, tmp_path / "packed", table=tmp_path / "table")
    rows = pyarrow.parquet.read_table(tmp_path / "table").to_pylist()
    first = rows[0]
    assert first["opened_at"].isoformat().startswith("2026-09-21T14:13:20.001")
    told = {name: value for name, value in first.items() if name not in ("opened_at", "ended_at")}
    assert told == {
        "offset": 0,
        "kind": "SESSION",
        "session_id": name_of(1),
        "sequence": 7,
        "schema_version": "1.0",
        "lineage_id": "l1",
        "tenant": "default",
        "workflow": "hotline@1.0",
        "status": "SUCCEEDED",
        "error_reason": None,
        "fell_back": False,
        "duration_ms": 40,
        "calls": 1,
        "attempts": 2,
        "actions": ["card.status", "card.status"],
        "components": ["cards@1.0", "cards@1.0"],
        "feedback": 1,
        "quality": 0.5,
        "trajectory": line(one).decode(),
        "trajectory_bytes": None,
    }
    kinds = ["SESSION", "SESSION", "BLANK", "OTHER", "OTHER", "TOMBSTONE"]
    assert [row["kind"] for row in rows] == kinds
    assert (rows[1]["session_id"], rows[1]["sequence"], rows[1]["status"]) == ("S", 3, None)
    assert (rows[4]["trajectory"], rows[4]["trajectory_bytes"]) == (None, b"\xff\n")
    assert rows[5]["session_id"] == name_of(5)


def test_every_column_is_documented() -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert [name for name in COLUMNS if f"| `{name}` |" not in text] == []
