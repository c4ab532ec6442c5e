"""Which attempt a call stands on: one rule, also where the two rules of before differed."""

import pytest

from acp_spec.model.errors import AcpError, Code
from acp_spec.model.payload import payload
from acp_spec.model.trajectory import Attempt
from gateway.rewards.settled import settled

FAILED = AcpError(code=Code.UNAVAILABLE, reason="UNAVAILABLE", message="away")
REFUSED = AcpError(code=Code.UNAVAILABLE, reason="BREAKER_OPEN", message="refused")
AT = "2026-11-30T10:00:00.000Z"


def row(attempt: int, **said: object) -> Attempt:
    fields: dict[str, object] = {"call_id": "c", "attempt": attempt, "step": "s", "role": "EXECUTE"}
    return Attempt(**fields | said)  # type: ignore[arg-type]


GOOD = {"sent_at": AT, "ended_at": AT, "output": payload(b"1")}
BAD = {"sent_at": AT, "ended_at": AT, "error": FAILED}
OPEN = {"sent_at": AT}
UNSENT = {"ended_at": AT, "error": REFUSED}


@pytest.mark.parametrize(
    ("rows", "stands_on"),
    [
        ([BAD, GOOD], 2),
        ([GOOD, BAD], 1),  # the hedge that lost was cancelled later
        ([BAD, BAD], 2),
        ([BAD, OPEN], 2),
        ([UNSENT, UNSENT], 2),
        ([BAD, UNSENT], 1),  # rewards stood on the refusal, the guard on what was answered
        ([{"sent_at": AT, "ended_at": AT}, BAD], 1),  # an answer without output: the guard took 2
        ([BAD, {"reused": True}], 2),
    ],
)
def test_a_call_stands_on_what_was_answered_well_else_sent_last(
    rows: list[dict[str, object]], stands_on: int
) -> None:
    attempts = [row(number, **said) for number, said in enumerate(rows, 1)]
    assert settled(attempts)["c"].attempt == stands_on


def test_calls_come_in_the_order_in_which_they_began() -> None:
    attempts = [row(1, **BAD), row(1, call_id="d", **GOOD), row(2, **GOOD)]
    assert list(settled(attempts)) == ["c", "d"]
