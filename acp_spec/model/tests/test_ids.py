"""Session ids: what they hold is read back, and their order is the order of time."""

from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.ids import is_session_id, node_of, session_id, time_ms_of

TIMES_MS = st.integers(0, 2**48 - 1)
NODES = st.integers(0, 2**16 - 1)
CHANCE = st.integers(0, 2**64 - 1)


@given(TIMES_MS, NODES, CHANCE)
def test_a_session_id_tells_its_time_and_its_gateway(time_ms: int, node: int, chance: int) -> None:
    made = session_id(time_ms, node, random_64=chance)
    assert is_session_id(made)
    assert (time_ms_of(made), node_of(made)) == (time_ms, node)


@given(TIMES_MS, TIMES_MS, CHANCE, CHANCE)
def test_session_ids_sort_by_time(first_ms: int, second_ms: int, one: int, other: int) -> None:
    first, second = (
        session_id(first_ms, 1, random_64=one),
        session_id(second_ms, 1, random_64=other),
    )
    if first_ms != second_ms:
        assert (first < second) is (first_ms < second_ms)
