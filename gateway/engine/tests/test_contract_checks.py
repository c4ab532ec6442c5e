"""An input that breaks the contract is told with its place, and whose fault it is."""

from acp_spec.model.enums import Boundary
from gateway.engine.contract_checks import input_problem
from gateway.engine.tests.stage import ONE_ACTION, workflow_of

WORKFLOW = workflow_of(
    ONE_ACTION % "read"
    + "contract: {input_schema: {type: object, properties: {cents: {maximum: 100}}}}\n"
)


def test_the_message_names_workflow_place_and_value() -> None:
    problem = input_problem(WORKFLOW, b'{"cents": 101}')
    assert problem is not None
    assert problem.boundary is Boundary.CLIENT
    assert "one@1.0.0: /cents: 101 is greater than" in problem.message


def test_what_fits_opens_and_an_absent_input_counts_as_null() -> None:
    assert input_problem(WORKFLOW, b'{"cents": 1e2}') is None
    assert input_problem(WORKFLOW, b"") is not None
    assert input_problem(workflow_of(ONE_ACTION % "read"), b"") is None
    assert input_problem(None, b"") is None
