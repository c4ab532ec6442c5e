"""`acp workflows`: store, check, list and activate workflow versions."""

from pathlib import Path
from typing import Annotated

import typer

from acp_spec.sdk.cli import Exit, JsonFlag, Output, reporting
from gateway.cli.options import GATEWAY_URL_DEFAULT, GatewayUrl, Token, connected
from gateway.cli.workflow_source import read_source, read_text, version_in

app = typer.Typer(help="Workflow versions.", no_args_is_help=True)
File = Annotated[Path, typer.Argument(help="A workflow file, YAML or JSON.")]
Name = Annotated[str, typer.Argument(help="Its name, as `acp workflows list` shows it.")]
Version = Annotated[str, typer.Argument(help="One of its stored versions, such as 1.2.0.")]


@app.command("list")
def list_workflows(
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT, token: Token = "", as_json: JsonFlag = False
) -> None:
    """Every stored version; one of each name is active."""
    from acp_spec.model.gateway_calls import WorkflowPage

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        page = remote.ask(WorkflowPage, "list_workflows")
    out.rows(
        page.workflows,
        columns=("workflow", "version", "active", "stored", "sha256"),
        cells=lambda one: (
            one.name,
            one.version,
            "active" if one.active else "",
            one.stored_at,
            one.sha256[:12],
        ),
    )


@app.command("show")
def show(
    name: Name,
    version: Version,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """The file of one version, as it was stored."""
    from acp_spec.model.gateway_calls import WorkflowVersion

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        found = remote.ask(WorkflowVersion, "get_workflow", name, version)
    out.value(found, text=found.source.rstrip("\n"))


@app.command("put")
def put(
    file: File,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Store the version that the file names, with the contract beside it; it never changes."""
    from acp_spec.model.gateway_calls import WorkflowVersion

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        source = read_source(file)
        name, version = version_in(source, file)
        stored = remote.tell(WorkflowVersion, "put_workflow", name, version, body=source)
    state = "active" if stored.active else "not active: `acp workflows activate`"
    out.value(stored, text=f"{name}@{version} is stored ({state})")


@app.command("validate")
def validate(
    file: File,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Check a file, with the contract beside it, against the language and the registered
    components; nothing is stored."""
    from acp_spec.model.session import Validation
    from gateway.cli.contract_source import contract_beside, told

    out = Output(json=as_json)
    with reporting(out):
        contract = contract_beside(read_text(file), file)
    if contract is not None and contract.problems():
        lines = [*told(contract), "not valid"]
        found = Validation(valid=False, problems=contract.problems())
        out.value(found, text="\n".join(lines))
        raise typer.Exit(Exit.FAILED)
    with connected(out, gateway, token=token) as remote:
        found = remote.tell(Validation, "validate_workflow", body=read_source(file))
    lines = [f"{file}:{p.line}:{p.column}: {p.path}: {p.message}" for p in found.problems]
    out.value(found, text="\n".join([*lines, "valid" if found.valid else "not valid"]))
    if not found.valid:
        raise typer.Exit(Exit.FAILED)


@app.command("activate")
def activate(
    name: Name,
    version: Version,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Make a version the one that the bare name means."""
    from acp_spec.model.gateway_calls import WorkflowVersion

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        stored = remote.tell(WorkflowVersion, "activate_workflow", name, version)
    out.value(stored, text=f"{name}@{version} is active")


@app.command("delete")
def delete(
    name: Name,
    version: Version,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Take a version out of use that no open session and no rollout needs."""
    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        remote.delete_workflow(name, version)
    gone = {"name": name, "version": version, "deleted": True}
    out.value(gone, text=f"{name}@{version} is deleted; sessions that ran it can still be read")
