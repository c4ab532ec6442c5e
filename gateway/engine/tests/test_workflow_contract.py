"""A workflow is refused when it does not fit its own contract, at the contract's place."""

from typing import Final

import pytest

from acp_spec.model.session import Problem
from gateway.engine.definition import Workflow
from gateway.engine.workflow_file import parse_stored, parse_workflow
from gateway.governance.contract import NO_CONTRACT

STATIC: Final = """workflow: w
version: 1.0.0
steps:
  - {name: fee, role: execute, component: fees, action: fees.quote}
"""
OPEN: Final = """workflow: w
version: 1.0.0
steps:
  - {name: p, role: plan}
  - {name: act, role: execute, plan: p}
"""


def problems(text: str) -> tuple[Problem, ...]:
    found = parse_workflow(text.encode())
    assert isinstance(found, tuple)
    return found


@pytest.mark.parametrize(
    ("contract", "column", "path", "message"),
    [
        ("{workflow: other}", 22, "contract.workflow", "the contract of 'other'"),
        ("{allowed_actions: [a]}", 29, "contract.allowed_actions", "calls 'fees.quote'"),
        ("{on_output_breach: fallback}", 30, "contract.on_output_breach", "nothing to fall back"),
        (
            "{sla: {fees: {max_latency_ms: 1, on_breach: fallback}}}",
            24,
            "contract.sla.fees",
            "nothing to fall back",
        ),
        ("{sla: {fee: {max_latency_ms: 1}}}", 23, "contract.sla.fee", "did you mean 'fees'"),
        ("contract.yaml", 11, "contract", "`acp workflows put` writes it into the workflow"),
    ],
)
def test_what_does_not_fit_is_told_at_its_place(
    contract: str, column: int, path: str, message: str
) -> None:
    (found,) = problems(STATIC + f"contract: {contract}\n")
    assert (found.line, found.column, found.path) == (5, column, path)
    assert message in found.message


@pytest.mark.parametrize(
    ("demand", "path"),
    [
        ("sla: {fees: {max_latency_ms: 1, on_breach: fallback}}", "contract.sla.fees"),
        ("on_output_breach: fallback", "contract.on_output_breach"),
    ],
)
def test_rules_of_a_business_fallback_end_no_session_and_whoever_means_them_is_told(
    demand: str, path: str
) -> None:
    rules = "fallback: {rules: [{name: rest, output: {decision: refer}}]}"
    (found,) = problems(STATIC + f"contract: {{{demand}, {rules}}}\n")
    assert found.path == path
    assert "write `fallback: {output: ...}` in the workflow, beside `steps`" in found.message
    assert "rules of the contract's own `fallback`" in found.message
    both = STATIC + f"fallback: {{output: '1'}}\ncontract: {{{demand}, {rules}}}\n"
    assert isinstance(parse_workflow(both.encode()), Workflow)


def test_over_a_plan_any_component_may_be_named_and_any_action_listed() -> None:
    text = OPEN + "contract: {allowed_actions: [], sla: {x: {min_success_rate: 0.9}}}\n"
    assert isinstance(parse_workflow(text.encode()), Workflow)


def test_a_version_that_was_stored_with_a_contract_of_its_own_kind_still_runs_without_it() -> None:
    old = (STATIC + "contract: {max: 0.10}\n").encode()
    assert isinstance(parse_workflow(old), tuple)
    stored, ignored = parse_stored(old)
    assert stored.contract == NO_CONTRACT
    assert [problem.path for problem in ignored] == ["contract.max"]


def test_a_stored_file_with_any_other_fault_is_not_mended_in_silence() -> None:
    with pytest.raises(AssertionError, match="nonsense"):
        parse_stored((STATIC + "contract: 1\nnonsense: 2\n").encode())
