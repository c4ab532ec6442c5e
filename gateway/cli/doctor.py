"""`acp doctor`: looks at this machine and says what is there, what is not, what to do about it.

With --measure it measures what the gateway's promises stand on, and names what saturates first.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.sdk.cli import Exit, JsonFlag, Output, wrong_use
from gateway.cli.options import GATEWAY_URL_DEFAULT, Token

if TYPE_CHECKING:
    from gateway.cli.checks import Check
    from gateway.cli.measure.report import Measured


app = typer.Typer()


@app.command("doctor")
def doctor(
    data_dir: Annotated[
        Path | None,
        typer.Option(help="Where the journal would be; its disk is measured. [.data]"),
    ] = None,
    measure: Annotated[
        bool,
        typer.Option("--measure", help="Measure against the promised figures; some 30 seconds."),
    ] = False,
    target: Annotated[
        str,
        typer.Option(
            "--target", envvar="ACP_GATEWAY", help="--measure: the running gateway to load."
        ),
    ] = GATEWAY_URL_DEFAULT,
    token: Token = "",
    sessions: Annotated[
        int, typer.Option(min=1, max=20_000, help="--measure: sessions opened, then removed.")
    ] = 500,
    seconds: Annotated[
        float, typer.Option(min=0.1, max=60.0, help="--measure: the most that each probe takes.")
    ] = 2.0,
    config: Annotated[
        Path | None, typer.Option(help="--measure: settings to hold it against, as for serve.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Check Python, libraries, the tools of each language, disk, ports and what holds programs.

    Exit code 1 only when the gateway itself could not run; a missing language costs the example
    components written in it, no more. With --measure: 1 when a promised figure does not hold.
    """
    out = Output(json=as_json)
    if measure:
        asked = (target, token, sessions, seconds)
        _measure(out, asked, data_dir=data_dir, config=config)
        return
    _check(out, data_dir or Path(".data"))


def _check(out: Output, data_dir: Path) -> None:
    from gateway.cli.checks import Mark, all_checks

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


def _measure(
    out: Output,
    asked: tuple[str, str, int, float],
    *,
    data_dir: Path | None,
    config: Path | None,
) -> None:
    from gateway.cli.measure.report import Asked, loaded_settings, measure
    from gateway.config.load import SettingsError

    try:
        settings = loaded_settings(config, data_dir)
    except SettingsError as problem:
        wrong_use(out, f"settings: {problem}")
    target, token, sessions, seconds = asked
    order = Asked(
        target=target,
        token=token,
        data_dir=settings.data_dir,
        settings=settings,
        sessions=sessions,
        seconds=seconds,
    )
    with out.progress("measuring", total=None) as steps:
        measured = measure(order, steps.say)
    _show(out, measured)
    if not measured.holds:
        out.note("a promised figure does not hold here: see the lines that fail")
        raise typer.Exit(Exit.FAILED)


def _show(out: Output, measured: "Measured") -> None:
    """For a person three tables and a sentence; for a program one document."""
    from gateway.cli.measure.report import details

    if out.json:
        out.value(measured)
        return
    out.rows(
        measured.claims,
        columns=("", "claim", "promised", "measured", "what to do"),
        cells=lambda one: (one.verdict.value, one.claim, one.wanted, one.measured, one.advice),
    )
    out.rows(
        list(details(measured)), columns=("", "measured"), cells=lambda row: row, title="details"
    )
    out.rows(
        measured.capacity,
        columns=("resource", "sessions/s at most", "busy at the promise", "arithmetic"),
        cells=lambda one: (
            one.resource,
            f"{one.sessions_per_s_max:,.0f}",
            f"{one.busy_at_promise:.0%}",
            one.arithmetic,
        ),
        title="what a session uses: busy = sessions/s x demand / capacity",
    )
    if measured.api is not None and measured.api.left:
        out.note(f"{measured.api.left} probe sessions could not be removed; they end by themselves")
    out.note(f"measured from {measured.seen_from}")
    if measured.first is not None:
        first = measured.first
        out.note(
            f"{first.resource} saturates first, at {first.sessions_per_s_max:,.0f} sessions/s:"
            f" {first.arithmetic}"
        )
