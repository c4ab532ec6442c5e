"""Whoever fails is named: what the gateway refuses itself is never said to be a component's fault.

The story: deleting a running session was refused with boundary COMPONENT, as the table has it for
that reason. So each place that makes such an error must say whose it is, or be in the list here.
"""

import ast
from pathlib import Path

from acp_spec.bindings.errors import ERRORS
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import Reason

GATEWAY = Path(__file__).parents[2]
# Places that speak of what a component said or did, or was reached for.
OF_COMPONENTS = {
    ("attach_connection.py", "CONTRACT_VIOLATION"),
    ("attach_questions.py", "CONTRACT_VIOLATION"),
    ("http_connection.py", "CONTRACT_VIOLATION"),
    ("http_connection.py", "TIMEOUT"),
    ("http_connection.py", "UNAVAILABLE"),
}


def unsaid() -> set[tuple[str, str]]:
    """(file, reason) of every error made without a boundary whose table row says COMPONENT."""
    found = set()
    for folder in ("runtime", "transports"):
        for path in (GATEWAY / folder).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                reason = _reason_of(node)
                if reason and ERRORS[Reason[reason]].boundary is Boundary.COMPONENT:
                    found.add((path.name, reason))
    return found


def _reason_of(node: ast.AST) -> str:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return ""
    says = any(keyword.arg == "boundary" for keyword in node.keywords)
    if node.func.id != "error" or says or not node.args:
        return ""
    reason = node.args[0]
    named = isinstance(reason, ast.Attribute) and isinstance(reason.value, ast.Name)
    return reason.attr if named and isinstance(reason, ast.Attribute) else ""


def test_every_refusal_of_ours_says_that_it_is_ours() -> None:
    assert unsaid() - OF_COMPONENTS == set()
