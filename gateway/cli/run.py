"""`acp run`: open sessions of one workflow over one or many inputs, and say how they ended.

It starts nothing: gateway and components must be there. A file is stored first, if it is new.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.sdk.cli import Exit, JsonFlag, Output
from gateway.cli.options import GATEWAY_URL_DEFAULT, GatewayUrl, Token, connected

if TYPE_CHECKING:
    from acp_spec.model.session import SessionView

# More rows than a person reads; --json prints every one.
ROWS_MAX = 50


app = typer.Typer()


@app.command("run")
def run(
    workflow: Annotated[str, typer.Argument(help="A workflow file, or name or name@range.")],
    given: Annotated[str | None, typer.Option("--input", help="One input, as JSON.")] = None,
    input_file: Annotated[
        Path | None, typer.Option(help=".json, .jsonl or .csv with a header; - = lines of stdin.")
    ] = None,
    limit: Annotated[int, typer.Option(help="At most so many inputs; 0 = all.", min=0)] = 0,
    concurrency: Annotated[int, typer.Option(help="Sessions at once.", min=1, max=256)] = 8,
    label: Annotated[list[str] | None, typer.Option(help="name=value, on each session.")] = None,
    deadline_ms: Annotated[int, typer.Option(help="0 = the workflow's.", min=0)] = 0,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Run a workflow over input, against a gateway that runs already."""
    from gateway.cli.batch import Batch, labels_of, outcome_of, stored_workflow, summary
    from gateway.cli.inputs import inputs_of

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        batch = Batch(
            gateway=remote,
            workflow=stored_workflow(workflow, remote),
            labels=labels_of(label or []),
            deadline_ms=deadline_ms,
        )
        inputs = list(inputs_of(given, input_file, limit=limit))
        with out.progress(f"{batch.workflow}", total=len(inputs)) as steps:
            views: list[SessionView] = []
            for view in batch.run(inputs, concurrency=concurrency):
                views.append(view)
                steps.advance()
                if out.json:
                    out.value(view)
    if not out.json:
        columns = ("session_id", "status", "outcome")
        out.rows(
            views[:ROWS_MAX],
            columns=columns,
            cells=lambda view: (view.session_id, view.status.value, outcome_of(view)),
        )
        out.note(summary(views))
    if any(view.status.value != "SUCCEEDED" for view in views):
        raise typer.Exit(Exit.FAILED)
