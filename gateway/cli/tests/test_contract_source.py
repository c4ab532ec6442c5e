"""A contract beside its workflow travels inside it; every line of the workflow stays in place."""

from pathlib import Path

import pytest

from acp_spec.model.errors import AcpFailure
from gateway.cli.workflow_source import read_source
from gateway.engine.definition import Workflow
from gateway.engine.workflow_file import parse_workflow

WORKFLOW = """workflow: w
version: 1.0.0
%s
steps:
  - {name: a, role: execute, component: c, action: do}
"""
CONTRACT = "# of w\nworkflow: w\nallowed_actions: [do]\ninput_schema: {minimum: 0.10}\n"


def put(
    folder: Path, workflow: str, *, contract: str = CONTRACT, name: str = "contract.yaml"
) -> Path:
    (folder / name).write_text(contract)
    file = folder / "w.yaml"
    file.write_text(workflow)
    return file


def parsed(source: str) -> Workflow:
    workflow = parse_workflow(source.encode())
    assert isinstance(workflow, Workflow), workflow
    return workflow


@pytest.mark.parametrize("named", ["terms.yaml", "'terms.yaml'", '"terms.yaml"'])
def test_the_file_that_the_workflow_names_is_written_where_it_is_named(
    tmp_path: Path, named: str
) -> None:
    file = put(tmp_path, WORKFLOW % f"contract: {named} # there", name="terms.yaml")
    source = read_source(file)
    assert parsed(source).contract.allowed_actions == ("do",)
    assert parsed(source).contract.input_schema == b'{"minimum":0.10}'
    assert source.split("\n")[3:] == (WORKFLOW % "").split("\n")[3:]


def test_a_contract_beside_that_names_the_workflow_needs_no_mention(tmp_path: Path) -> None:
    source = read_source(put(tmp_path, WORKFLOW % ""))
    assert parsed(source).contract.workflow == "w"


def test_a_workflow_written_as_json_takes_its_contract_too(tmp_path: Path) -> None:
    text = (
        '{"workflow": "w", "version": "1.0.0", "steps": [{"name": "a", "role": "execute",'
        ' "component": "c", "action": "do", "timeout_ms": 100}]}'
    )
    source = read_source(put(tmp_path, text))
    assert parsed(source).contract.allowed_actions == ("do",)


def test_the_contract_of_another_workflow_is_left_alone(tmp_path: Path) -> None:
    file = put(tmp_path, WORKFLOW % "", contract="workflow: other\n")
    assert read_source(file) == WORKFLOW % ""


def test_an_inline_contract_wins_over_the_file_beside(tmp_path: Path) -> None:
    file = put(tmp_path, WORKFLOW % "contract: {allowed_actions: [do, be]}")
    assert parsed(read_source(file)).contract.allowed_actions == ("do", "be")


def test_a_fault_of_the_contract_is_told_with_its_own_file_and_line(tmp_path: Path) -> None:
    file = put(tmp_path, WORKFLOW % "", contract="workflow: w\nsla: {c: {}}\n")
    with pytest.raises(AcpFailure, match=r"contract\.yaml:2:10: sla\.c: this demands nothing"):
        read_source(file)


def test_a_contract_that_is_not_there_is_told_by_its_name(tmp_path: Path) -> None:
    file = put(tmp_path, WORKFLOW % "contract: gone.yaml")
    with pytest.raises(AcpFailure, match=r"gone\.yaml: the contract cannot be read"):
        read_source(file)
