"""What the rules of a contract's fallback answer to the drill inputs that it gives.

No gateway is needed: the same rules are asked here that are asked there.
"""

from collections.abc import Iterator

from acp_spec.model.payload import payload
from gateway.cli.contract_report import Check, Kind
from gateway.engine.contract_checks import output_problem
from gateway.governance.business_fallback import Case, DrillInput, answer
from gateway.governance.contract import Contract
from gateway.runtime.fallback_drills import wrong


def fallback_checks(contract: Contract) -> Iterator[Check]:
    """Each drill input that the contract gives, passed or failed."""
    for index, given in enumerate(contract.fallback.drill.inputs if contract.fallback else ()):
        message = _answered(contract, given)
        yield Check(
            kind=Kind.CASE,
            name=f"fallback, drill input {index}",
            passed=not message,
            message=message,
        )


def _answered(contract: Contract, given: DrillInput) -> str:
    assert contract.fallback is not None, "its inputs are asked"
    found = answer(contract.fallback, Case(input=payload(given.input)))
    if found.error is None:
        breach = output_problem(contract, bytes(found.output))
        if breach is not None:
            return breach.message
    return wrong(given, found)
