"""A journal run again commands what it did, and what does not fit is found."""

import typing

import msgspec
import pytest

from acp_spec.model.enums import SideEffect
from gateway.engine import replay
from gateway.engine.commands import Command
from gateway.engine.events import (
    AnyEvent,
    AttemptEnded,
    CallCreated,
    Decided,
    OperationEnded,
    SessionEnded,
    StepEnded,
    Timer,
    TimerFired,
)
from gateway.engine.tests.casting import Cast
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import CATALOG, FOUR_CALLS, failed, first, gave, troupe, workflow_of


def four() -> Play:
    cast = Cast(component=troupe(read=first(1, failed(), gave(1))))
    return Play(workflow_of(FOUR_CALLS), CATALOG, cast).open().run()


def test_every_event_says_which_command_it_answers() -> None:
    assert set(replay.ANSWERS) == set(typing.get_args(AnyEvent))
    assert {kind for kind in replay.ANSWERS.values() if kind} <= set(typing.get_args(Command))


def test_a_journal_gives_the_same_state_and_commands() -> None:
    play = four()
    found = replay.check(play.journal, play.workflow)
    assert found.same, found.difference
    assert found.proven
    assert found.events == len(play.journal)
    state, played = replay.play(play.journal, play.workflow)
    assert state == play.state
    assert sum(len(one.commands) for one in played) == found.commands


def test_a_journal_whose_session_has_not_ended_is_explained_so_far_and_not_proven() -> None:
    play = four()
    for kept in range(1, len(play.journal)):
        found = replay.check(play.journal[:kept], play.workflow)
        assert found.same
        assert not found.proven
        assert b'"proven":false' in msgspec.json.encode(found)


def test_an_outcome_that_was_changed_afterwards_is_found() -> None:
    play = four()
    place = next(
        n for n, e in enumerate(play.journal) if isinstance(e, AttemptEnded) and e.error is None
    )
    forged = msgspec.structs.replace(play.journal[place], side_effect=SideEffect.UNKNOWN)
    changed = [*play.journal[:place], forged, *play.journal[place + 1 :]]
    assert replay.check(changed, play.workflow).same, "it commands the same"
    wrong = msgspec.structs.replace(play.journal[-1], commands_digest="00")
    found = replay.check([*play.journal[:-1], wrong], play.workflow)
    assert "another digest" in found.difference
    assert not found.proven


def test_an_event_that_cannot_follow_what_came_before_is_told_with_its_number() -> None:
    play = four()
    for missing in range(1, len(play.journal) - 1):
        shorter = [*play.journal[:missing], *play.journal[missing + 1 :]]
        found = replay.check(shorter, play.workflow)
        assert not found.same, f"nobody missed event {missing + 1}"
    assert not replay.check(play.journal[1:], play.workflow).same
    assert "begins with the opening" in replay.check(play.journal[1:], play.workflow).difference


@pytest.mark.parametrize(
    "stray",
    [
        StepEnded(at_ms=1, step="plan", status=four().state.steps["plan"].status),
        TimerFired(at_ms=1, timer=Timer.BACKOFF, call_id="x", attempt=1),
        OperationEnded(at_ms=1, call_id="x", attempt=1),
    ],
)
def test_an_event_that_no_command_asked_for_is_named(stray: AnyEvent) -> None:
    play = four()
    numbered = [replay.Played(number=1, event=stray, commands=())]
    difference = replay._unexplained(numbered)
    assert difference.startswith(f"event 1 ({type(stray).__name__}): no ")
    assert play.state.terminal


def test_the_events_that_the_engine_causes_all_answer_something() -> None:
    caused = {CallCreated, StepEnded, SessionEnded, AttemptEnded, Decided, TimerFired}
    assert all(replay.ANSWERS[kind] is not None for kind in caused)
