"""`acp doctor`: looks at this machine and says what is there, what is not, what to do about it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.sdk.cli import Exit, JsonFlag, Output

if TYPE_CHECKING:
    from gateway.cli.checks import Check


app = typer.Typer()


@app.command("doctor")
def doctor(
    data_dir: Annotated[
        Path, typer.Option(help="Where the journal would be; its disk is measured.")
    ] = Path(".data"),
    as_json: JsonFlag = False,
) -> None:
    """Check Python, libraries, the tools of each language, disk, ports and sandbox facilities.

    Exit code 1 only when the gateway itself could not run; a missing language costs the example
    components written in it, no more.
    """
    from gateway.cli.checks import Mark, all_checks

    out = Output(json=as_json)
    found: list[Check] = []
    with out.progress("checking", total=None):
        found.extend(all_checks(data_dir))
    out.rows(
        found,
        columns=("", "what", "found", "what to do"),
        cells=lambda check: (check.mark.value, check.what, check.found, check.advice),
    )
    if any(check.mark is Mark.BROKEN for check in found):
        out.note("the gateway cannot run here as it is: see the lines marked broken")
        raise typer.Exit(Exit.FAILED)
    out.note("the gateway can run here")
