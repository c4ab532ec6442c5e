"""Scoring history again: the same inputs give the same bytes, and what was is left as it was."""

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from acp_spec.model.enums import FeedbackKind
from acp_spec.model.times import rfc3339
from acp_spec.model.trajectory import Trajectory
from acp_spec.sdk.cli import Exit
from gateway.cli.rewards import app
from gateway.rewards.tests.records import ENDED_MS, said, trajectory
from gateway.rewards.tests.test_decay_fit import made

RULES = """
rewards: r
version: 1.0.0
rules: [{name: stars, kind: outcome, each: feedback, value: feedback.score}]
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three sessions; the first was judged 0.2, and 1.0 by the same person a second later."""
    first = said(0.2, delay_ms=1_000)
    second = said(1.0, delay_ms=2_000)
    records = [
        _record("a", 5),
        _record("b", 5),
        _record("a", 6, feedback=(first,)),
        _record("a", 7, feedback=(second,)),
        _record("c", 5, feedback=(said(0.5, delay_ms=9_000),)),
    ]
    folder = tmp_path / "d" / "trajectories" / "1970-01-01"
    folder.mkdir(parents=True)
    text = b"".join(msgspec.json.encode(one) + b"\n" for one in records)
    (folder / "0001.jsonl").write_bytes(text)
    (tmp_path / "rules.yaml").write_text(RULES)
    return tmp_path / "d"


def _record(session: str, sequence: int, **changes: object) -> Trajectory:
    return trajectory(session_id=session, sequence=sequence, **changes)


def _run(*words: str | Path) -> Any:
    return CliRunner().invoke(app, [*map(str, words), "--json"])


def _rescore(data: Path, *words: str | Path) -> Any:
    return _run("rescore", "--from", data, "--rules", data.parent / "rules.yaml", *words)


def _digests(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_twice_gives_the_same_bytes_and_touches_nothing_that_was(
    data: Path, tmp_path: Path
) -> None:
    before = _digests(data)
    one = _rescore(data)
    assert one.exit_code == Exit.OK, one.output
    scored = json.loads(one.stdout)
    assert (scored["sessions"], scored["is_new"], scored["as_of"]) == (
        3,
        True,
        rfc3339(ENDED_MS + 9_000),
    )
    after = _digests(data)
    assert {path: after[path] for path in before} == before
    assert json.loads(_rescore(data).stdout) == {**scored, "is_new": False}
    beside = tmp_path / "other.jsonl"
    assert json.loads(_rescore(data, "--to", beside).stdout)["sha256"] == scored["sha256"]
    assert beside.read_bytes() == Path(scored["file"]).read_bytes()
    assert [path.name for path in beside.parent.glob("*.part")] == []
    rows = [json.loads(line) for line in beside.read_text().splitlines()]
    assert [row["session_id"] for row in rows] == ["b", "a", "c"]
    assert {row["vector"]["rules"]["digest"] for row in rows} == {scored["rules"]["digest"]}
    assert {row["vector"]["as_of"] for row in rows} == {scored["as_of"]}
    session = [one for one in scored["means"] if one["of"] == "session"]
    assert [(one["value"], one["missing_share"]) for one in session] == [(0.75, 1 / 3)]


@pytest.mark.parametrize(
    ("after_ms", "scores", "left_out"),
    [
        (0, [None, None], 1),
        (1_000, [None, 0.2], 1),
        (2_500, [None, 1.0], 1),
        (9_000, [None, 1, 0.5], 0),
    ],
)
def test_as_of_a_time_counts_what_was_said_then_also_where_it_was_revised_since(
    data: Path, after_ms: int, scores: list[float | None], left_out: int
) -> None:
    scored = json.loads(_rescore(data, "--as-of", rfc3339(ENDED_MS + after_ms)).stdout)
    rows = [json.loads(line) for line in Path(scored["file"]).read_text().splitlines()]
    found = {row["session_id"]: row["vector"]["session"]["quality"].get("value") for row in rows}
    assert [found[name] for name in sorted(found, key="bac".index)] == scores
    assert scored["not_known_yet"] == left_out


def test_a_file_of_another_run_is_never_written_over(data: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken.jsonl"
    taken.write_text("mine\n")
    refused = _rescore(data, "--to", taken)
    assert refused.exit_code == Exit.CONFLICT
    assert taken.read_text() == "mine\n"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--as-of", "yesterday"), Exit.USAGE),
        (("--to", "trajectories/new.jsonl"), Exit.USAGE),
        (("--to", "rules.yaml/new.jsonl"), Exit.USAGE),
    ],
)
def test_what_cannot_be_is_refused_with_an_exit_code(
    data: Path, words: tuple[str, str], code: Exit
) -> None:
    (data / "rules.yaml").write_text(RULES)
    option, text = words
    value = data / text if option == "--to" else text
    assert _rescore(data, option, value).exit_code == code
    assert _digests(data).keys() >= {str(data / "trajectories" / "1970-01-01" / "0001.jsonl")}


def test_a_folder_that_is_no_data_directory_needs_a_place_and_a_missing_one_is_not_found(
    data: Path, tmp_path: Path
) -> None:
    assert _rescore(data / "trajectories").exit_code == Exit.USAGE
    bare = _run("rescore", "--from", tmp_path / "none", "--rules", tmp_path / "rules.yaml")
    assert bare.exit_code == Exit.NOT_FOUND
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(RULES.replace("outcome", "outcom"))
    assert _run("rescore", "--from", data, "--rules", wrong).exit_code == Exit.USAGE


def test_means_are_told_with_what_is_missing_and_people_see_them_too(data: Path) -> None:
    found = json.loads(_run("means", "--from", data).stdout)
    assert (found["sessions"], found["without_rules"], found["means"]) == (3, 3, [])
    assert [(one["kind"], one["drawn"], one["volunteered"]) for one in found["rates"]] == [
        ("RATING", 0, 2)
    ]
    told = CliRunner().invoke(app, ["means", "--from", str(data)])
    assert "3 sessions, 3 without rules" in told.output
    rules = data.parent / "rules.yaml"
    words = ["rescore", "--from", str(data), "--rules", str(rules)]
    assert "33.3%" in CliRunner().invoke(app, words).output


def test_sessions_are_drawn_for_review_with_their_probability(data: Path) -> None:
    lines = _run("draw", "--from", data, "--count", "3").stdout.splitlines()
    drawn = [json.loads(line) for line in lines]
    assert {one["session_id"] for one in drawn} <= {"a", "b", "c"}
    assert drawn
    assert all(0 < one["sampling_probability"] <= 1 for one in drawn)


def test_a_half_life_is_fitted_from_records_and_what_cannot_be_known_is_said(
    data: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    with (folder / "1.jsonl").open("wb") as file:
        for number, one in enumerate(made(300, 6.0)):
            ((delay_ms, score),) = one.signals
            signal = said(score, FeedbackKind.VALIDATION, delay_ms=delay_ms, author="linter")
            later = said(float(one.label), FeedbackKind.OUTCOME, delay_ms=10**9, author="crm")
            record = _record(f"s{number}", 5, feedback=(signal, later))
            file.write(msgspec.json.encode(record) + b"\n")
    found = json.loads(_run("fit-decay", "--from", folder).stdout)
    assert (found["verdict"], found["samples"]) == ("FITTED", 300)
    assert found["lower_hours"] < 6 < found["upper_hours"]
    told = CliRunner().invoke(app, ["fit-decay", "--from", str(folder), "--signal", "rating"])
    assert told.output.startswith("not identifiable: 0 labelled sessions with signals")
    wrong = _run("fit-decay", "--from", data, "--signal", "vibes")
    assert wrong.exit_code == Exit.USAGE
