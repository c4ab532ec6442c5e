"""The contract in a file beside a workflow, written into the workflow before it is sent.

A workflow names its file (`contract: contract.yaml`), or has none and a `contract.yaml` beside it
says `workflow: NAME`. The contract's own faults are told here, where its lines are known; a gateway
only ever sees one file, whose digest covers both.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from acp_spec.bindings.errors import error
from acp_spec.codec.json_text import splice
from acp_spec.codec.yaml_tree import Mapping, Scalar, ScalarKind, json_text, read_tree
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.session import Problem
from gateway.governance.contract import parse_contract

BESIDE: Final = "contract.yaml"
KEY: Final = "contract"


@dataclass(frozen=True, slots=True)
class Beside:
    """A contract in a file of its own, and where the workflow names it (None: it does not)."""

    file: Path
    text: bytes
    named_at: Scalar | None = None

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong in the contract by itself, with its own lines."""
        found = parse_contract(self.text)
        return found if isinstance(found, tuple) else ()


def contract_beside(source: str, file: Path) -> Beside | None:
    """The contract that goes with this workflow file, if it lies in a file of its own."""
    tree = read_tree(source.encode()).tree
    if not isinstance(tree, Mapping):
        return None  # the gateway tells what is wrong with it
    named = tree.get(KEY)
    if isinstance(named, Scalar) and named.kind is ScalarKind.TEXT:
        path = file.parent / named.text
        return Beside(path, _read(path), named)
    beside = file.parent / BESIDE
    if named is not None or not beside.is_file() or beside.resolve() == file.resolve():
        return None
    text, workflow = _read(beside), tree.get("workflow")
    whose = _workflow_of(text)
    mine = isinstance(workflow, Scalar) and whose == workflow.text
    return Beside(beside, text) if mine else None


def written_in(source: str, contract: Beside) -> str:
    """The workflow with the contract in it; every other line stays where it is."""
    tree = read_tree(contract.text).tree
    assert tree is not None, "its problems were told before"
    text = json_text(tree)
    named = contract.named_at
    if named is not None and named.columns:
        lines = source.split("\n")
        line, start = lines[named.place.line - 1], named.place.column - 1
        quotes = 1 if line[start] in "'\"" else 0
        end = named.columns[-1] + quotes
        lines[named.place.line - 1] = line[:start] + text.decode() + line[end:]
        return "\n".join(lines)
    if named is None and not source.lstrip("\ufeff \t\r\n").startswith("{"):
        return f"{source.rstrip()}\n{KEY}: {text.decode()}\n"
    whole = read_tree(source.encode()).tree
    assert whole is not None, "it was read to find the contract"
    return splice(json_text(whole), f"/{KEY}", value=text).decode()


def told(contract: Beside) -> list[str]:
    """The contract's problems as lines for a person."""
    where = contract.file
    return [f"{where}:{p.line}:{p.column}: {p.path}: {p.message}" for p in contract.problems()]


def _workflow_of(text: bytes) -> str:
    tree = read_tree(text).tree
    found = tree.get("workflow") if isinstance(tree, Mapping) else None
    return found.text if isinstance(found, Scalar) else ""


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        message = f"{path}: the contract cannot be read: {problem.strerror}"
        raise AcpFailure(error(Reason.INVALID_REQUEST, message)) from None
