"""`acp conformance`: the suite as a command; `acp conformance matrix` proves the suite itself.

Exit 0: every MUST that applies was seen to hold. 1: one failed, was not tested, or the run is not
whole. 2: the command is wrong.
"""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from acp_spec.sdk.cli import Exit, JsonFlag, Output, harmless, reporting, wrong_use

app = typer.Typer()
conformance = typer.Typer(
    help="Check that a component or a gateway speaks ACP v1.", invoke_without_command=True
)
app.add_typer(conformance, name="conformance")

SCHEMES = {"http": ("http", "https"), "grpc": ("grpc", "grpcs")}


@conformance.callback()
def check(
    context: typer.Context,
    target: Annotated[
        list[str] | None, typer.Option(help="URL; name both bindings by giving it twice.")
    ] = None,
    kind: Annotated[str, typer.Option(help="component, gateway or sdk.")] = "component",
    transport: Annotated[
        str, typer.Option(help="http or grpc, by the URL's scheme; or attach.")
    ] = "",
    attach_bind: Annotated[
        str, typer.Option(help="Where a component that attaches dials in.")
    ] = "127.0.0.1:0",
    command: Annotated[
        str, typer.Option(help="Starts the component that attaches; ACP_ATTACH says where to.")
    ] = "",
    fixtures: Annotated[Path | None, typer.Option(help="Safe calls, tokens: YAML.")] = None,
    allow_side_effects: Annotated[
        bool, typer.Option("--allow-side-effects", help="Also send examples not marked safe.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Draws the same values again.")] = 1,
    report: Annotated[Path | None, typer.Option(help="Folder for all four reports.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Requirement or case id; may be given again.")
    ] = None,
    known_failing: Annotated[Path | None, typer.Option(help="What fails, with reasons.")] = None,
    json: JsonFlag = False,
) -> None:
    """Run every case that fits what the target declares."""
    if context.invoked_subcommand is not None:
        return
    from conformance_tests.report import to_json, to_text, write_reports
    from conformance_tests.runner.dialling import started_by, telling
    from conformance_tests.runner.suite import Wrong, options_of, read_known, run_suite

    out = Output(json=json)
    _check_folder(report, out)
    try:
        options = options_of(
            _targets(target or [], transport=transport, kind=kind, out=out),
            kind,
            fixtures=fixtures,
            seed=seed,
            allow_side_effects=allow_side_effects,
        ).attached_at(attach_bind if transport == "attach" else "")
        options = options.limited(tuple(only or ()))
        dial = started_by(command) if command else telling(out.note)
        run = asyncio.run(run_suite(options, known=read_known(known_failing), dial=dial))
    except Wrong as problem:
        wrong_use(out, str(problem))
    typer.echo(to_json(run) if json else harmless(to_text(run)), nl=False)
    if report is not None:
        try:
            out.note(f"wrote {', '.join(str(path) for path in write_reports(run, report))}")
        except OSError as problem:  # the disk filled up meanwhile, say: what was found is told
            wrong_use(out, f"--report {report}: {problem.strerror}; give a folder to write to")
    raise typer.Exit(Exit.FAILED if run.failed else Exit.OK)


def _check_folder(report: Path | None, out: Output) -> None:
    """Before the minutes that a run takes, not behind them."""
    try:
        if report is not None:
            report.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        wrong_use(out, f"--report {report}: {problem.strerror}; give a folder to write to")


def _targets(stated: list[str], *, transport: str, kind: str, out: Output) -> tuple[str, ...]:
    if transport == "attach" and kind == "gateway":
        wrong_use(out, "A gateway's side of attach is checked with its --target grpc://host:port.")
    if transport == "attach" and stated:
        wrong_use(
            out,
            "A component that attaches has no address: leave out --target, and start it with "
            "--command, or point it to --attach-bind.",
        )
    if transport == "attach":
        return ()
    if not stated:
        wrong_use(out, "Name what to check: --target http://127.0.0.1:9001")
    if transport and transport not in SCHEMES:
        wrong_use(out, f"--transport is http, grpc or attach, not {transport!r}")
    urls = tuple(url if "://" in url else f"{transport or 'http'}://{url}" for url in stated)
    for url in urls:
        if transport and url.partition("://")[0] not in SCHEMES[transport]:
            wrong_use(out, f"{url} is not reached over {transport}")
    return urls


@conformance.command()
def matrix(
    kind: Annotated[str, typer.Option(help="component, gateway, or all.")] = "all",
    only: Annotated[list[str] | None, typer.Option(help="Requirement ids.")] = None,
    json: JsonFlag = False,
) -> None:
    """Run the suite against a peer for every MUST that breaks it and nothing else."""
    from conformance_tests.broken.matrix import parties_of, run_matrix

    out = Output(json=json)
    with reporting(out):
        found = asyncio.run(run_matrix(parties_of(kind), only=tuple(only or ())))
    for row in found.rows:
        if not row.whole:
            out.note(f"{row.requirement.id} ({row.party.value}): {row.said}")
    out.value(found.counts())
    raise typer.Exit(Exit.OK if found.whole else Exit.FAILED)
