"""A contract's own cases: right ones pass, wrong ones say what came instead."""

from gateway.cli.contract_declared import declared_checks
from gateway.governance.contract import Contract, parse_contract

CONTRACT = """
output_schema: {type: object, required: [to]}
semantics:
  domains: {intent: {values: {REFUND: [money back], TRACK: []}}}
  cases:
    - {domain: intent, value: Money-Back, means: REFUND}
    - {domain: intent, value: refunt, means: REFUND}
    - {domain: intent, value: play music, means: null}
fallback:
  rules: [{name: small, when: "input.n < 9", output: {to: clerk}}, {name: rest, output: {no: 1}}]
  drill: {inputs: [{input: {n: 1}, rule: small, output: {to: clerk}}]}
"""


def told(text: str) -> list[tuple[bool, str, str]]:
    contract = parse_contract(text.encode())
    assert isinstance(contract, Contract), contract
    return [(one.passed, one.name, one.message) for one in declared_checks(contract)]


def test_cases_that_hold_pass_each_under_its_own_name() -> None:
    found = told(CONTRACT)
    assert [passed for passed, _, _ in found] == [True] * 4
    assert found[0][1] == "semantics, line 6: intent: 'Money-Back'"


def test_a_value_that_means_something_else_fails_and_says_what_came() -> None:
    wrong = CONTRACT.replace("value: Money-Back, means: REFUND", "value: Money-Back, means: TRACK")
    passed, _, message = told(wrong)[0]
    assert (passed, message) == (
        False, "it comes to 'REFUND' (1.00), it should come to 'TRACK'"
    )  # fmt: skip
    wrong = CONTRACT.replace("means: null", "means: TRACK")
    passed, _, message = told(wrong)[2]
    assert not passed
    assert message.startswith("it is refused")


def test_a_rule_that_answers_otherwise_or_against_the_schema_fails() -> None:
    other = CONTRACT.replace("rule: small,", "rule: rest,")
    assert told(other)[3][2] == "rule 'small' answered, it should have been 'rest'"
    loose = CONTRACT.replace("input: {n: 1}, rule: small,", "input: {n: 10},")
    assert "output_schema" in told(loose)[3][2]
