"""Records of every form that was ever written are read: by training, the records and `insight`."""

import hashlib
import json
from pathlib import Path
from typing import Final

import msgspec
import pytest
from typer.testing import CliRunner

from acp_spec.model.trajectory import SCHEMA_VERSION, Trajectory
from gateway.cli.insight import app as insight_command
from gateway.stores.forms import FORMS, NewerRecord, UnreadableRecord, is_newer, read_record
from gateway.stores.reader import TrajectoryReader
from gateway.stores.records.feed import read_lines
from gateway.stores.records.log_tail import Batch
from gateway.stores.records.rows import shape
from gateway.tests.forms import write

FOLDERS: Final = sorted(path for path in write.FOLDER.iterdir() if list(path.glob("*.jsonl")))
FILES: Final = sorted(write.FOLDER.glob("*/*.jsonl"))
RELEASED_BYTES: Final = {
    "0/001.jsonl": "58e3f5cf92d94f7dffe51519d48cd9e447c7930c1aec31ef9e5875df3c52ad26"
}
"""Closed files by their SHA-256."""

BATCH: Final = Batch("2026-11-30/0001.jsonl", 0, 1)


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def test_the_shape_of_a_trajectory_has_records_of_that_shape() -> None:
    kept = (write.present() / write.SHAPE_FILE).read_text()
    assert write.shape() == kept, (
        "the shape of a trajectory changed: `make gen`, then keep records of the new one with"
        " `python -m gateway.tests.forms.write`; a field that changed its meaning or went away"
        " needs a form in gateway/stores/forms.py too"
    )


def test_the_newest_records_are_those_that_this_version_writes() -> None:
    newest = max(write.present().glob("*.jsonl"))
    written = [msgspec.json.encode(one) + b"\n" for one in write.records()]
    assert {json.loads(line)["session_id"] for line in lines_of(newest)} <= {
        json.loads(line)["session_id"] for line in written
    }
    assert set(map(_keys, lines_of(newest))) <= set(map(_keys, written))


def _keys(line: bytes) -> tuple[str, ...]:
    return tuple(json.loads(line))


def test_every_form_has_its_folder_and_what_is_released_never_changes() -> None:
    assert {path.name for path in FOLDERS} == {*(form.name for form in FORMS), SCHEMA_VERSION}
    for name in write.RELEASED:
        files = {f"{name}/{path.name}" for path in (write.FOLDER / name).glob("*.jsonl")}
        assert files == {known for known in RELEASED_BYTES if known.startswith(f"{name}/")}
    for name, digest in RELEASED_BYTES.items():
        assert hashlib.sha256((write.FOLDER / name).read_bytes()).hexdigest() == digest


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_training_records_and_insight_read_every_line_of_every_form(path: Path) -> None:
    lines = lines_of(path)
    read = [read_record(line) for line in lines]
    assert all(one.opened_at and one.opened_at_ms for one in read)

    reader = TrajectoryReader(path, reviewed_only=False)
    assert {one.session_id for one in reader} == {one.session_id for one in read}
    assert reader.counts.quarantined == reader.counts.malformed == reader.counts.torn == 0

    for line in lines:  # of several lines of a session only the newest would be looked at
        told = read_lines([line], BATCH)
        assert not told.aside
        (session,) = told.sessions
        assert shape(session)["sessions"]

    asked = ["signals", "--from", str(path), "--json"]
    answer = CliRunner().invoke(insight_command, asked)
    assert answer.exit_code == 0, answer.output
    assert "left out" not in answer.output


def test_a_record_of_milliseconds_says_what_the_present_one_says_of_the_same_session() -> None:
    """The histories of then still replay, so both forms of one session are there."""
    old = lines_of(write.FOLDER / "0" / "001.jsonl")
    assert all("opened_at_ms" in json.loads(line) for line in old)
    present = [_known_then(one) for one in write.records()]
    features = [row.feature_schema for line in old for row in read_record(line).decisions]
    assert set(features) == {"recovery-1"}
    assert [n for n, line in enumerate(old) if _known_then(read_record(line)) not in present] == []


def _known_then(one: Trajectory) -> tuple[object, ...]:
    return (
        *(one.status, one.opened_at, one.ended_at, bytes(one.input), bytes(one.output)),
        *((row.queued_at, row.sent_at, row.ended_at, bytes(row.output)) for row in one.calls),
        *(
            (row.at, row.trigger, row.chosen, row.draw, [o.params for o in row.options])
            for row in one.decisions
        ),
        *((row.received_at, row.feedback) for row in one.feedback),
    )


def newer(version: str) -> bytes:
    """What a gateway of the future may write: unknown fields, another shape of known ones."""
    (line, *_) = lines_of(max(write.present().glob("*.jsonl")))
    told = json.loads(line) | {"schema_version": version, "thoughts": [{"deep": True}]}
    if is_newer(version):
        told["calls"] = {"by": "name"}
    return json.dumps(told).encode() + b"\n"


def test_a_newer_minor_version_is_read_and_a_newer_major_one_is_named() -> None:
    assert read_record(newer("1.99")).schema_version == "1.99"
    for version in ("2.0", "10.1", "", "next"):
        with pytest.raises(NewerRecord, match="a newer gateway wrote it"):
            read_record(newer(version))


@pytest.mark.parametrize(
    "line",
    [
        *(b"{", b"[]", b"\xff", b'{"schema_version":"1.0"}'),
        *(
            b'{"schema_version":"1.0","opened_at_ms":%s}' % rest
            for rest in (
                *(b'"x"', b"-9e99", b"99999999999999999", b"null"),
                *(b'1,"calls":[1]', b'1,"decisions":[{}]', b'1,"feedback":{}'),
                b'1,"decisions":[{"options":[{}]}]',
            )
        ),
    ],
)
def test_what_is_no_record_is_said_to_be_none(line: bytes) -> None:
    with pytest.raises(UnreadableRecord):
        read_record(line)


def session_of(line: bytes) -> str:
    name: str = json.loads(line)["session_id"]
    return name


def test_newer_records_are_counted_with_a_clear_message_and_all_others_are_read(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "trajectories" / "2026-11-30"
    folder.mkdir(parents=True)
    known = lines_of(max(write.present().glob("*.jsonl")))
    (folder / "0001.jsonl").write_bytes(
        b"".join([known[0], newer("2.0"), newer("3.1"), *known[1:]])
    )
    reader = TrajectoryReader(tmp_path, reviewed_only=False, newest_only=False)
    assert len(list(reader)) == len(known)
    assert reader.counts.quarantined == 2
    assert "0001.jsonl:2: quarantined: schema_version 2.0 is newer" in reader.counts.places[0]

    others = [line for line in known if session_of(line) != session_of(known[0])]
    told = read_lines([newer("2.0"), *others], BATCH)
    assert {one.session_id for one in told.sessions} == {session_of(line) for line in others}
    (aside,) = told.aside
    assert aside.why.startswith("schema_version 2.0 is newer than 1.0: a newer gateway wrote it")
    assert aside.session_id == session_of(known[0])

    answer = CliRunner().invoke(insight_command, ["signals", "--from", str(tmp_path)])
    assert answer.exit_code == 0, answer.output
    assert "2 x left out: records of a newer version, which a newer `acp` reads" in answer.output
