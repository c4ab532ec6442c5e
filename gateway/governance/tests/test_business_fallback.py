"""The rules of a fallback: read whole or refused at their place, asked in order, never guessing."""

import pytest

from acp_spec.model.payload import payload
from gateway.governance.business_fallback import BusinessFallback, Case, answer
from gateway.governance.contract import Contract, parse_contract
from gateway.governance.fallback_track import Terms

WHOLE = """
fallback:
  version: "7"
  after_failures: 4
  probe_every: 20
  return_after: 2
  counts: [timeout, FELL_BACK]
  rules:
    - {name: small, when: "input.amount < 100", output: {decision: accept, limit: 100.50}}
    - {name: vip, when: "session.labels.tier == 'gold'", output: "{'to': input.branch}"}
    - {name: rest, output: input.amount}
  drill: {every_ms: 60000, keep: 7, inputs: [{input: {amount: 5}, rule: small}]}
"""


def read(text: str) -> BusinessFallback:
    contract = parse_contract(text.encode())
    assert isinstance(contract, Contract), contract
    assert contract.fallback is not None
    return contract.fallback


def said(text: bytes, **labels: str) -> tuple[str, bytes, str]:
    found = answer(read(WHOLE), Case(input=payload(text), tenant="t", labels=labels))
    return found.rule, bytes(found.output), found.error.message if found.error else ""


def test_a_whole_section_is_read() -> None:
    rules = read(WHOLE)
    assert rules.version == "7"
    assert rules.terms == Terms(after_failures=4, probe_every=20, return_after=2)
    assert rules.counts == frozenset({"TIMEOUT", "FELL_BACK"})
    assert (rules.drill.every_ms, rules.drill.keep) == (60_000, 7)
    assert [bytes(one.input) for one in rules.drill.inputs] == [b'{"amount":5}']


def test_without_a_version_the_rules_name_themselves_by_what_they_say() -> None:
    one = read("fallback: {rules: [{name: a, output: {x: 1}}]}")
    other = read("fallback: {rules: [{name: a, output: {x: 2}}]}")
    assert len(one.version) == 12
    assert one.version != other.version
    assert read("fallback: {after_failures: 9, rules: [{name: a, output: {x: 1}}]}").version == (
        one.version
    )


def test_the_first_rule_that_holds_answers_byte_for_byte() -> None:
    assert said(b'{"amount":5}', tier="gold") == (
        "small",
        b'{"decision":"accept","limit":100.50}',
        "",
    )
    assert said(b'{"amount":500,"branch":"x"}', tier="gold") == ("vip", b'{"to":"x"}', "")
    assert said(b'{"amount":100.10}', tier="") == ("rest", b"100.10", "")


def test_a_rule_that_cannot_be_evaluated_is_an_error_and_the_next_one_is_not_asked() -> None:
    rule, output, message = said(b"{}")
    assert (rule, output) == ("small", b"")
    assert "rule 'small' (line 9) failed" in message


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ("[]", "must have no `when`"),
        ('[{name: a, when: "true", output: 1}]', "the last rule must have no `when`"),
        ("[{name: a, output: 1}, {name: b, output: 2}]", "no rule behind it is ever asked"),
        ('[{name: a, when: "true", output: 1}, {name: a, output: 2}]', "two rules have the name"),
        ("[{name: a, output: plan.output}]", "the rules know input and session only"),
        ('[{name: a, when: "input.x <", output: 1}, {name: b, output: 1}]', "rules[0].when"),
        ("[{name: A, output: 1}]", "a rule's name"),
        ("[{output: 1}]", "'name' is missing"),
        ("[{name: a}]", "'output' is missing"),
        ("[{name: a, output: 1, wehn: x}]", "did you mean 'when'"),
    ],
)
def test_a_fault_is_told_at_its_place(rules: str, told: str) -> None:
    found = parse_contract(f"fallback: {{rules: {rules}}}".encode())
    assert not isinstance(found, Contract)
    assert told in "\n".join(f"{one.path}: {one.message}" for one in found)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("counts: [TIMEUOT]", "did you mean 'TIMEOUT'"),
        ("after_failures: 0", "from 1 to 1000"),
        ("drill: {every_ms: 5}", "from 1000"),
        ("drill: {inputs: [{input: 1, rule: b}]}", "there is no rule 'b'"),
        ("drill: {inputs: [{rule: a}]}", "under the key `input`"),
    ],
)
def test_a_fault_beside_the_rules_is_told_too(more: str, told: str) -> None:
    found = parse_contract(f"fallback: {{rules: [{{name: a, output: 1}}], {more}}}".encode())
    assert not isinstance(found, Contract)
    assert told in "\n".join(f"{one.path}: {one.message}" for one in found)
