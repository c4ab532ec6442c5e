"""What users and clocks do to the records: nothing is lost, and nothing is shown wrong."""

import json
from pathlib import Path

import msgspec
import pytest

from acp_spec.model.enums import FeedbackKind
from acp_spec.model.payload import payload
from acp_spec.model.session import Feedback
from acp_spec.model.times import MS_PER_DAY, rfc3339
from acp_spec.model.trajectory import FeedbackRow, Trajectory
from gateway.stores.records.feed_status import Outcome
from gateway.stores.records.reach import Limits, Reader
from gateway.stores.records.tests.childhood import Child
from gateway.stores.records.tests.sessions import AT_MS, line, new_log, put, whole

HOSTILE = (
    "<script>alert(1)</script>",
    "'; DROP TABLE sessions; --",
    "a\x00b\x1b[31m\x7f\u202e\ufeff\u2028",
    "\\N\\t\\\\ {sql:String} %s $$ `x`",
    "\U0001f600 e\u0301 \ufffe",
    "#<b>tag #late",
)


def asked(child: Child, sql: str) -> list[list[object]]:
    reader = Reader(child.endpoint, timeout_ms_max=60_000)
    try:
        rows: list[list[object]] = msgspec.json.decode(
            reader.query(sql, Limits(timeout_ms=60_000, rows=10_000)).data
        )
        return rows
    finally:
        reader.close()


def test_markup_and_control_characters_stand_in_the_rows_as_they_were_written(
    tmp_path: Path,
) -> None:
    one = whole(1, comments=HOSTILE)
    said = [json.dumps({text: text}, ensure_ascii=True).encode() for text in HOSTILE]
    calls = tuple(
        msgspec.structs.replace(one.calls[0], call_id=f"c{n}", arguments=payload(text))
        for n, text in enumerate(said)
    )
    one = msgspec.structs.replace(one, calls=calls, labels={HOSTILE[0]: HOSTILE[2]})
    put(new_log(tmp_path / "trajectories"), one)
    with Child(tmp_path) as child:
        assert child.fed().counts.quarantined == 0
        comments = asked(child, "SELECT comment FROM v_feedback ORDER BY feedback_id")
        assert [text for (text,) in comments] == list(HOSTILE)
        arguments = asked(child, "SELECT arguments FROM v_calls ORDER BY call_id")
        assert [str(text).encode() for (text,) in arguments] == said
        assert asked(child, "SELECT labels FROM v_sessions") == [[{HOSTILE[0]: HOSTILE[2]}]]
        assert child.compared().comparison.outcome is Outcome.IDENTICAL


def test_a_payload_of_five_megabytes_is_told_by_size_and_hash_and_keeps_nobody_up(
    tmp_path: Path,
) -> None:
    big = json.dumps({"rows": ["x" * 99] * 50_000, "password": "hunter2-of-the-vault"}).encode()
    assert len(big) > 5_000_000
    one = whole(1)
    large = msgspec.structs.replace(one.calls[0], arguments=payload(big))
    one = msgspec.structs.replace(one, calls=(large, *one.calls[1:]))
    put(new_log(tmp_path / "trajectories"), one, whole(2))
    with Child(tmp_path) as child:
        assert child.fed().counts.sessions == 2
        sizes = "SELECT arguments_bytes, arguments FROM v_calls WHERE arguments_bytes > 1000000"
        assert asked(child, sizes) == [[len(big), ""]]
        assert asked(child, "SELECT count() FROM v_sessions") == [[2]]


def at(number: int, time_ms: int) -> Trajectory:
    return msgspec.structs.replace(
        whole(number), opened_at=rfc3339(time_ms), ended_at=rfc3339(time_ms - 5)
    )


def test_whatever_the_clock_says_every_session_is_read_on_at_once(tmp_path: Path) -> None:
    """It is set back by days, far ahead, and back again, also while a session runs."""
    log = new_log(tmp_path / "trajectories")
    clocks = [AT_MS, AT_MS - 3 * MS_PER_DAY, 0, 4_000_000_000_000, AT_MS]
    with Child(tmp_path) as child:
        for number, now_ms in enumerate(clocks):
            log.append([line(at(number, now_ms))], now_ms)
            assert child.fed().counts.sessions == number + 1
        times = asked(child, "SELECT toUnixTimestamp64Milli(opened_at) FROM v_sessions ORDER BY 1")
        assert [time for (time,) in times] == sorted(clocks)
        assert asked(child, "SELECT count() FROM v_sessions WHERE duration_ms != 0") == [[0]]
        assert child.compared().comparison.outcome is Outcome.IDENTICAL


def judgement(number: int) -> FeedbackRow:
    score, name = number % 5 + 1.0, f"{number}"
    given = Feedback(kind=FeedbackKind.RATING, score=score, author=name, feedback_id=name)
    return FeedbackRow(feedback=given, received_at=rfc3339(AT_MS + number))


@pytest.mark.long
def test_a_million_tiny_feedbacks_are_a_million_rows_once(tmp_path: Path) -> None:
    rows = tuple(judgement(number) for number in range(1_000))
    log = new_log(tmp_path / "trajectories")
    with Child(tmp_path) as child:
        for first in range(0, 1_000, 50):
            numbers = range(first, first + 50)
            some = [msgspec.structs.replace(whole(n), feedback=rows) for n in numbers]
            put(log, *some, *some[:3])  # told twice, as after a crash
            child.fed()
        count = "SELECT count(), uniqExact(session_id, feedback_id), round(avg(score), 3)"
        assert asked(child, f"{count} FROM v_feedback") == [[1_000_000, 1_000_000, 3.0]]
        arrays = "SELECT min(length(scores)), max(feedback_count) FROM v_sessions"
        assert asked(child, arrays) == [[1_000, 1_000]]
