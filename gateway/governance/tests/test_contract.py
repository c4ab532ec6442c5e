"""A contract is read whole or refused with every fault at its place."""

from typing import Final

import pytest

from gateway.governance.contract import Contract, OnOutputBreach, parse_contract
from gateway.governance.plan_guard import OnReject, Repetition
from gateway.governance.rules import OnExcess
from gateway.governance.sla import OnBreach

WHOLE: Final = """workflow: hotline
description: what the hotline promises
input_schema: {type: object, required: [query]}
output_schema: {type: object, required: [answer]}
on_output_breach: fallback
sla:
  ledger:
    max_latency_ms: 250
    latency_quantile: 0.99
    min_success_rate: 0.995
    max_fallback_rate: 0.02
    window_ms: 30000
    min_samples: 50
    on_breach: refuse
  hotline-planner: {max_latency_ms: 900}
semantics:
  domains: {intent: {values: {FEE: [charge], BALANCE: []}, threshold: 0.8, folded: true}}
  fields: [{in: input, at: /intent, domain: intent}]
  cases: [{domain: intent, value: Charge, means: FEE}, {domain: intent, value: x, means: null}]
fallback:
  version: "3"
  after_failures: 4
  counts: [timeout]
  rules: [{name: small, when: "input.n < 9", output: {to: clerk}}, {name: rest, output: "input.n"}]
  drill: {every_ms: 60000, keep: 5, inputs: [{input: {n: 1}, rule: small, output: {to: clerk}}]}
allowed_actions: [ledger.fee, "rates.*"]
plan:
  max_sub_goals: 6
  max_depth: 3
  max_calls: {"*": 2, ledger.transfer: 1, ledger.close: 0}
  max_arguments_bytes: 4096
  repetition: forbidden
  on_reject: replan
sandbox: {rates.*: {max_memory_bytes: 512000000}}
rates: {ledger.fee: {per_second: 2.5, burst: 4, on_excess: refuse}, rates.convert: {per_second: 9}}
"""


def parsed(text: str) -> Contract:
    contract = parse_contract(text.encode())
    assert isinstance(contract, Contract), contract
    return contract


def test_every_section_is_read() -> None:
    contract = parsed(WHOLE)
    assert contract.workflow == "hotline"
    assert contract.input_schema == b'{"type":"object","required":["query"]}'
    assert contract.on_output_breach is OnOutputBreach.FALLBACK
    ledger = contract.sla_of("ledger")
    assert ledger is not None
    assert (ledger.max_latency_ms, ledger.latency_quantile) == (250, 0.99)
    assert (ledger.min_success_rate, ledger.max_fallback_rate) == (0.995, 0.02)
    assert (ledger.window_ms, ledger.min_samples) == (30_000, 50)
    assert ledger.on_breach is OnBreach.REFUSE
    planner = contract.sla_of("hotline-planner")
    assert planner is not None
    assert planner.on_breach is OnBreach.ALARM
    assert contract.sla_of("nobody") is None
    assert contract.plan.max_calls == {"*": 2, "ledger.transfer": 1, "ledger.close": 0}
    assert contract.plan.repetition is Repetition.FORBIDDEN
    assert contract.plan.on_reject is OnReject.REPLAN
    assert contract.semantics is not None
    assert contract.fallback is not None
    assert contract.sandbox is not None
    fee, convert = contract.rates["ledger.fee"], contract.rates["rates.convert"]
    assert (fee.per_second, fee.burst, fee.on_excess) == (2.5, 4, OnExcess.REFUSE)
    assert (convert.per_second, convert.burst, convert.on_excess) == (9, 1, OnExcess.WAIT)


def test_an_action_is_allowed_by_its_name_or_by_the_beginning_of_it() -> None:
    contract = parsed(WHOLE)
    assert [contract.allows(name) for name in ("ledger.fee", "rates.convert")] == [True, True]
    assert [contract.allows(name) for name in ("ledger.fees", "rate", "")] == [False] * 3


def test_without_a_list_every_action_is_allowed_and_with_an_empty_one_none_is() -> None:
    assert parsed("{}").allows("anything")
    assert not parsed("allowed_actions: []").allows("anything")


BROKEN: Final = [
    ("rates: {a: {}}", (1, 12, "rates.a", "say how many calls a second")),
    ("rates: {a: {per_second: 0}}", (1, 25, "rates.a.per_second", "from 0.001 to")),
    ("rates: {a: {per_second: 1, on_excess: x}}", (1, 39, "rates.a.on_excess", "wait, refuse")),
    ("inputschema: {}", (1, 1, "inputschema", "did you mean 'input_schema'")),
    ("a", (1, 1, "", "`acp workflows put` writes it")),
    ("[]", (1, 1, "", "a contract is an object")),
    ("input_schema: {type: objct}", (1, 15, "input_schema", "not a JSON Schema")),
    ("input_schema: {$ref: 'http://x.example/a'}", (1, 15, "input_schema", "not a JSON Schema")),
    ("output_schema: 3", (1, 16, "output_schema", "a JSON Schema is an object")),
    ("sla:\n  ledger: {}", (2, 11, "sla.ledger", "this demands nothing")),
    ("sla: {a: {max_latency_ms: 0}}", (1, 27, "sla.a.max_latency_ms", "from 1 to")),
    ("sla: {a: {min_success_rate: 95}}", (1, 29, "sla.a.min_success_rate", "from 0 to 1")),
    (
        "sla: {a: {max_latency_ms: 1, on_breach: explode}}",
        (1, 41, "sla.a.on_breach", "not one of alarm, refuse, fallback"),
    ),
    ("plan: {max_depth: 0}", (1, 19, "plan.max_depth", "from 1 to 1000")),
    ("plan: {max_calls: {a: -1}}", (1, 23, "plan.max_calls.a", "from 0 to 1000")),
    ("allowed_actions: [a b]", (1, 19, "allowed_actions[0]", "is not an action's name")),
    ("semantics: 1", (1, 12, "semantics", "must be an object")),
]


@pytest.mark.parametrize(("text", "expected"), BROKEN)
def test_a_fault_is_told_with_line_column_path_and_advice(
    text: str, expected: tuple[int, int, str, str]
) -> None:
    problems = parse_contract(text.encode())
    assert isinstance(problems, tuple)
    assert len(problems) == 1, problems
    (found,) = problems
    line, column, path, message = expected
    assert (found.line, found.column, found.path) == (line, column, path)
    assert message in found.message


def test_all_faults_are_told_at_once_in_the_order_of_the_file() -> None:
    problems = parse_contract(b"sla: {a: {}}\nplan: []\nnonsense: 1\n")
    assert isinstance(problems, tuple)
    assert [problem.line for problem in problems] == [1, 2, 3]
