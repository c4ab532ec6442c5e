"""`acp contract check` against a real gateway and real components: one contract that holds, and one
that fails for each reason there is."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import pytest
import typer
from typer.testing import CliRunner, Result

from acp_spec.sdk.cli import add_commands
from gateway.tests.e2e.client import Client
from gateway.tests.served import Served

WORKFLOW: Final = """workflow: contracted
version: 1.0.%d
steps:
  - {name: wait, role: execute, component: slow, action: slow.read, input_mapping: {ms: input.ms}}
  - name: act
    role: execute
    component: flaky
    action: flaky.read
    input_mapping: {script: input.script}
output: "{'took_ms': wait.output.took_ms, 'attempt': act.output.attempt}"
fallback: {output: {attempt: 0}}
contract: terms.yaml
"""
HOLDS: Final = """workflow: contracted
input_schema: {type: object, required: [ms, script]}
output_schema: {required: [attempt]}
allowed_actions: [slow.read, flaky.read]
sla:
  slow: {max_latency_ms: 5000, min_samples: 4}
  flaky: {min_success_rate: 0.5, max_fallback_rate: 0.5, min_samples: 4}
"""
CASES: Final = """
- name: it works
  input: {ms: 1, script: [OK]}
  expect: {output: {took_ms: 1, attempt: 1.0}, that: ["output.attempt == 1", "!fell_back"]}
- name: an input without a script is refused
  input: {ms: 1}
  expect: {error: CONTRACT_VIOLATION, that: "error.message.contains('script')"}
- name: a failure is told
  input: {ms: 1, script: [INTERNAL]}
  expect: {status: failed, error: INTERNAL}
"""
GOOD: Final = '{"ms": 1, "script": ["OK"]}'
BAD: Final = '{"ms": 1, "script": ["INTERNAL"]}'
LOAD: Final = ("--load", "4", "--seconds", "0.5")

versions = iter(range(1_000))
Check = Callable[..., Result]


@pytest.fixture(scope="module")
def check(
    served: Served, client: Client, start_components: Callable[..., Any], tmp_path_factory: Any
) -> Check:
    """`check(contract, "--load", "4", cases=...)`: a workflow version of its own, checked."""
    for one in start_components("slow", "flaky").values():
        client.register(one["url"], one["transport"])
    root = typer.Typer()
    add_commands(root)

    def run(contract: str, *options: str, cases: str = "", workflow: str = WORKFLOW) -> Result:
        folder: Path = tmp_path_factory.mktemp("contract")
        (folder / "terms.yaml").write_text(contract)
        (folder / "cases.yaml").write_text(cases)
        (folder / "w.yaml").write_text(workflow % next(versions))
        more = ("--cases", str(folder / "cases.yaml")) if cases else ()
        reports = ("--junit", str(folder / "j.xml"), "--markdown", str(folder / "m.md"))
        arguments = ["contract", "check", str(folder / "w.yaml"), "--target", served.url]
        result = CliRunner().invoke(root, [*arguments, *more, *reports, *options, "--json"])
        result.folder = folder  # type: ignore[attr-defined]
        return result

    return run


def report(result: Result, code: int) -> dict[str, Any]:
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def failed(result: Result) -> list[str]:
    """The messages of what failed; there is some."""
    messages = [one["message"] for one in report(result, 1)["checks"] if not one["passed"]]
    assert messages
    return messages


def test_a_contract_that_holds_passes_with_figures_in_every_report(check: Check) -> None:
    result = check(HOLDS, *LOAD, cases=CASES)
    found = report(result, 0)
    assert [one["kind"] for one in found["checks"]][:5] == ["schema", "schema", *["case"] * 3]
    figures = {one["figures"]["component"]: one["figures"] for one in found["checks"][6:]}
    assert figures.keys() == {"slow", "flaky"}
    assert figures["slow"]["calls"] >= 4, "each of the four at least once"
    assert figures["flaky"]["success_rate"] == 1
    assert figures["slow"]["demanded"] == {"max_latency_ms": 5000, "latency_quantile": 0.95}
    folder: Path = result.folder  # type: ignore[attr-defined]
    suites = ElementTree.parse(folder / "j.xml").getroot()
    assert [suite.get("failures") for suite in suites] == ["0", "0", "0"]
    text = (folder / "m.md").read_text()
    assert "holds" in text
    assert "| flaky |" in text


@pytest.mark.parametrize(
    ("contract", "message"),
    [
        ("sla: {slow: {max_latency: 5}}\n", "unknown key 'max_latency'; known here"),
        ("input_schema: {type: objct}\n", "not a JSON Schema"),
        ("allowed_actions: [slow.read]\n", "the step 'act' calls 'flaky.read'"),
        ("workflow: other\n", "this is the contract of 'other'"),
    ],
)
def test_a_contract_that_is_wrong_fails_by_its_text(
    check: Check, contract: str, message: str
) -> None:
    assert message in failed(check(contract))[0]


@pytest.mark.parametrize(
    ("expect", "message"),
    [
        ("{output: {attempt: 1}}", "the output is {"),
        ("{that: output.attempt == 2}", "output.attempt == 2 does not hold"),
        ("{that: output.nothing == 2}", "cannot be evaluated"),
        ("{status: failed}", "it is SUCCEEDED, not FAILED"),
        ("{error: TIMEOUT}", "the error is no error, not TIMEOUT"),
        ("{fell_back: true}", "it did not fall back"),
    ],
)
def test_a_case_that_comes_out_otherwise_fails(check: Check, expect: str, message: str) -> None:
    cases = f"- {{input: {GOOD}, expect: {expect}}}\n"
    assert message in failed(check(HOLDS, cases=cases))[0]


def test_a_file_of_cases_that_is_wrong_fails_with_its_line(check: Check) -> None:
    cases = "- {input: 1, expect: {}}\n- {expect: {that: nonsense == 1}}\n- {inpt: 1}\n"
    first, second, third, fourth = failed(check(HOLDS, cases=cases))
    assert "cases.yaml:1:22: [0].expect: this expects nothing" in first
    assert "unknown name 'nonsense'" in second
    assert "cases.yaml:3" in third
    assert "did you mean 'input'" in third + fourth


@pytest.mark.parametrize(
    ("sla", "given", "message"),
    [
        ("slow: {max_latency_ms: 5, min_samples: 4}", '{"ms": 40, "script": []}', "took over 5 ms"),
        (
            "flaky: {min_success_rate: 0.9, min_samples: 4}",
            f"{GOOD}\n{BAD}",
            "calls failed (10% may)",
        ),
        ("flaky: {min_success_rate: 0.9, min_samples: 9000}", GOOD, "too few to judge"),
        ("nobody: {min_success_rate: 0.9}", GOOD, "0 calls are too few"),
    ],
)
def test_a_component_outside_its_sla_fails_under_load(
    check: Check, sla: str, given: str, message: str, tmp_path: Path
) -> None:
    workflow = WORKFLOW
    if sla.startswith("nobody"):  # a component that only a plan could call
        workflow = workflow.replace("component: flaky\n", "\n")
    inputs = tmp_path / "inputs.jsonl"
    inputs.write_text(given)
    options = (*LOAD, "--input-file", str(inputs))
    result = check(f"sla: {{{sla}}}\n", *options, workflow=workflow)
    assert message in failed(result)[0]


def test_falling_back_too_often_fails_under_load(check: Check) -> None:
    contract = """
output_schema: {properties: {attempt: {maximum: 0}}}
on_output_breach: fallback
sla: {flaky: {max_fallback_rate: 0.1, min_samples: 4}}
"""
    result = check(contract, *LOAD, "--input", GOOD)
    assert "sessions fell back because of it (10% may)" in failed(result)[0]
    assert json.loads(result.stdout)["sessions"]["fell back"] > 0


def test_sessions_that_break_the_contract_fail_the_load(check: Check) -> None:
    result = check("output_schema: {required: [gone]}\n", *LOAD, "--input", GOOD)
    assert "CONTRACT_VIOLATION" in failed(result)[0]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((*LOAD,), 2),
        ((*LOAD, "--input", '{"ms": 1}'), 2),
        (("--target", "http://127.0.0.1:9"), 5),
    ],
)
def test_what_cannot_be_checked_is_no_failed_check(
    check: Check, options: tuple[str, ...], code: int
) -> None:
    assert check(HOLDS, *options).exit_code == code


def test_without_a_target_only_the_text_is_checked(check: Check, tmp_path: Path) -> None:
    root = typer.Typer()
    add_commands(root)
    (tmp_path / "contract.yaml").write_text(HOLDS)
    run = CliRunner().invoke
    alone = ["contract", "check", str(tmp_path / "contract.yaml")]
    assert run(root, alone).exit_code == 0
    assert run(root, [*alone, "--load", "2"]).exit_code == 2


SEMANTICS: Final = """
semantics:
  domains: {colour: {values: {RED: [crimson], BLUE: []}}}
  cases:
    - {domain: colour, value: crimson, means: %s}
    - {domain: colour, value: table, means: null}
"""


@pytest.mark.parametrize(("means", "code"), [("RED", 0), ("BLUE", 1)])
def test_the_contracts_own_semantic_cases_are_asked(
    check: Check, tmp_path: Path, means: str, code: int
) -> None:
    root = typer.Typer()
    add_commands(root)
    (tmp_path / "contract.yaml").write_text(SEMANTICS % means)
    arguments = ["contract", "check", str(tmp_path / "contract.yaml"), "--json"]
    result = CliRunner().invoke(root, arguments)
    if code:
        assert "should come to 'BLUE'" in failed(result)[0]
    else:
        assert "2 semantic cases" in report(result, 0)["checks"][1]["name"]
