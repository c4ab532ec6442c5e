"""Rows: what every table says of a session, always in the same bytes."""

import json
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.grounding import GroundedClaim, Grounding, GroundingVerdict, Review
from acp_spec.model.payload import payload
from acp_spec.model.reward_vector import (
    CommentReading,
    Correction,
    PartReward,
    Quality,
    RewardVector,
    RulesRef,
    StepReward,
    Validity,
)
from gateway.stores.records.columns import PAYLOAD_BYTES_MAX, tags_of
from gateway.stores.records.rows import shape
from gateway.stores.records.store import TABLES, migrations
from gateway.stores.records.tests.sessions import whole

DEFAULTED = {
    "rewards": {
        "is_gone",
        "weight",
        "operational",
        "shaped",
        "call_id",
        "source",
        "validity",
        "reason",
    },
    "feedback": {"recorded_by"},
}
"""Columns that a row may leave to the table."""


def _columns(table: str) -> set[str]:
    """The columns of a table as the migrations make it."""
    text = "\n".join(statement for step in migrations() for statement in step.statements)
    found = re.search(rf"CREATE TABLE {table}\s*\((.*?)\n\)\nENGINE", text, re.DOTALL)
    assert found is not None, table
    flat = re.sub(r"\([^()]*\)", "", re.sub(r"\([^()]*\)", "", found[1]))
    added = re.findall(rf"ALTER TABLE {table}\b(.*?)(?:\n[A-Z]|\Z)", text, re.DOTALL)
    later = re.findall(r"ADD COLUMN IF NOT EXISTS (\w+)", "".join(added))
    return {part.split()[0] for part in flat.split(",")} | set(later)


@pytest.mark.parametrize("table", TABLES)
def test_a_row_has_exactly_the_columns_of_its_table(table: str) -> None:
    columns = _columns(table)
    for row in shape(whole(1, comments=("#a",)))[table]:
        said = set(json.loads(row.line))
        assert said <= columns
        assert columns - said <= DEFAULTED.get(table, set())


def test_what_the_rules_make_of_a_session_stands_beside_what_was_given() -> None:
    one = whole(1)
    none = Quality(validity=Validity.NOT_JUDGED, reason="nobody judged")
    vector = RewardVector(
        rules=RulesRef(name="bank", version="2", digest="d"),
        as_of="2026-01-01T00:00:00Z",
        step=(StepReward(call_id="c1", step="act", quality=none, operational=-1.0, shaped=-0.5),),
        session=PartReward(quality=Quality(value=0.5, weight=2.0), operational=-1.0),
        long_term=PartReward(quality=none),
    )
    rewards = msgspec.structs.replace(one.rewards, vector=vector)
    rows = [
        json.loads(row.line)
        for row in shape(msgspec.structs.replace(one, rewards=rewards))["rewards"]
    ]
    by_channel = {row["channel"]: row for row in rows}
    assert by_channel["STEP"]["value"] is None
    assert (by_channel["STEP"]["validity"], by_channel["STEP"]["shaped"]) == ("NOT_JUDGED", -0.5)
    assert (by_channel["SESSION"]["value"], by_channel["SESSION"]["weight"]) == (0.5, 2.0)
    assert by_channel["LONG_TERM"]["name"] == "bank@2"
    assert set(by_channel["STEP"]) <= _columns("rewards")


def test_what_the_guard_found_stands_beside_each_claim_and_the_session() -> None:
    grounding = Grounding(
        claims=(
            GroundedClaim(claim=0, verdict=GroundingVerdict.CONTRADICTED, reason="OTHER_VALUE"),
        ),
        penalties=1,
        review=Review.WAITING,
    )
    shaped = shape(msgspec.structs.replace(whole(1), grounding=grounding))
    (claim,), (session,) = shaped["claims"], shaped["sessions"]
    assert json.loads(claim.line)["verdict"] == "CONTRADICTED"
    assert json.loads(session.line)["review"] == "WAITING"
    assert json.loads(shape(whole(1))["claims"][0].line)["verdict"] == ""


def test_what_was_understood_of_a_comment_counts_as_a_tag_too() -> None:
    one = whole(1, comments=("#late and rude",))
    read = CommentReading(
        feedback_id="f0", tags=("rude",), corrections=(Correction(right="blue", wrong="red"),)
    )
    rewards = msgspec.structs.replace(one.rewards, comments=(read,))
    shaped = shape(msgspec.structs.replace(one, rewards=rewards))
    (feedback,), (session,) = shaped["feedback"], shaped["sessions"]
    assert json.loads(feedback.line)["tags"] == ["late", "rude"]
    assert json.loads(feedback.line)["corrections"] == {"red": "blue"}
    assert json.loads(session.line)["comment_tags"] == ["late", "rude"]


def test_a_session_that_says_all_has_rows_in_every_table() -> None:
    assert set(shape(whole(1, comments=("x",)))) == set(TABLES)


def test_the_same_trajectory_gives_the_same_bytes_and_a_newer_one_the_same_hashes() -> None:
    assert shape(whole(1)) == shape(whole(1))
    older, newer = shape(whole(1, 7)), shape(whole(1, 9))
    for table in older:
        assert [row[:2] for row in older[table]] == [row[:2] for row in newer[table]]
        assert older[table] != newer[table]


def test_rows_that_are_named_alike_have_keys_of_their_own() -> None:
    one = whole(1)
    twice = msgspec.structs.replace(one, claims=one.claims * 3)
    assert len({row.key for row in shape(twice)["claims"]}) == 3


def test_a_payload_that_is_too_big_is_told_by_its_size_only() -> None:
    one = whole(1)
    big = payload(b'"' + b"x" * PAYLOAD_BYTES_MAX + b'"')
    calls = (msgspec.structs.replace(one.calls[0], arguments=big),)
    (row,) = shape(msgspec.structs.replace(one, calls=calls))["calls"]
    said = json.loads(row.line)
    assert said["arguments"] == ""
    assert said["arguments_bytes"] == PAYLOAD_BYTES_MAX + 2


def test_tags_are_words_after_a_hash_in_lower_case_each_once() -> None:
    assert tags_of("#Late, and #rude. #late #two-words not#this ##nor #") == (
        "late",
        "rude",
        "two-words",
    )


@given(st.text())
def test_any_comment_makes_a_row_that_is_one_line_of_json(text: str) -> None:
    (row,) = shape(whole(1, comments=(text,)))["feedback"]
    assert row.line.count(b"\n") == 1
    assert json.loads(row.line)["comment"] == text


def test_a_judgements_row_has_its_author_and_whose_token_brought_it() -> None:
    one = whole(1, comments=("x", "y"))
    by_another = msgspec.structs.replace(one.feedback[1], recorded_by="token:0a1b2c3d4e5f")
    rows = shape(msgspec.structs.replace(one, feedback=(one.feedback[0], by_another)))["feedback"]
    first, second = (json.loads(row.line) for row in rows)
    assert "recorded_by" not in first, "rows of before this was kept have the hash they had"
    assert (second["author"], second["recorded_by"]) == ("ann", "token:0a1b2c3d4e5f")


def test_an_authors_time_that_no_table_holds_is_left_out() -> None:
    one = whole(1, comments=("x",))
    given_ = msgspec.structs.replace(one.feedback[0].feedback, time="9999-01-01T00:00:00Z")
    rows = (msgspec.structs.replace(one.feedback[0], feedback=given_),)
    (row,) = shape(msgspec.structs.replace(one, feedback=rows))["feedback"]
    assert json.loads(row.line)["given_at"] is None
