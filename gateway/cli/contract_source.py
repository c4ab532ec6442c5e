"""The contract in a file beside a workflow, written into the workflow before it is sent.

A workflow names its file (`contract: contract.yaml`), or has none and a `contract.yaml` beside it
says `workflow: NAME`. The contract's own faults are told here, where its lines are known; a gateway
only ever sees one file, whose digest covers both.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from acp_spec.bindings.errors import error
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.session import Problem
from acp_spec.sdk.workflow_files import mention_in, with_contract, workflow_of
from gateway.governance.contract import parse_contract

BESIDE: Final = "contract.yaml"


@dataclass(frozen=True, slots=True)
class Beside:
    """A contract in a file of its own."""

    file: Path
    text: bytes

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong in the contract by itself, with its own lines."""
        found = parse_contract(self.text)
        return found if isinstance(found, tuple) else ()


def contract_beside(source: str, file: Path) -> Beside | None:
    """The contract that goes with this workflow file, if it lies in a file of its own."""
    mention = mention_in(source)
    if mention.file is not None:
        path = file.parent / mention.file.text
        return Beside(path, _read(path))
    beside = file.parent / BESIDE
    if mention.inline or not beside.is_file() or beside.resolve() == file.resolve():
        return None
    text = _read(beside)
    is_its = mention.workflow != "" and workflow_of(text) == mention.workflow
    return Beside(beside, text) if is_its else None


def written_in(source: str, contract: Beside) -> str:
    """The workflow with the contract in it; the contract's problems were told before."""
    return with_contract(source, contract.text)


def told(contract: Beside) -> list[str]:
    """The contract's problems as lines for a person."""
    where = contract.file
    return [f"{where}:{p.line}:{p.column}: {p.path}: {p.message}" for p in contract.problems()]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        message = f"{path}: the contract cannot be read: {problem.strerror}"
        raise AcpFailure(error(Reason.INVALID_REQUEST, message)) from None
