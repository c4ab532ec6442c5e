"""The trajectory that training reads: a row per attempt, every decision, what is missing."""

from acp_spec.codec.json import encode
from acp_spec.model.enums import SideEffect
from acp_spec.model.errors import Reason
from acp_spec.model.trajectory import SCHEMA_VERSION, Attempt, Trajectory
from gateway.engine.tests import troubles
from gateway.engine.tests.casting import Cast, Said
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import (
    ACCEPTED,
    CATALOG,
    FOUR_CALLS,
    Line,
    by_loop,
    failed,
    first,
    gave,
    gave_text,
    goal,
    judged,
    planned,
    troupe,
    workflow_of,
)
from gateway.engine.trajectories import trajectory


def four(**lines: Line) -> Play:
    return Play(workflow_of(FOUR_CALLS), CATALOG, Cast(component=troupe(**lines))).open().run()


def record(**lines: Line) -> Trajectory:
    return trajectory(four(**lines).state)


def rows(found: Trajectory, action: str) -> list[Attempt]:
    return [row for row in found.calls if row.action == action]


def test_there_is_one_row_per_attempt_with_its_own_outcome() -> None:
    found = rows(record(read=first(1, failed(), gave_text(b"0.10"))), "read")
    assert [(r.attempt, r.error is not None, bytes(r.output)) for r in found] == [
        (1, True, b""),
        (2, False, b"0.10"),
    ]
    assert found[0].ended_at_ms is not None
    assert found[1].sent_at_ms is not None
    assert found[1].sent_at_ms > found[0].ended_at_ms
    assert bytes(found[0].arguments) == b"{}"


def test_a_result_taken_over_is_a_row_of_its_own_and_says_from_where() -> None:
    found = rows(
        record(plan=planned(goal("a", "pay")), judge=by_loop(judged("REPLAN"), ACCEPTED)), "pay"
    )
    assert [(r.loop, r.reused, r.reused_from) for r in found] == [
        (0, False, ""),
        (1, True, found[0].call_id),
    ]
    assert found[1].sent_at_ms is None
    assert bytes(found[1].output) == bytes(found[0].output)


def test_a_redone_call_names_the_one_it_repeats() -> None:
    def judge(sent: object) -> Said:
        return judged("RETRY", retry_call_ids=[play.sent[1].created.call_id])

    play = Play(
        workflow_of(FOUR_CALLS), CATALOG, Cast(component=troupe(judge=by_loop(judge, ACCEPTED)))
    )
    play.open().run()
    found = rows(trajectory(play.state), "read")
    assert found[1].retry_of == found[0].call_id


def test_every_version_of_the_plan_and_every_reflection_is_kept() -> None:
    found = record(judge=by_loop(judged("REPLAN", critique="again"), ACCEPTED))
    assert [p.generation for p in found.plan] == [0, 1]
    assert [(r.verdict, r.loop) for r in found.reflections] == [("REPLAN", 0), ("ACCEPT", 1)]


def test_a_late_answer_marks_its_row_and_changes_no_outcome() -> None:
    late = Said(response=b'{"output":1}', after_ms=5_200)
    (row,) = rows(record(plan=planned(goal("a", "pay")), pay=late), "pay")
    assert row.late
    assert row.error is not None
    assert row.error.reason == "TIMEOUT"
    assert row.side_effect is SideEffect.PERFORMED


def test_an_answer_that_never_came_is_a_gap() -> None:
    found = record(plan=planned(goal("a", "pay")), pay=None)
    assert len(found.gaps) == 1
    assert "attempt 1" in found.gaps[0].what
    running = Play(workflow_of(FOUR_CALLS), CATALOG, Cast(component=troupe())).open()
    assert trajectory(running.state).gaps[-1].what == "end"


def test_decisions_say_how_the_call_ended() -> None:
    found = record(read=first(1, failed(), gave(1)))
    assert [d.ended_as for d in found.decisions] == ["SUCCEEDED"]
    found = record(read=failed(Reason.INVALID_REQUEST))
    assert [d.ended_as for d in found.decisions] == ["FAILED"]


def test_a_plan_that_was_rejected_is_kept_with_the_reason() -> None:
    found = record(plan=planned(goal("a", "read"), goal("a", "read")))
    (row,) = (r for r in found.calls if r.role == "PLAN")
    assert row.error is not None
    assert row.error.reason == "PLAN_REJECTED"
    assert b"sub_goals" in bytes(row.output)


def test_an_answer_that_could_not_be_read_can_be_shown_all_the_same() -> None:
    """A whole trajectory could not be made because one answer was no Execute response."""
    (row,) = rows(record(read=Said(response=b'{"output":1,"retries_spent":"x"}')), "read")
    assert row.error is not None
    assert row.error.reason == "CONTRACT_VIOLATION"


def test_rewards_claims_and_observations_stand_as_they_came() -> None:
    judge = judged(
        "ACCEPT",
        rewards=[{"name": "quality", "value": 0.5}],
        claims=[{"text": "it is so", "value": 1}],
    )
    remember = Said(response=b'{"stored":2,"memory":[{"id":"m","data":0.10}]}')
    found = record(judge=judge, remember=remember)
    assert [(r.name, r.value) for r in found.reflector_rewards] == [("quality", 0.5)]
    assert found.claims[0].text == "it is so"
    (observed,) = found.observations
    assert (observed.stored, bytes(observed.memory)) == (2, b'[{"id":"m","data":0.10}]')


def test_feedback_is_listed_in_the_order_it_came() -> None:
    play = four()
    troubles.judge(play)
    (row,) = trajectory(play.state).feedback
    assert row.state_version == play.state.version_text
    assert trajectory(play.state).sequence == len(play.journal)


def test_it_can_be_written_as_json_whatever_happened() -> None:
    for seed in range(60):
        state = troubles.random_play(seed).open().run().state
        found = trajectory(state)
        assert found.schema_version == SCHEMA_VERSION
        assert encode(found).startswith(b"{")
        for call in state.calls.values():
            listed = [r.attempt for r in found.calls if r.call_id == call.created.call_id]
            assert listed == list(range(1, max(1, len(call.attempts)) + 1))
