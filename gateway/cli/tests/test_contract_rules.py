"""The drill inputs of a contract: right answers pass, wrong ones say what came instead."""

from gateway.cli.contract_rules import fallback_checks
from gateway.governance.contract import Contract, parse_contract

CONTRACT = """
output_schema: {type: object, required: [to]}
fallback:
  rules: [{name: small, when: "input.n < 9", output: {to: clerk}}, {name: rest, output: {no: 1}}]
  drill: {inputs: [{input: {n: 1}, rule: small, output: {to: clerk}}]}
"""


def told(text: str) -> list[tuple[bool, str, str]]:
    contract = parse_contract(text.encode())
    assert isinstance(contract, Contract), contract
    return [(one.passed, one.name, one.message) for one in fallback_checks(contract)]


def test_an_answer_that_is_as_it_should_be_passes() -> None:
    assert told(CONTRACT) == [(True, "fallback, drill input 0", "")]


def test_a_rule_that_answers_otherwise_or_against_the_schema_fails() -> None:
    other = CONTRACT.replace("rule: small,", "rule: rest,")
    assert told(other)[0][2] == "rule 'small' answered, it should have been 'rest'"
    loose = CONTRACT.replace("input: {n: 1}, rule: small,", "input: {n: 10},")
    assert "output_schema" in told(loose)[0][2]
