"""A workflow file on this machine: its text with its contract, and which version it says it is.

Everything else about it is the gateway's to judge.
"""

from pathlib import Path

from acp_spec.bindings.errors import invalid_request


def read_source(file: Path) -> str:
    """The workflow's text with the contract beside it written in; INVALID_REQUEST when a file
    cannot be read or the contract is wrong in itself."""
    from gateway.cli.contract_source import contract_beside, told, written_in

    source = read_text(file)
    contract = contract_beside(source, file)
    if contract is None:
        return source
    problems = told(contract)
    if problems:
        raise invalid_request("\n".join(problems))
    return written_in(source, contract)


def read_text(file: Path) -> str:
    """The text of the file alone."""
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise invalid_request(f"{file}: cannot be read: {problem}") from None


def version_in(source: str, file: Path) -> tuple[str, str]:
    """Name and version as the file states them."""
    import yaml

    try:
        tree: object = yaml.safe_load(source)
    except yaml.YAMLError as problem:
        raise invalid_request(f"{file}: is not YAML: {problem}") from None
    named = tree if isinstance(tree, dict) else {}
    name, version = named.get("workflow"), named.get("version")
    if not isinstance(name, str) or not isinstance(version, str):
        raise invalid_request(f"{file}: needs `workflow: name` and `version: 1.0.0` at its top")
    return name, version
