"""How long to wait before a retry: bounded, spread, the same at a second look."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.governance.backoff import Backoff

ids = st.text(min_size=1, max_size=32)
attempts = st.integers(1, 10_000)


@given(ids, attempts, st.integers(1, 10_000), st.integers(1, 100_000))
def test_a_wait_stays_below_its_ceiling(
    call_id: str, attempt: int, base_ms: int, max_ms: int
) -> None:
    backoff = Backoff(base_ms=base_ms, max_ms=max_ms)
    wait_ms = backoff.wait_ms(call_id, attempt, retry_after_ms=None)
    assert 0 <= wait_ms < min(max_ms, base_ms * 2 ** min(attempt - 1, 40))
    assert wait_ms == backoff.wait_ms(call_id, attempt, retry_after_ms=None)


@given(ids, attempts, st.integers(0, 1_000_000))
def test_what_a_peer_asks_for_is_the_least(call_id: str, attempt: int, asked_ms: int) -> None:
    assert Backoff().wait_ms(call_id, attempt, retry_after_ms=asked_ms) >= asked_ms


def test_calls_that_fail_together_come_back_spread_over_the_whole_ceiling() -> None:
    waits = [Backoff().wait_ms(f"call-{n}", 4, retry_after_ms=None) for n in range(2_000)]
    tenths = [sum(place * 80 <= w < (place + 1) * 80 for w in waits) for place in range(10)]
    assert all(140 <= count <= 260 for count in tenths), tenths
