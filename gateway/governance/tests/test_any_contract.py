"""Whatever stands in a contract, an author gets a contract or problems with places, no crash."""

import json
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.governance import contract, plan_guard, sla
from gateway.governance.contract import Contract, parse_contract

WORDS: Final = st.sampled_from(
    [*contract.KEYS, *plan_guard.KEYS, *sla.KEYS, "*", "a.b", "fail", "replan", "type", "$ref", "#"]
)
SCALARS: Final = (
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.floats(allow_nan=False, allow_infinity=False)
    | WORDS
    | st.text(max_size=8)
)
VALUES: Final = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
CONTRACTS: Final = st.dictionaries(st.sampled_from(contract.KEYS), VALUES, max_size=5) | VALUES


@given(CONTRACTS)
@settings(max_examples=300, deadline=None)
def test_any_json_is_a_contract_or_has_problems(value: object) -> None:
    text = json.dumps(value)
    found = parse_contract(text.encode())
    if isinstance(found, Contract):
        assert isinstance(value, dict)
        return
    assert found
    for problem in found:
        assert problem.message
        assert 1 <= problem.column <= len(text) + 1


@given(CONTRACTS, st.integers(0, 60))
@settings(max_examples=100, deadline=None)
def test_any_part_of_one_has_problems_or_is_one(value: object, cut: int) -> None:
    parse_contract(json.dumps(value).encode()[:-cut] if cut else b"")
