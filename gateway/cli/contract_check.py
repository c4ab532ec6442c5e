"""One check of one contract: its files, then its cases, then its load, each as checks that passed
or failed. What cannot be reached is no failed check but the command's failure.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from acp_spec.bindings.errors import error
from acp_spec.codec.yaml_tree import Mapping, read_tree
from acp_spec.model.errors import AcpError, AcpFailure, Code, Reason
from acp_spec.model.gateway_calls import WorkflowVersion
from acp_spec.model.payload import Payload
from acp_spec.model.session import Problem, Validation
from gateway.cli.batch import Batch
from gateway.cli.contract_cases import Case, Outcome, faults_of, read_cases
from gateway.cli.contract_report import Check, Kind
from gateway.cli.contract_source import contract_beside, told, written_in
from gateway.cli.remote import Gateway
from gateway.cli.workflow_source import read_text
from gateway.engine.contract_checks import input_problem
from gateway.engine.definition import Workflow
from gateway.engine.workflow_file import parse_workflow
from gateway.governance.contract import NO_CONTRACT, Contract, parse_contract
from gateway.governance.semantics import failed_cases
from gateway.runtime.meaning import Meaning
from gateway.runtime.ngrams import NgramNearest
from gateway.runtime.workflow_advice import NOTE

LABELS: Final = {"acp_contract_check": "yes"}
"""On every session of a check, so that whoever reads records can tell them apart."""
# The gateway answered so: that is an outcome of a case; anything else is no answer to it.
_REFUSALS: Final = (Code.INVALID_ARGUMENT, Code.FAILED_PRECONDITION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is checked. `workflow` None: the file is a contract alone, of the workflow `name`."""

    file: Path
    contract: Contract
    name: str
    source: str = ""
    workflow: Workflow | None = None


def read_subject(file: Path) -> tuple[Subject | None, tuple[Check, ...]]:
    """The contract in a file, with the checks of its text; None when it cannot be used."""
    text = read_text(file)
    tree = read_tree(text.encode()).tree
    if isinstance(tree, Mapping) and tree.get("steps") is not None:
        return _workflow_subject(file, text)
    found = parse_contract(text.encode())
    if not isinstance(found, Contract):
        return None, _problems(file, found)
    subject = Subject(file=file, contract=found, name=found.workflow)
    return subject, (_passed("the contract can be read"),)


def _workflow_subject(file: Path, text: str) -> tuple[Subject | None, tuple[Check, ...]]:
    beside = contract_beside(text, file)
    if beside is not None and beside.problems():
        return None, tuple(_failed("the contract can be read", line) for line in told(beside))
    source = text if beside is None else written_in(text, beside)
    parsed = parse_workflow(source.encode())
    if not isinstance(parsed, Workflow):
        return None, _problems(file, parsed)
    if parsed.contract == NO_CONTRACT:
        return None, (_failed("the workflow has a contract", f"{file} has none, nor beside it"),)
    subject = Subject(
        file=file,
        contract=parsed.contract,
        name=f"{parsed.name}@{parsed.version}",
        source=source,
        workflow=parsed,
    )
    return subject, (_passed("workflow and contract can be read and fit each other"),)


def semantic_cases(contract: Contract) -> tuple[Check, ...]:
    """The contract's own cases of values and their meanings, by the gateway's default mapper."""
    semantics = contract.semantics
    if semantics is None or not semantics.cases:
        return ()
    failed = failed_cases(semantics, nearest=NgramNearest())
    if not failed:
        name = f"{len(semantics.cases)} semantic cases come out as the contract says"
        return (Check(kind=Kind.CASE, name=name, passed=True),)
    return tuple(
        Check(kind=Kind.CASE, name="semantics", passed=False, message=sentence)
        for sentence in failed
    )


def put(subject: Subject, gateway: Gateway) -> tuple[Check, ...]:
    """Held against what is registered at the target, and stored there if it is new."""
    if subject.workflow is None:
        if not subject.name:
            message = f"{subject.file}: say `workflow: NAME` in it, or check the workflow's file"
            raise AcpFailure(error(Reason.INVALID_REQUEST, message))
        return ()
    found = gateway.tell(Validation, "validate_workflow", body=subject.source)
    if not found.valid:
        return _problems(subject.file, found.problems)
    notes = [p.message.removeprefix(NOTE) for p in found.problems]
    workflow = subject.workflow
    gateway.tell(
        WorkflowVersion, "put_workflow", workflow.name, workflow.version, body=subject.source
    )
    name = "it fits the components at the target"
    return (Check(kind=Kind.SCHEMA, name=name, passed=True, message="; ".join(notes)),)


def cases_in(file: Path) -> tuple[tuple[Case, ...], tuple[Check, ...]]:
    """The cases of a file, or the checks that say what is wrong in it."""
    cases, problems = read_cases(read_text(file).encode())
    return cases, _problems(file, problems)


def run_cases(
    cases: Sequence[Case], gateway: Gateway, *, name: str, done: Callable[[], None]
) -> Iterator[Check]:
    """Each case through the live workflow."""
    for case in cases:
        began = time.monotonic()
        batch = Batch(gateway=gateway, workflow=name, labels=LABELS, deadline_ms=case.deadline_ms)
        outcome = _outcome(batch, case)
        faults = faults_of(case, outcome)
        where = f" (session {outcome.session_id})" if faults and outcome.session_id else ""
        yield Check(
            kind=Kind.CASE,
            name=case.name,
            passed=not faults,
            message="; ".join(faults) + where,
            seconds=round(time.monotonic() - began, 3),
        )
        done()


def _outcome(batch: Batch, case: Case) -> Outcome:
    try:
        view = batch.one(case.given)
    except AcpFailure as failure:
        if not _is_outcome(failure.error):
            raise
        return Outcome(error=failure.error)
    return Outcome(
        status=view.status,
        output=view.output,
        error=view.error,
        fell_back=view.fell_back,
        session_id=view.session_id,
    )


def _is_outcome(failure: AcpError) -> bool:
    return failure.code in _REFUSALS


def load_inputs(cases: Sequence[Case], given: Sequence[Payload]) -> list[Payload]:
    """What a load runs over: the inputs given, else those of cases that should succeed."""
    if given:
        return list(given)
    inputs = [case.given for case in cases if not case.expected.error]
    if inputs:
        return inputs
    message = "a load needs inputs: cases that should succeed, --input or --input-file"
    raise AcpFailure(error(Reason.INVALID_REQUEST, message))


def check_inputs(subject: Subject, inputs: Sequence[Payload]) -> None:
    """INVALID_REQUEST for inputs that the contract refuses: a load would measure nothing."""
    meaning = Meaning(NgramNearest())
    for given in inputs:
        mapped = meaning.of_input(subject.workflow, given)
        problem = mapped.refusal or input_problem(subject.workflow, mapped.text)
        if problem is not None:
            raise AcpFailure(error(Reason.INVALID_REQUEST, f"a load's {problem.message}"))


def _problems(file: Path, problems: Sequence[Problem]) -> tuple[Check, ...]:
    return tuple(
        _failed(
            f"line {p.line}, column {p.column}",
            f"{file}:{p.line}:{p.column}: {p.path}: {p.message}",
        )
        for p in problems
    )


def _failed(name: str, message: str) -> Check:
    return Check(kind=Kind.SCHEMA, name=name, passed=False, message=message)


def _passed(name: str) -> Check:
    return Check(kind=Kind.SCHEMA, name=name, passed=True)
