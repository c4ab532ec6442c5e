"""What breaks a contract, as the error that says so: inputs, outputs, expressions (R14).

An input that does not fit opens nothing. An output that does not fit is no output: the session
fails, or ends with its fallback, as the contract says.
"""

from acp_spec.bindings.errors import error
from acp_spec.codec.schema_check import mismatch
from acp_spec.model.enums import Boundary, SideEffect
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.payload import payload
from gateway.engine.definition import Workflow
from gateway.expressions.expression import ExpressionError
from gateway.governance.contract import Contract


def input_problem(workflow: Workflow | None, given: bytes) -> AcpError | None:
    """Why a session with this input may not open; None when it may."""
    contract = workflow.contract if workflow else None
    fault = _fault(contract.input_schema if contract else b"", given)
    if not fault or workflow is None:
        return None
    message = f"input: it does not fit the contract of {workflow.name}@{workflow.version}: {fault}"
    return error(
        Reason.CONTRACT_VIOLATION,
        message,
        side_effect=SideEffect.NONE,
        boundary=Boundary.CLIENT,
    )


def output_problem(contract: Contract, output: bytes) -> AcpError | None:
    """Why this output does not count; None when it does."""
    fault = _fault(contract.output_schema, output)
    if not fault:
        return None
    message = f"output: it does not fit the contract's output_schema: {fault}"
    return error(Reason.CONTRACT_VIOLATION, message, boundary=Boundary.GATEWAY)


def _fault(schema: bytes, value: bytes) -> str:
    return mismatch(payload(schema), value or b"null") if schema else ""


def violation(where: str, line: int, *, text: str, problem: ExpressionError) -> AcpError:
    """An expression that failed: which field and line, which text, why (SPEC section 8)."""
    return error(
        Reason.CONTRACT_VIOLATION,
        f"{where} (line {line}): expression {text!r} failed: {problem}",
        side_effect=SideEffect.NONE,
        boundary=Boundary.GATEWAY,
    )
