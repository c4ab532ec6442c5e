"""Cases that a contract itself declares: what values mean, and what its fallback's rules answer.

They need no gateway: the same mapper and the same rules are asked here that are asked there.
"""

from collections.abc import Iterator

from acp_spec.model.payload import payload
from gateway.cli.contract_report import Check, Kind
from gateway.engine.contract_checks import output_problem
from gateway.governance.business_fallback import Case, DrillInput, answer
from gateway.governance.contract import Contract
from gateway.governance.domains import place
from gateway.runtime.fallback_drills import wrong
from gateway.runtime.ngrams import NgramNearest


def declared_checks(contract: Contract) -> tuple[Check, ...]:
    """Each declared case, passed or failed."""
    return (*_semantics(contract), *_rules(contract))


def _semantics(contract: Contract) -> Iterator[Check]:
    nearest = NgramNearest()
    for case in contract.semantics.cases if contract.semantics else ():
        found = place(case.domain, case.value, nearest=nearest)
        came = f"comes to {found.value!r}" if found.value else "is refused"
        wanted = f"should come to {case.means!r}" if case.means else "should be refused"
        right = found.value == case.means
        yield Check(
            kind=Kind.CASE,
            name=f"semantics, line {case.line}: {case.domain.name}: {case.value!r}",
            passed=right,
            message="" if right else f"it {came} ({found.confidence:.2f}), it {wanted}",
        )


def _rules(contract: Contract) -> Iterator[Check]:
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
