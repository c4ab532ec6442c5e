"""Key layouts: they sort as their tables say, and no two things share a name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.ids import session_id
from gateway.stores import tables

_ids = st.builds(
    session_id,
    st.integers(0, (1 << 48) - 1),
    st.integers(0, (1 << 16) - 1),
    random_64=st.integers(0, (1 << 64) - 1),
)
_sequences = st.integers(0, (1 << 64) - 1)
_names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)


def _listed(parts: tuple[str, str], session: str) -> bytes:
    tenant, status = parts
    return tables.listed_row(tenant, session, status=status)


@given(_ids, _sequences, _ids, _sequences)
def test_journal_rows_sort_by_session_time_then_sequence(
    one: str, first: int, other: str, second: int
) -> None:
    rows = sorted([(one, first), (other, second)])
    keys = sorted(tables.sequence_row(*row) for row in rows)
    assert [tuple(tables.parse_sequence_row(key)) for key in keys] == rows


@given(st.tuples(_names, _names), st.tuples(_names, _names), _ids)
def test_two_list_rows_are_equal_only_if_all_their_parts_are(
    one: tuple[str, str], other: tuple[str, str], session: str
) -> None:
    equal = _listed(one, session) == _listed(other, session)
    assert equal == (one == other)


@given(st.sampled_from(["a", "ab", "b"]), _names, _ids, _ids)
def test_list_rows_of_a_status_sort_by_time_and_lie_before_their_tenants_end(
    tenant: str, status: str, one: str, other: str
) -> None:
    rows = sorted(tables.listed_row(tenant, each, status=status) for each in {one, other})
    assert [tables.listed_session(row) for row in rows] == sorted({one, other})
    named, beyond = tables.listed_tenant(rows[0])
    assert named == tenant
    assert rows[-1] < beyond
    assert all(beyond < tables.listed_prefix(after) for after in ("ab", "b") if after > tenant)


@given(_names, _names, _ids)
def test_rows_of_the_index_have_their_own_first_byte(name: str, text: str, session: str) -> None:
    rows = {
        _listed((name, text), session)[:1],
        tables.session_key_row(name, text)[:1],
    }
    assert len(rows) == 2


def test_a_prefix_of_a_tenant_does_not_reach_into_a_longer_name() -> None:
    row = _listed(("acme-two", "RUNNING"), "0" * 26)
    assert not row.startswith(tables.listed_prefix("acme"))
    assert row.startswith(tables.listed_prefix("acme-two", "RUNNING"))


def test_the_separator_is_refused_inside_a_name() -> None:
    with pytest.raises(ValueError, match=r"U\+0000"):
        tables.listed_prefix("a\0b")
