"""A trajectory as a page shows it: everything in its order, waiting apart, secrets nowhere."""

import msgspec

from acp_spec.model.calls import Claim
from acp_spec.model.enums import SessionStatus
from acp_spec.model.errors import AcpError, Code
from acp_spec.model.payload import ABSENT, payload
from acp_spec.model.times import rfc3339
from acp_spec.model.trajectory import Attempt, Gap, Trajectory
from gateway.runtime.dashboard.one_session import session_page
from gateway.runtime.dashboard.timeline import SHOWN_BYTES_MAX, TimelineKind, timeline
from gateway.stores.masked import masked
from gateway.stores.records.tests.sessions import AT_MS, whole
from gateway.telemetry.masking import DEFAULT

SECRET = "hunter2-hunter2"


def with_calls(*calls: Attempt) -> Trajectory:
    return msgspec.structs.replace(whole(1), calls=calls, decisions=())


def attempt(**fields: object) -> Attempt:
    plain = Attempt(
        call_id="c",
        attempt=1,
        step="act",
        role="EXECUTE",
        component="cards",
        component_version="1.0",
        action="card.freeze",
        queued_at=rfc3339(AT_MS),
        sent_at=rfc3339(AT_MS + 30),
        ended_at=rfc3339(AT_MS + 80),
        wait_ms=30,
        service_ms=45,
    )
    return msgspec.structs.replace(plain, **fields)


def test_a_retried_call_shows_its_attempts_and_the_decision_between_them() -> None:
    entries = timeline(whole(1))
    assert [(entry.kind, entry.depth) for entry in entries] == [
        (TimelineKind.STEP, 0),
        (TimelineKind.CALL, 1),
        (TimelineKind.ATTEMPT, 2),
        (TimelineKind.DECISION, 2),
        (TimelineKind.ATTEMPT, 2),
    ]
    step, call, failed, decided, good = entries
    assert (step.status, call.status, failed.status, good.status) == (
        *("SUCCEEDED", "SUCCEEDED", "FAILED", "SUCCEEDED"),
    )
    assert failed.error is not None
    assert failed.error.reason == "UNAVAILABLE"
    assert decided.decision is not None
    (option,) = decided.decision.options
    assert (option.option, option.probability, option.wait_ms) == ("RETRY", 1.0, 5)
    assert (decided.decision.chosen, decided.decision.draw) == ("RETRY", 0.25)


def test_waiting_in_the_gateway_stands_apart_from_service_at_the_component() -> None:
    *_, wait, tried = timeline(with_calls(attempt()))
    assert wait.kind is TimelineKind.WAIT
    assert (wait.from_ms, wait.to_ms, wait.wait_ms) == (AT_MS, AT_MS + 30, 30)
    assert (tried.from_ms, tried.to_ms) == (AT_MS + 30, AT_MS + 80)
    assert (tried.wait_ms, tried.service_ms) == (30, 45)


def test_a_hedge_and_an_answer_that_came_too_late_are_marked() -> None:
    first = attempt(late=True, error=AcpError(code=Code.DEADLINE_EXCEEDED, reason="TIMEOUT",
                                              message="no answer"))  # fmt: skip
    entries = timeline(with_calls(first, attempt(attempt=2, hedge=True)))
    tries = [entry for entry in entries if entry.kind is TimelineKind.ATTEMPT]
    assert [(entry.is_late, entry.is_hedge) for entry in tries] == [(True, False), (False, True)]


def test_what_is_under_way_has_no_end_and_what_was_taken_over_no_attempt() -> None:
    reused = attempt(call_id="old", reused=True, reused_from="x", sent_at="", ended_at="")
    running = attempt(step="next", ended_at="", service_ms=None)
    entries = timeline(with_calls(reused, running))
    by_kind = [(entry.kind.value, entry.step, entry.status) for entry in entries]
    assert by_kind == [
        ("STEP", "act", "SUCCEEDED"),
        ("CALL", "act", "REUSED"),
        ("STEP", "next", "RUNNING"),
        ("CALL", "next", "RUNNING"),
        ("WAIT", "next", ""),
        ("ATTEMPT", "next", "RUNNING"),
    ]
    assert entries[-1].to_ms is None
    assert entries[2].to_ms is None


def test_passes_of_a_loop_are_steps_of_their_own_in_their_order() -> None:
    again = attempt(call_id="c2", loop=1)
    entries = timeline(with_calls(attempt(), again))
    steps = [(entry.step, entry.loop) for entry in entries if entry.kind is TimelineKind.STEP]
    assert steps == [("act", 0), ("act", 1)]


def test_no_secret_is_in_what_a_page_gets_wherever_it_stood() -> None:
    said = payload(b'{"password":"%s","kept":1}' % SECRET.encode())
    told = f"password={SECRET}"
    failed = AcpError(code=Code.INTERNAL, reason="INTERNAL", message=told, details=said)
    one = msgspec.structs.replace(
        with_calls(attempt(arguments=said, output=said, error=failed)),
        input=said,
        output=said,
        error=failed,
        labels={"password": SECRET},
        claims=(Claim(text=told, value=said),),
        gaps=(Gap(what="memory", why=told),),
        status=SessionStatus.FAILED,
    )
    feedback = whole(2, comments=(told,)).feedback
    shown = session_page(masked(msgspec.structs.replace(one, feedback=feedback), DEFAULT))
    assert shown.timeline[-1].output is not None
    assert shown.timeline[-1].output.bytes == len(bytes(said)), "as it was before masking"
    text = msgspec.json.encode(shown)
    assert SECRET.encode() not in text
    assert text.count(b'"kept":1') == 7


def test_a_payload_of_five_megabytes_is_cut_and_says_its_size() -> None:
    big = payload(b'{"text":"' + b"\xc3\xa4" * 2_500_000 + b'"}')
    shown = session_page(with_calls(attempt(output=big, arguments=ABSENT)))
    output = shown.timeline[-1].output
    assert output is not None
    assert (output.bytes, output.is_cut) == (5_000_011, True)
    assert SHOWN_BYTES_MAX - 4 <= len(output.text.encode()) <= SHOWN_BYTES_MAX
    assert len(msgspec.json.encode(shown)) < 2 * SHOWN_BYTES_MAX
