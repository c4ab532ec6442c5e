"""The retry budget: what is lent, and what stays with the gateway."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.governance.budget import lease

counts = st.integers(-3, 12)


def test_an_answer_that_is_lost_leaves_the_gateway_a_retry_of_its_own() -> None:
    # Of two retries one is lent: were it both, no call whose answer was lost could be repeated.
    assert lease(8, 2) == 1
    assert lease(1, 2) == lease(8, 1) == lease(0, 0) == 0


@given(session_left=counts, call_left=counts)
def test_never_more_is_lent_than_there_is(session_left: int, call_left: int) -> None:
    lent = lease(session_left, call_left)
    assert 0 <= lent <= max(0, session_left, call_left)
    assert lent == 0 or lent < min(session_left, call_left)
