"""What a batch of lines says: the newest of each session, and what cannot be read."""

import msgspec

from acp_spec.model.trajectory import Trajectory
from gateway.stores.records.feed import read_lines
from gateway.stores.records.log_tail import Batch
from gateway.stores.records.tests.sessions import name_of, whole
from gateway.stores.trajectory_log import line_of

BATCH = Batch("2026-11-30/0001.jsonl", 100, 10_000_000)


def line(one: Trajectory) -> bytes:
    return line_of(msgspec.json.encode(one))


def unreadable(one: Trajectory) -> bytes:
    """Its head can be read, the rest not."""
    return line(one).replace(b'"status":"SUCCEEDED"', b'"status":"NEVER_HEARD"')


def test_of_a_session_only_the_newest_line_is_read_whatever_the_order() -> None:
    """A thousand judgements of one session are a thousand lines of growing length: with each of
    them decoded and masked, one who judges kept everybody's rows waiting for minutes."""
    old, new = (whole(1, sequence) for sequence in (7, 9))
    other = whole(2)
    for lines in (
        [unreadable(old), line(other), line(new)],
        [line(new), line(other), unreadable(old)],
    ):
        told = read_lines(lines, BATCH)
        assert {(one.session_id, one.sequence) for one in told.sessions} == {
            (name_of(1), 9),
            (name_of(2), 7),
        }
        assert told.aside == [], "what is superseded was not looked at"


def test_where_the_newest_cannot_be_read_it_is_put_aside_and_the_one_before_holds() -> None:
    lines = [line(whole(1, 7)), line(whole(1, 8)), unreadable(whole(1, 9))]
    told = read_lines(lines, BATCH)
    assert [one.sequence for one in told.sessions] == [8]
    (aside,) = told.aside
    assert aside.session_id == name_of(1)
    assert aside.start == BATCH.start + len(lines[0]) + len(lines[1])


def test_lines_without_a_head_are_each_put_aside() -> None:
    told = read_lines([b"no JSON\n", b'{"a": 1}\n', line(whole(1))], BATCH)
    assert [one.start for one in told.aside] == [100, 108]
    assert len(told.sessions) == 1
