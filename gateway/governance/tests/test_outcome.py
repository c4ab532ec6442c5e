"""Who is to blame for an end: the table is complete, and own refusals never count."""

import pytest

from acp_spec.bindings.errors import ERRORS, error
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import AcpError, Code, Reason
from gateway.governance import breaker, retry_tokens
from gateway.governance.outcome import OF_CODE, OF_REASON, Ending, Outcome, outcome_of


def test_every_reason_and_every_code_has_its_outcome() -> None:
    assert set(OF_REASON) == set(Reason) == set(ERRORS)
    assert set(OF_CODE) == set(Code)


@pytest.mark.parametrize("reason", list(Reason))
@pytest.mark.parametrize("boundary", [Boundary.GATEWAY, Boundary.CLIENT])
def test_what_the_gateway_kept_back_or_broke_off_itself_is_never_the_targets_failure(
    reason: Reason, boundary: Boundary
) -> None:
    """A breaker that counted its own refusals ejected healthy hosts."""
    failure = error(reason, "ours", boundary=boundary)
    kept_back = outcome_of(Ending(error=failure, stated=False, not_sent=True))
    assert kept_back is Outcome.NOT_SENT
    broken_off = outcome_of(Ending(error=failure, stated=False))
    assert broken_off is Outcome.CANCELLED
    for outcome in (kept_back, broken_off):
        assert outcome not in breaker.BAD | breaker.GOOD
        assert outcome not in retry_tokens.DRAINS


@pytest.mark.parametrize(
    ("ending", "outcome"),
    [
        (Ending(), Outcome.SUCCEEDED),
        (Ending(accepted=True), Outcome.ACCEPTED),
        (Ending(error=error(Reason.UNAVAILABLE, "refused"), not_sent=True), Outcome.UNREACHED),
        (Ending(error=error(Reason.TIMEOUT, "silence"), stated=False), Outcome.FAILED),
        (Ending(error=error(Reason.UNAVAILABLE, "cut"), stated=False), Outcome.FAILED),
        (Ending(error=error(Reason.CONTRACT_VIOLATION, "html"), stated=False), Outcome.FAILED),
        (Ending(error=error(Reason.CONTRACT_VIOLATION, "your args")), Outcome.ANSWERED),
        (Ending(error=error(Reason.INVALID_REQUEST, "yours")), Outcome.ANSWERED),
        (Ending(error=error(Reason.RATE_LIMITED, "slower")), Outcome.THROTTLED),
        (Ending(error=error(Reason.OVERLOADED, "too much")), Outcome.FAILED),
        (Ending(error=error(Reason.CANCELLED, "on request")), Outcome.CANCELLED),
        (
            Ending(error=error(Reason.UNAVAILABLE, "the bank", boundary=Boundary.DOWNSTREAM)),
            Outcome.DOWNSTREAM,
        ),
        # What a gateway behind says of those behind it: another instance of it would fail alike.
        (Ending(error=error(Reason.BREAKER_OPEN, "not there")), Outcome.DOWNSTREAM),
        (Ending(error=error(Reason.NO_COMPONENT, "nobody")), Outcome.DOWNSTREAM),
        (
            Ending(error=AcpError(code=Code.INTERNAL, reason="OUR_OWN", message="m")),
            Outcome.FAILED,
        ),
    ],
)
def test_an_end_is_read_by_who_said_it_and_whose_failure_it_is(
    ending: Ending, outcome: Outcome
) -> None:
    assert outcome_of(ending) is outcome


def test_lateness_is_excused_when_the_time_was_short_or_the_call_was_cancelled() -> None:
    late = error(Reason.TIMEOUT, "silence")
    for excuse in ("is_cancelled", "is_short_of_time"):
        ending = Ending(error=late, stated=False, **{excuse: True})
        assert outcome_of(ending) is Outcome.CANCELLED
    cut = Ending(error=error(Reason.UNAVAILABLE, "cut"), stated=False, is_short_of_time=True)
    assert outcome_of(cut) is Outcome.FAILED, "a cut is a cut, whatever time was left"
