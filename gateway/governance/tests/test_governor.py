"""The row of policies: all are asked, then all are taken; a refusal costs nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.governance import deadline
from gateway.governance.breaker import Phase
from gateway.governance.governor import Row
from gateway.governance.outcome import Outcome
from gateway.governance.rules import BreakerRules, RateRules, Rules, Slots
from gateway.governance.tests.wishes import QUEUES, wish
from gateway.governance.verdicts import ADMIT, Admit, Defer, Refuse
from gateway.governance.wish import Permit, Wish

FRAGILE = Rules(
    queues=QUEUES,
    breaker=BreakerRules(failures_in_a_row=1, successes=1, open_ms=1_000),
    rate=RateRules(per_second=100, burst=5),
    actions={"x": RateRules(per_second=100, burst=5)},
)


def states_of(row: Row) -> dict[str, object]:
    """Everything the row keeps, by key."""
    columns = [getattr(part, "states", {}) for part in row.parts]
    return {key: state for states in columns for key, state in states.items()}


def test_the_row_names_what_is_asked_in_order() -> None:
    assert [part.name for part in Row().parts] == [
        *("breaker", "retry_tokens", "push_back"),
        *("rate_limit", "rate_limit", "rate_limit", "concurrency", "concurrency"),
    ]


def test_all_admit_and_all_are_taken_and_given_back() -> None:
    row = Row()
    assert row.check(wish()) is ADMIT
    permit = row.take(wish())
    assert row.taken() == {"queue:TOOL": 1, "instance:a": 1}
    assert row.observe(permit, Outcome.NOT_SENT, now_ms=0) is None
    assert states_of(row) == {}
    with pytest.raises(AssertionError, match="given back once"):
        row.observe(permit, Outcome.NOT_SENT, now_ms=0)


def test_who_has_no_time_left_is_refused_before_anything_else() -> None:
    found = Row().check(wish(left_ms=0))
    assert isinstance(found, Refuse)
    assert (found.policy, found.error.reason) == ("deadline", "TIMEOUT")


@pytest.mark.parametrize("key", ["queue:TOOL", "instance:a"])
def test_the_first_full_one_defers_by_its_own_key_and_nothing_is_taken(key: str) -> None:
    queue, target = (1, 9) if key.startswith("queue") else (9, 1)
    rules = Rules(queues=QUEUES | {"TOOL": Slots(limit=queue)}, target=Slots(limit=target))
    row = Row()
    row.take(wish(rules))
    before = states_of(row)
    assert row.check(wish(rules)) == Defer("concurrency", key)
    assert states_of(row) == before


def test_a_call_that_the_breaker_refuses_burns_no_token() -> None:
    row = Row()
    row.observe(row.take(wish(FRAGILE)), Outcome.FAILED, now_ms=0)
    before = states_of(row)
    for at_ms in range(500):
        found = row.check(wish(FRAGILE, now_ms=float(at_ms)))
        assert isinstance(found, Refuse)
        assert found.error.reason == "BREAKER_OPEN"
    assert states_of(row) == before


def test_what_was_not_sent_gives_back_token_and_probe() -> None:
    row = Row()
    row.observe(row.take(wish(FRAGILE)), Outcome.FAILED, now_ms=0)
    at_ms = row.circuit(wish(FRAGILE)).until_ms
    probe = wish(FRAGILE, now_ms=at_ms)
    bucket = dict(row.parts[4].states)
    for _ in range(50):
        assert row.check(probe) is ADMIT
        permit = row.take(probe)
        assert isinstance(row.check(probe), Defer), "one probe at a time"
        row.observe(permit, Outcome.NOT_SENT, now_ms=at_ms)
        assert row.circuit(probe).phase is Phase.HALF_OPEN
    assert row.parts[4].states in ({}, bucket)


def test_an_operation_frees_its_slot_at_once_and_judges_its_target_at_its_end() -> None:
    row = Row()
    rest = row.observe(row.take(wish(FRAGILE)), Outcome.ACCEPTED, now_ms=0)
    assert rest is not None
    assert row.taken() == {}
    assert row.circuit(wish(FRAGILE)).phase is Phase.CLOSED
    assert row.observe(rest, Outcome.FAILED, now_ms=60_000) is None
    assert row.circuit(wish(FRAGILE)).phase is Phase.OPEN


def test_an_attempt_gets_no_more_time_than_its_session_has() -> None:
    assert deadline.timeout_ms(5_000, 0, now_ms=100) == 5_000
    assert deadline.timeout_ms(5_000, 1_100, now_ms=100) == 1_000
    assert deadline.timeout_ms(500, 1_100, now_ms=100) == 500
    assert deadline.timeout_ms(500, 50, now_ms=100) == -50
    assert isinstance(deadline.check(1), Admit)
    assert isinstance(deadline.check(-50), Refuse)


def test_what_cannot_be_answered_in_time_is_a_time_out_and_is_not_repeated() -> None:
    refused = deadline.too_late(40, needed_ms=150)
    assert (refused.error.reason, refused.error.retryable) == ("TIMEOUT", False)
    assert refused.error.boundary.value == "GATEWAY"


def test_a_target_without_information_is_forgotten_and_an_open_breaker_is_not() -> None:
    row = Row()
    for number in range(50):
        asking = wish(FRAGILE, instance=f"i{number}", pin=f"c{number}@1.0.0")
        outcome = Outcome.FAILED if number == 7 else Outcome.SUCCEEDED
        row.observe(row.take(asking), outcome, now_ms=0)
    row.sweep(3 * FRAGILE.breaker.window_ms)
    assert set(states_of(row)) == {"breaker:i7", "retries:c7@1.0.0"}


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from(list(Outcome)), st.integers(0, 400)),
        max_size=60,
    )
)
def test_whatever_happens_every_permit_closes_and_no_slot_is_lost(
    moves: list[tuple[str, Outcome, int]],
) -> None:
    row, now_ms = Row(), 0.0
    held: list[Permit] = []
    for instance, outcome, after_ms in moves:
        now_ms += after_ms
        asking: Wish = wish(FRAGILE, instance=instance, now_ms=now_ms)
        if row.check(asking) is ADMIT:
            held.append(row.take(asking))
        if len(held) > 2:
            rest = row.observe(held.pop(0), outcome, now_ms=now_ms)
            if rest is not None:
                assert outcome is Outcome.ACCEPTED
                held.append(rest)
    while held:
        row.observe(held.pop(), Outcome.CANCELLED, now_ms=now_ms)
    assert row.taken() == {}
    row.sweep(now_ms + 10_000_000)
    assert set(states_of(row)) <= {"retries:c@1.0.0"}
