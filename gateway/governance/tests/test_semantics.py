"""The section `semantics` of a contract: read whole, or refused with every fault at its place."""

import pytest

from gateway.governance.contract import Contract, parse_contract
from gateway.governance.domains import nobody
from gateway.governance.semantics import Origin, Semantics, Side, failed_cases

WHOLE = """
semantics:
  domains:
    intent:
      values: {ORDER_STATUS_QUERY: [track_order, where is it], REFUND: []}
      threshold: 0.8
    queue: {values: [fast, slow], folded: false, nearest: false}
  fields:
    - {in: input, at: /intent, domain: intent}
    - {in: output, action: classify, at: "/labels/*", domain: intent, nullable: true}
    - {in: arguments, step: act, component: desk, at: /queue, domain: queue}
  cases:
    - {domain: intent, value: Track-Order, means: ORDER_STATUS_QUERY}
    - {domain: queue, value: FAST, means: null}
"""


def read(text: str) -> Semantics:
    contract = parse_contract(text.encode())
    assert isinstance(contract, Contract), contract
    assert contract.semantics is not None
    return contract.semantics


def problems(domains: str = "{d: {values: [a, b]}}", rest: str = "") -> str:
    text = f"semantics:\n  domains: {domains}\n{rest}"
    found = parse_contract(text.encode())
    assert not isinstance(found, Contract), "this should have been refused"
    return "\n".join(f"{one.line}:{one.column} {one.path}: {one.message}" for one in found)


def test_a_whole_section_is_read() -> None:
    semantics = read(WHOLE)
    intent, queue = semantics.domains["intent"], semantics.domains["queue"]
    assert (intent.threshold, intent.folds, intent.guesses) == (0.8, True, True)
    assert (set(queue.values), queue.folds, queue.guesses) == ({"fast", "slow"}, False, False)
    assert [rule.tokens for rule in semantics.fields] == [("intent",), ("labels", "*"), ("queue",)]
    assert [rule.nullable for rule in semantics.fields] == [False, True, False]


def test_a_rule_holds_for_the_payloads_that_it_names() -> None:
    semantics = read(WHOLE)

    def count(side: Side, **origin: str) -> int:
        return len(semantics.rules(side, Origin(**origin)))

    assert count(Side.INPUT) == 1
    assert count(Side.OUTPUT, action="classify", step="any") == 1
    assert count(Side.OUTPUT, action="other") == 0
    assert count(Side.ARGUMENTS, step="act", component="desk", action="x") == 1
    assert count(Side.ARGUMENTS, step="act", component="till") == 0


def test_the_cases_of_the_file_are_held_against_the_mapper() -> None:
    assert failed_cases(read(WHOLE), nearest=nobody) == ()
    wrong = WHOLE.replace("value: FAST, means: null", "value: fast, means: slow")
    (told,) = failed_cases(read(wrong), nearest=nobody)
    assert "'fast' comes to 'fast'" in told
    assert "should come to 'slow'" in told


@pytest.mark.parametrize(
    ("domains", "rest", "told"),
    [
        ("{d: {values: {a_b: [], AB: []}}}", "", "the same when folded"),
        ("{d: {values: {a: [x], b: [X]}}}", "", "nobody could tell which is meant"),
        ("{d: {values: [a, a]}}", "", "twice"),
        ("{d: {values: {}}}", "", "at least one value"),
        ("{d: {}}", "", "name its values"),
        ("{d: {values: [' ']}}", "", "white space alone"),
        ("{d: {values: [a], threshold: 1.5}}", "", "from 0 to 1"),
        ("{d: {values: [a], thresold: 1}}", "", "did you mean 'threshold'"),
        ("{'1 d': {values: [a]}}", "", "a domain's name"),
        ("{d: {values: [a]}}", "  fields: [{in: input, at: /x, domain: e}]", "no domain 'e'"),
        (
            "{d: {values: [a]}}",
            "  fields: [{in: inptu, at: /x, domain: d}]",
            "did you mean 'input'",
        ),
        (
            "{d: {values: [a]}}",
            "  fields: [{in: input, at: x, domain: d}]",
            "must be empty or begin",
        ),
        ("{d: {values: [a]}}", "  fields: [{in: input, domain: d}]", "'at' is missing"),
        (
            "{d: {values: [a]}}",
            "  fields: [{in: input, at: /x, domain: d, action: y}]",
            "a session's input has no action",
        ),
        (
            "{d: {values: [a]}}",
            "  fields: [{in: input, at: /x, domain: d}, {in: input, at: /x, domain: d}]",
            "has a domain already",
        ),
        ("{d: {values: [a]}}", "  cases: [{domain: d, value: x, means: b}]", "no value of 'd'"),
    ],
)
def test_a_fault_is_told_at_its_place(domains: str, rest: str, told: str) -> None:
    assert told in problems(domains, rest)


def test_a_long_list_is_allowed_where_nothing_is_guessed() -> None:
    many = ", ".join(f"c{number}" for number in range(1_200))
    assert "`nearest: false`" in problems(f"{{d: {{values: [{many}]}}}}")
    found = read(f"semantics: {{domains: {{d: {{values: [{many}], nearest: false}}}}}}")
    assert len(found.domains["d"].values) == 1_200
