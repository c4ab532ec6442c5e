"""Who took part in a session, who is to blame for its fallback: of a session as of its record."""

import msgspec
import pytest

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import AcpError, Reason
from gateway.engine.fallback_blame import of_session
from gateway.engine.record_blame import of_record
from gateway.engine.states import CallState
from gateway.engine.tests.casting import Cast, Gate, Terms
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import (
    CATALOG,
    FOUR_CALLS,
    Line,
    by_loop,
    by_name,
    by_seed,
    failed,
    first,
    gave,
    goal,
    judged,
    planned,
    troupe,
    workflow_of,
)
from gateway.engine.trajectories import trajectory

FALLING = FOUR_CALLS + "fallback: {output: {n: 0}}\n"
EVERYBODY = {"planner", "tools", "observer", "reflector"}


def played(lines: dict[str, Line], *, gate: Gate | None = None, seed: int = 1) -> Play:
    cast = Cast(component=by_name(lines))
    if gate is not None:
        cast = msgspec.structs.replace(cast, gate=gate)
    play = Play(workflow_of(FALLING), CATALOG, cast, terms=Terms(seed=seed))
    return play.open().run(until_ms=60_000)


def blamed(play: Play) -> dict[str, bool]:
    """By the session, which its record must agree with."""
    found = dict(of_session(play.state))
    assert found == dict(of_record(trajectory(play.state)))
    return found


def test_without_a_fallback_everybody_took_part_and_nobody_is_to_blame() -> None:
    assert blamed(played({})) == dict.fromkeys(EVERYBODY, False)


def test_a_fallback_is_blamed_on_those_whose_calls_failed() -> None:
    play = played({"read": failed(Reason.INTERNAL), "judge": judged("FALLBACK")})
    assert blamed(play) == dict.fromkeys(EVERYBODY, False) | {"tools": True}


def test_where_no_call_failed_planner_and_executors_are_to_blame() -> None:
    play = played({"judge": judged("FALLBACK")})
    assert blamed(play) == dict.fromkeys(EVERYBODY, False) | {"tools": True, "planner": True}


def test_a_call_that_was_made_good_by_a_retry_is_no_failed_one() -> None:
    play = played(
        {"read": first(1, failed(Reason.UNAVAILABLE), gave(1)), "judge": judged("FALLBACK")}
    )
    assert len(trajectory(play.state).calls) > 4
    assert blamed(play)["planner"]


def test_a_component_whose_calls_are_refused_is_to_blame_although_nothing_was_sent() -> None:
    def gate(call: CallState, attempt: int, now_ms: int) -> AcpError | int | None:
        if call.created.action != "read":
            return None
        return error(Reason.BREAKER_OPEN, "no", boundary=Boundary.GATEWAY)

    play = played({"judge": judged("FALLBACK")}, gate=gate)
    assert blamed(play) == dict.fromkeys(EVERYBODY, False) | {"tools": True}


def test_a_cancelled_session_says_nothing() -> None:
    play = Play(workflow_of(FALLING), CATALOG, Cast(component=troupe(read=None))).open()
    play.cancel()
    play.run(until_ms=60_000)
    assert play.status == "CANCELLED"
    assert blamed(play) == {}


def test_a_result_taken_over_from_an_earlier_loop_is_no_call() -> None:
    lines: dict[str, Line] = {
        "plan": planned(goal("a", "read")),
        "judge": by_loop(judged("REPLAN"), judged("FALLBACK")),
    }
    play = played(lines)
    assert play.state.fell_back
    assert blamed(play).keys() == EVERYBODY


@pytest.mark.parametrize("seed", range(20))
def test_session_and_record_agree_whatever_happened(seed: int) -> None:
    def sometimes(name: str, odds: float, line: Line) -> dict[str, Line]:
        return {name: line} if by_seed(seed, name) < odds else {}

    lines = (
        sometimes("read", 0.5, first(1 + seed % 3, failed(Reason.UNAVAILABLE), gave(1)))
        | sometimes("remember", 0.3, failed(Reason.INTERNAL))
        | sometimes("judge", 0.7, judged("FALLBACK"))
        | sometimes("plan", 0.3, planned(goal("a", "read"), goal("b", "read")))
    )
    assert blamed(played(lines, seed=seed))
