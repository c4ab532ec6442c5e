"""An output that breaks the contract is no output: the session fails or falls back, and says so."""

from typing import Final

import msgspec
import pytest

from gateway.engine.advance import advance
from gateway.engine.events import FeedbackGiven, SessionEnded
from gateway.engine.rejections import OUTPUT_CHECK
from gateway.engine.step import begin
from gateway.engine.tests.casting import Cast, Terms, opening
from gateway.engine.tests.laws import check_end, watch
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import CATALOG, ONE_ACTION, gave, troupe, workflow_of
from gateway.engine.world import World

WORKFLOW: Final = ONE_ACTION % "read" + "fallback: {output: {fee: 0}}\n"
CONTRACT: Final = (
    "contract: {output_schema: {required: [fee], properties: {fee: {type: integer}}}%s}\n"
)
FALLS_BACK: Final = CONTRACT % ", on_output_breach: fallback"


def ended(text: str, output: object) -> Play:
    cast = Cast(component=troupe(read=gave(output)))
    play = watch(Play(workflow_of(text), CATALOG, cast)).open().run()
    check_end(play)
    return play


def told(play: Play) -> list[str]:
    given = [event for event in play.journal if isinstance(event, FeedbackGiven)]
    assert all(one.feedback.author == OUTPUT_CHECK for one in given)
    return [one.feedback.comment for one in given]


def test_an_output_that_fits_is_given_out_byte_for_byte() -> None:
    play = ended(WORKFLOW + CONTRACT % "", {"fee": 12345678901234567890})
    assert bytes(play.state.output) == b'{"fee":12345678901234567890}'
    assert told(play) == []


@pytest.mark.parametrize("output", [{"fee": "12"}, {}, None])
def test_an_output_that_does_not_fit_fails_the_session_and_names_the_place(output: object) -> None:
    play = ended(WORKFLOW + CONTRACT % "", output)
    failure = play.state.error
    if output is None:  # `required` says nothing of what is no object
        assert play.status == "SUCCEEDED"
        return
    assert failure is not None
    assert (play.status, failure.reason) == ("FAILED", "CONTRACT_VIOLATION")
    assert "output_schema: /" in failure.message
    assert told(play) == [failure.message]
    assert bytes(play.state.output) == b""


def test_where_the_contract_says_so_the_session_falls_back_and_the_breach_is_recorded() -> None:
    play = ended(WORKFLOW + FALLS_BACK, {"fee": "12"})
    assert (play.status, play.state.fell_back) == ("SUCCEEDED", True)
    assert bytes(play.state.output) == b'{"fee":0}'
    assert "/fee" in told(play)[0]


def test_a_twin_whose_own_version_does_not_take_the_input_fails_before_anything_is_sent() -> None:
    text = ONE_ACTION % "read" + "contract: {input_schema: {required: [gone]}}\n"
    workflow, cast = workflow_of(text), Cast(component=troupe())
    opened = msgspec.structs.replace(opening(workflow, CATALOG, Terms()), twin_of="another")
    state, _ = begin(workflow, opened)
    (end,) = advance(state, World(at_ms=opened.at_ms, catalog=CATALOG))
    assert isinstance(end, SessionEnded)
    assert end.error is not None
    assert end.error.reason == "CONTRACT_VIOLATION"
    assert Play(workflow, CATALOG, cast).open().sent, (
        "a client's input was asked for at its opening"
    )


def test_a_fallback_that_breaks_the_contract_itself_is_not_given_out() -> None:
    text = WORKFLOW.replace("{fee: 0}", "{fee: none}") + FALLS_BACK
    play = ended(text, {"fee": "12"})
    assert play.state.error is not None
    assert (play.status, play.state.error.reason) == ("FAILED", "CONTRACT_VIOLATION")
