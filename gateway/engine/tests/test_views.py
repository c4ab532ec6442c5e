"""A state as clients see it: the view, a manual step, the lineage page."""

import msgspec

from acp_spec.model.enums import Mode, StepStatus, StepType
from acp_spec.model.payload import payload
from acp_spec.model.session import Deviation, ManualStep
from gateway.engine import replay, views
from gateway.engine.events import AttemptStarted, CallCreated
from gateway.engine.manual import manual_call
from gateway.engine.tests.casting import Cast, Terms
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import CATALOG, FOUR_CALLS, gave, troupe, workflow_of


def four() -> Play:
    return Play(workflow_of(FOUR_CALLS), CATALOG, Cast(component=troupe())).open()


def test_the_view_of_a_running_session_names_its_steps_and_its_deadline() -> None:
    play = four()
    view = views.session_view(play.state)
    assert [(s.name, s.status.value) for s in view.steps] == [
        ("plan", "RUNNING"),
        ("act", "PENDING"),
        ("remember", "PENDING"),
        ("judge", "PENDING"),
    ]
    assert view.times is not None
    assert view.times.deadline_at == "2023-11-14T22:13:50.000Z"
    assert view.times.ended_at == ""


def test_the_view_at_the_end_has_output_version_and_times() -> None:
    play = four().run()
    view = views.session_view(play.state)
    assert bytes(view.output) == b'{"answer":"fine"}'
    assert view.state_version == play.state.version_text == "6.12.0"
    assert view.times is not None
    assert view.times.ended_at
    opened = views.opened_view(play.state)
    assert opened.session_id == view.session_id


def test_the_lineage_page_shows_what_was_meant_and_what_served() -> None:
    page = views.lineage_page(four().run().state)
    assert page.lineage.intended["action:read"] == "tools@1.0.0"
    assert page.served == {
        "plan": "planner@1.0.0",
        "read": "tools@1.0.0",
        "remember": "observer@1.0.0",
        "judge": "reflector@1.0.0",
    }
    assert {name: len(ids) for name, ids in page.calls.items()} == dict.fromkeys(
        ("plan", "act", "remember", "judge"), 1
    )


def test_a_deviation_shows_in_view_and_lineage() -> None:
    play = four().run()
    deviation = Deviation(
        step="plan", role="PLAN", intended="planner@1.0.0", served="planner@2.0.0"
    )
    events = [
        msgspec.structs.replace(e, deviation=deviation)
        if isinstance(e, AttemptStarted) and e.component == "planner"
        else e
        for e in play.journal
    ]
    state, _ = replay.play(events, play.workflow)
    assert views.session_view(state).deviations == (deviation,)
    assert views.lineage(state).deviations == (deviation,)


def test_a_manual_step_is_running_until_its_call_settles() -> None:
    cast = Cast(component=troupe(read=gave(1)))
    play = Play(None, CATALOG, cast, terms=Terms(mode=Mode.MANUAL)).open()
    wanted = ManualStep(
        step_type=StepType.TOOL, payload=payload(b'{"action":"read"}'), step_key="k"
    )
    made = manual_call(play.state, wanted, world=play.world())
    assert isinstance(made, CallCreated)
    play.feed(made)
    call_id = play.state.manual["k"]
    running = views.step_result(play.state, play.state.calls[call_id])
    assert running.status is StepStatus.RUNNING
    play.run(until_ms=100)
    done = views.step_result(play.state, play.state.calls[call_id])
    assert (done.status, bytes(done.response)) == (StepStatus.SUCCEEDED, b'{"output":1}')
    assert [s.name for s in views.session_view(play.state).steps] == ["k"]
