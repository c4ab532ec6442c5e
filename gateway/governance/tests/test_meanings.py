"""Payloads: declared fields are mapped, refusals name all that is wrong, other bytes stay."""

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.enums import Boundary, SideEffect
from acp_spec.model.semantics import HowMapped
from gateway.governance.domains import Candidate, Domain, domain_of, nobody
from gateway.governance.meanings import GUESSES_MAX, VALUES_MAX, mapped, refused_values
from gateway.governance.semantics import FieldRule, Side

INTENT = domain_of("intent", {"REFUND": ["money back"], "TRACK": ["where is it"]})


def rule(pointer: str, **fields: bool) -> FieldRule:
    tokens = tuple(pointer.split("/")[1:])
    return FieldRule(side=Side.INPUT, tokens=tokens, domain=INTENT, **fields)  # type: ignore[arg-type]


def test_a_value_is_replaced_and_every_other_byte_stays_as_it_was() -> None:
    text = b' { "n" : 0.10, "id":9007199254740993 ,"intent" : "Money-Back","x":[ 1 ,2.50e3 ]}\n'
    found = mapped(text, [rule("/intent")], nearest=nobody)
    assert found.text == text.replace(b'"Money-Back"', b'"REFUND"')
    (value,) = found.values
    assert (value.at, value.from_, value.to) == ("/intent", "Money-Back", "REFUND")
    assert (value.how, value.confidence) == (HowMapped.SYNONYM, 1.0)


def test_what_is_in_its_domain_is_counted_and_the_text_is_the_same_object() -> None:
    text = b'{"intent":"TRACK","more":["REFUND","refund"]}'
    found = mapped(text, [rule("/intent")], nearest=nobody)
    assert (found.in_domain, found.values, found.text) == (1, (), text)


def test_a_star_reaches_every_element_and_every_member() -> None:
    text = b'{"lists":[{"a":"refund"},{"a":"REFUND"},{"b":1}],"map":{"x":"track","y":"Track"}}'
    rules = [rule("/lists/*/a"), rule("/map/*")]
    found = mapped(text, rules, nearest=nobody)
    assert json.loads(found.text) == {
        "lists": [{"a": "REFUND"}, {"a": "REFUND"}, {"b": 1}],
        "map": {"x": "TRACK", "y": "TRACK"},
    }
    assert [value.at for value in found.values] == ["/lists/0/a", "/map/x", "/map/y"]
    assert found.in_domain == 1


def test_what_is_not_there_is_the_schemas_matter_and_null_only_where_it_may_be() -> None:
    assert mapped(b'{"other":1}', [rule("/intent")], nearest=nobody).refusal is None
    assert mapped(b'"text"', [rule("/intent")], nearest=nobody).refusal is None
    null = b'{"intent":null}'
    assert mapped(null, [rule("/intent", nullable=True)], nearest=nobody).refusal is None
    refused = mapped(null, [rule("/intent")], nearest=nobody).refusal
    assert refused is not None
    assert "null" in refused.message


def test_a_whole_payload_may_be_the_value() -> None:
    found = mapped(
        b' "refund" ', [FieldRule(side=Side.INPUT, tokens=(), domain=INTENT)], nearest=nobody
    )
    assert found.text == b' "REFUND" '


def test_a_refusal_names_the_field_the_value_and_the_domain_and_keeps_all_of_them() -> None:
    text = b'{"a":"refnd","b":7,"c":"refund"}'
    found = mapped(text, [rule("/a"), rule("/b"), rule("/c")], nearest=nobody)
    failure = found.refusal
    assert failure is not None
    assert (failure.reason, failure.retryable) == ("SEMANTIC_MISMATCH", False)
    assert (failure.boundary, failure.side_effect) == (Boundary.GATEWAY, SideEffect.NONE)
    assert "/a: 'refnd' is not in the domain 'intent' (REFUND, TRACK)" in failure.message
    assert "1 more of its values" in failure.message
    details = msgspec.json.decode(bytes(failure.details))
    assert [one["value"] for one in details["refused"]] == ["refnd", "a number"]
    assert refused_values(failure) == found.values[:2]
    assert found.text == text, "nothing is half mapped: the payload does not go on"


def test_more_values_than_anybody_looks_up_on_the_loop_are_refused() -> None:
    many = json.dumps(["REFUND"] * (VALUES_MAX + 1)).encode()
    refused = mapped(many, [rule("/*")], nearest=nobody).refusal
    assert refused is not None
    assert str(VALUES_MAX) in refused.message
    assert mapped(many.replace(b'"REFUND", ', b"", 1), [rule("/*")], nearest=nobody).refusal is None


def test_one_payload_asks_for_so_many_guesses_and_no_more() -> None:
    asked: list[str] = []

    def nearest(domain: Domain, text: str) -> Sequence[Candidate]:
        asked.append(text)
        return (Candidate(value="REFUND", confidence=1.0),)

    text = json.dumps([f"refund{number}" for number in range(GUESSES_MAX + 2)]).encode()
    found = mapped(text, [rule("/*")], nearest=nearest)
    assert len(asked) == GUESSES_MAX
    assert [value.how for value in found.values[-2:]] == [HowMapped.REFUSED] * 2
    assert found.refusal is not None


leaves = st.sampled_from(["REFUND", "refund", "money-back", "nonsense", 1, 2.5, None, True])
documents = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(documents, st.sampled_from(["/a", "/*/b", "/a/*", "/*", "/a/b/c", "/*/*"]))
def test_only_declared_values_ever_change(document: Any, pointer: str) -> None:
    text = json.dumps(document, indent=1).encode()
    found = mapped(text, [rule(pointer)], nearest=nobody)
    touched = {value.at for value in found.values if value.to and found.refusal is None}
    after = json.loads(found.text)
    for place, before in _flat(document):
        now = dict(_flat(after)).get(place)
        assert now == (before if place not in touched else now)
        if place in touched:
            assert now in INTENT.values
            assert re.fullmatch(pointer.replace("*", "[^/]+"), place)
    if not touched:
        assert found.text == text


def _flat(document: Any, at: str = "") -> list[tuple[str, Any]]:
    if isinstance(document, dict):
        return [pair for key, one in document.items() for pair in _flat(one, f"{at}/{key}")]
    if isinstance(document, list):
        return [pair for index, one in enumerate(document) for pair in _flat(one, f"{at}/{index}")]
    return [(at, document)]
