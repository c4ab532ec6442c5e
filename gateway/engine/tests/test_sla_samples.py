"""Only what the component itself did says something about it."""

import msgspec
import pytest

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary, SessionStatus, SideEffect
from acp_spec.model.errors import AcpError, Reason
from gateway.engine.events import AttemptEnded, OperationEnded, Refused, SessionEnded
from gateway.engine.sla_samples import BAR, call_sample, session_samples
from gateway.engine.states import AttemptState, CallState
from gateway.engine.tests.casting import Cast
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import (
    CATALOG,
    FOUR_CALLS,
    ONE_ACTION,
    failed,
    gave,
    judged,
    troupe,
    workflow_of,
)
from gateway.governance.sla import Sla
from gateway.governance.sla_window import CallSample

SLA = Sla(component="tools", max_latency_ms=100, min_success_rate=0.9)


def called() -> CallState:
    """A call whose attempt was given five seconds."""
    cast = Cast(component=troupe(read=gave(1)))
    play = Play(workflow_of(ONE_ACTION % "read"), CATALOG, cast).open().run(until_ms=1_000)
    (call,) = play.state.calls.values()
    return call


CALL = called()


def ended(failure: AcpError | None = None, **fields: object) -> AttemptEnded:
    plain = {"at_ms": 0, "call_id": "c", "attempt": 1, "error": failure, "service_ms": 10, **fields}
    return AttemptEnded(**plain)  # type: ignore[arg-type]


def timeout(service_ms: int | None, *, boundary: Boundary, not_sent: bool = False) -> AttemptEnded:
    failure = error(Reason.TIMEOUT, "no answer", boundary=boundary)
    return ended(failure, service_ms=service_ms, answered=False, not_sent=not_sent)


@pytest.mark.parametrize("service_ms", [0, 100])
def test_an_answer_in_time_is_good(service_ms: int) -> None:
    assert call_sample(CALL, ended(service_ms=service_ms), sla=SLA) == CallSample()


def test_service_time_counts_and_no_waiting_before_it() -> None:
    late = ended(at_ms=CALL.created.at_ms + 60_000, service_ms=99)
    assert call_sample(CALL, late, sla=SLA) == CallSample()
    assert call_sample(CALL, ended(service_ms=101), sla=SLA) == CallSample(slow=True)


@pytest.mark.parametrize(
    ("reason", "boundary", "counts"),
    [
        (Reason.INTERNAL, Boundary.COMPONENT, True),
        (Reason.UNAVAILABLE, Boundary.DOWNSTREAM, True),
        (Reason.OVERLOADED, Boundary.COMPONENT, True),
        (Reason.CONTRACT_VIOLATION, Boundary.COMPONENT, True),
        (Reason.NOT_FOUND, Boundary.CLIENT, False),
        (Reason.BREAKER_OPEN, Boundary.GATEWAY, False),
        (Reason.UNAVAILABLE, Boundary.GATEWAY, False),
        (Reason.CANCELLED, Boundary.COMPONENT, False),
    ],
)
def test_a_failure_counts_by_whose_it_is(reason: Reason, boundary: Boundary, counts: bool) -> None:
    sample = call_sample(CALL, ended(error(reason, "no", boundary=boundary)), sla=SLA)
    assert sample == (CallSample(failed=True) if counts else None)


@pytest.mark.parametrize(
    ("end", "counts"),
    [
        (timeout(5_000, boundary=Boundary.COMPONENT), True),
        (timeout(98, boundary=Boundary.COMPONENT), True),
        (timeout(20, boundary=Boundary.COMPONENT), False),
        (timeout(None, boundary=Boundary.COMPONENT, not_sent=True), True),
        (timeout(None, boundary=Boundary.GATEWAY, not_sent=True), False),
    ],
)
def test_a_timeout_counts_only_if_the_component_had_the_time_it_may_take(
    end: AttemptEnded, counts: bool
) -> None:
    sample = call_sample(CALL, end, sla=SLA)
    assert (sample is not None and sample.failed) is counts


def test_an_operation_counts_once_by_its_outcome_and_never_by_its_time() -> None:
    assert call_sample(CALL, ended(operation_poll_after_ms=1), sla=SLA) is None
    over = OperationEnded(at_ms=0, call_id="c", attempt=1, side_effect=SideEffect.NONE)
    assert call_sample(CALL, over, sla=SLA) == CallSample()


def samples_of(play: Play) -> dict[str, bool]:
    (last,) = (event for event in play.journal if isinstance(event, SessionEnded))
    samples = session_samples(play.state, last)
    return {pin.removesuffix("@1.0.0"): sample.fell_back for pin, sample in samples}


FALLING = FOUR_CALLS + "fallback: {output: {n: 0}}\n"


def test_a_fallback_is_blamed_on_those_whose_calls_failed() -> None:
    lines = troupe(read=failed(Reason.INTERNAL), judge=judged("FALLBACK"))
    play = Play(workflow_of(FALLING), CATALOG, Cast(component=lines)).open().run(until_ms=20_000)
    assert samples_of(play) == {
        "planner": False,
        "tools": True,
        "observer": False,
        "reflector": False,
    }


def test_where_no_call_failed_planner_and_executors_gave_what_was_not_good_enough() -> None:
    lines = troupe(judge=judged("FALLBACK"))
    play = Play(workflow_of(FALLING), CATALOG, Cast(component=lines)).open().run(until_ms=20_000)
    assert samples_of(play) == {
        "planner": True,
        "tools": True,
        "observer": False,
        "reflector": False,
    }


@pytest.mark.parametrize("why", ["cancelled", "barred"])
def test_a_session_that_was_cancelled_or_barred_says_nothing_of_fallbacks(why: str) -> None:
    """A breach that bars calls and ends sessions with their fallback would keep itself alive."""
    lines = troupe(judge=judged("FALLBACK"))
    play = Play(workflow_of(FALLING), CATALOG, Cast(component=lines)).open().run(until_ms=20_000)
    (last,) = (event for event in play.journal if isinstance(event, SessionEnded))
    assert list(session_samples(play.state, last))
    if why == "cancelled":
        last = msgspec.structs.replace(last, status=SessionStatus.CANCELLED)
    else:
        call_id, call = next(iter(play.state.calls.items()))
        refused = Refused(
            at_ms=0, call_id=call_id, attempt=2, error=error(Reason.BREAKER_OPEN, "no"), policy=BAR
        )
        kept_back = AttemptState(number=2, queued_at_ms=0, refused=refused)
        attempts = (*call.attempts, kept_back)
        play.state.calls[call_id] = msgspec.structs.replace(call, attempts=attempts)
    assert list(session_samples(play.state, last)) == []


def test_with_a_hedge_beside_it_each_attempt_is_measured_by_its_own_beginning() -> None:
    (first,) = CALL.attempts
    assert first.started is not None
    later = msgspec.structs.replace(first.started, attempt=2, at_ms=first.started.at_ms + 150)
    hedge = msgspec.structs.replace(first, number=2, started=later)
    both = msgspec.structs.replace(CALL, attempts=(first, hedge))
    at_ms = first.started.at_ms + 200
    slow = call_sample(both, ended(at_ms=at_ms, service_ms=None), sla=SLA)
    fine = call_sample(both, ended(at_ms=at_ms, service_ms=None, attempt=2), sla=SLA)
    assert (slow, fine) == (CallSample(slow=True), CallSample())
