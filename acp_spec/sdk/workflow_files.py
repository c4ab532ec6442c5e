"""A workflow and the contract beside it as the one file that a gateway takes.

A gateway stores one text per workflow version. `with_contract` writes the contract into it, where
the workflow names its file (`contract: contract.yaml`), else at its end; every other line stays.
What either text means is the gateway's to judge.
"""

from dataclasses import dataclass
from typing import Final

from acp_spec.codec.json_text import splice
from acp_spec.codec.yaml_tree import Mapping, Scalar, ScalarKind, json_text, read_tree

KEY: Final = "contract"
NAME: Final = "workflow"


@dataclass(frozen=True, slots=True)
class Mention:
    """What a workflow says of its contract: `file` it names; `inline`: it holds one itself."""

    workflow: str = ""
    file: Scalar | None = None
    inline: bool = False


def mention_in(workflow: str) -> Mention:
    """What this text says; nothing where it cannot be read."""
    tree = read_tree(workflow.encode()).tree
    if not isinstance(tree, Mapping):
        return Mention()
    found = tree.get(KEY)
    is_file = isinstance(found, Scalar) and found.kind is ScalarKind.TEXT
    return Mention(
        workflow=_text(tree, NAME),
        file=found if is_file and isinstance(found, Scalar) else None,
        inline=found is not None and not is_file,
    )


def workflow_of(contract: bytes) -> str:
    """Whose contract this is, as it says itself; empty where it does not."""
    tree = read_tree(contract).tree
    return _text(tree, NAME) if isinstance(tree, Mapping) else ""


def with_contract(workflow: str, contract: bytes) -> str:
    """The workflow with this contract. Raises ValueError when either cannot be read."""
    terms, whole = read_tree(contract).tree, read_tree(workflow.encode()).tree
    if terms is None or whole is None:
        raise ValueError("a file that is no YAML cannot be joined with another")
    text, named = json_text(terms), mention_in(workflow).file
    if named is not None and named.columns:
        return _instead_of(workflow, named, text=text.decode())
    if named is None and not workflow.lstrip("\ufeff \t\r\n").startswith("{"):
        return f"{workflow.rstrip()}\n{KEY}: {text.decode()}\n"
    return splice(json_text(whole), f"/{KEY}", value=text).decode()


def _instead_of(workflow: str, named: Scalar, *, text: str) -> str:
    lines = workflow.split("\n")
    line, start = lines[named.place.line - 1], named.place.column - 1
    quotes = 1 if line[start] in "'\"" else 0
    lines[named.place.line - 1] = line[:start] + text + line[named.columns[-1] + quotes :]
    return "\n".join(lines)


def _text(tree: Mapping, key: str) -> str:
    found = tree.get(key)
    return found.text if isinstance(found, Scalar) else ""
