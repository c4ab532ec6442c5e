"""`acp contract`: check a workflow's contract before it serves, and see how it is kept."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.sdk.cli import Exit, JsonFlag, Output, reporting, wrong_use
from gateway.cli.options import GATEWAY_URL_DEFAULT, GatewayUrl, Token, connected
from gateway.cli.outputs import check_place, write_file

if TYPE_CHECKING:
    from gateway.cli.contract_cases import Case
    from gateway.cli.contract_check import Subject
    from gateway.cli.contract_report import Check, Report
    from gateway.cli.remote import Gateway

app = typer.Typer(help="Contracts of workflows: checks, and breaches.", no_args_is_help=True)

SECONDS_DEFAULT = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What a check runs, beyond reading files."""

    cases: Path | None
    load: int
    seconds: float
    given: str | None
    input_file: Path | None

    @property
    def needs_target(self) -> bool:
        return self.cases is not None or self.load > 0


@app.command("check")
def check(
    file: Annotated[Path, typer.Argument(help="A workflow file, or a contract.yaml.")],
    target: Annotated[str, typer.Option(help="Base URL of a gateway to run against.")] = "",
    cases: Annotated[Path | None, typer.Option(help="YAML: inputs, and what must come.")] = None,
    load: Annotated[int, typer.Option(help="Sessions at once; 0: no load.", min=0, max=256)] = 0,
    seconds: Annotated[
        float, typer.Option(help="How long the load lasts.", min=0.1, max=600)
    ] = SECONDS_DEFAULT,
    given: Annotated[str | None, typer.Option("--input", help="The load's input, JSON.")] = None,
    input_file: Annotated[
        Path | None, typer.Option(help="The load's inputs: .json, .jsonl or .csv.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write a JUnit report here.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write a Markdown report here.")] = None,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Schema check; with --target also cases and a bounded load against the SLA. Exit 1: it fails.

    A workflow's file is stored at the target, as `acp workflows put` does, and not activated unless
    it is the first version of its name.
    """
    out = Output(json=as_json)
    wanted = _Wanted(cases=cases, load=load, seconds=seconds, given=given, input_file=input_file)
    if wanted.needs_target and not target:
        wrong_use(out, "cases and load run against a gateway: name it with --target URL")
    with reporting(out):
        check_place("--junit", junit)
        check_place("--markdown", markdown)
        report = _checked(out, file, wanted=wanted, target=target, token=token)
        _show(out, report)
        _write(report, junit=junit, markdown=markdown)
    if not report.passed:
        raise typer.Exit(Exit.FAILED)


@app.command("standings")
def standings(
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT, token: Token = "", as_json: JsonFlag = False
) -> None:
    """What was counted lately of each component under an SLA."""
    from gateway.transports.contract_routes import StandingPage

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        page = remote.operate(StandingPage, "GET /v1/contracts/standings")
    out.rows(
        page.components,
        columns=("workflow", "component", "calls", "failed", "slow", "sessions", "fell back", ""),
        cells=lambda one: (
            one.workflow,
            f"{one.component}@{one.version}",
            str(one.counts.calls),
            str(one.counts.failed),
            str(one.counts.slow),
            str(one.counts.sessions),
            str(one.counts.fell_back),
            f"{one.on_breach.value}: {one.breach}" if one.breach else "",
        ),
    )


@app.command("breaches")
def breaches(
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT, token: Token = "", as_json: JsonFlag = False
) -> None:
    """Breaches of SLAs: those that stand, then those that ended last."""
    from gateway.transports.contract_routes import BreachPage

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        page = remote.operate(BreachPage, "GET /v1/contracts/breaches")
    out.rows(
        page.breaches,
        columns=("workflow", "component", "does", "since", "until", "why"),
        cells=lambda one: (
            one.workflow,
            f"{one.component}@{one.version}",
            one.on_breach.value,
            one.since,
            one.until or "stands",
            one.message,
        ),
    )


def _checked(out: Output, file: Path, *, wanted: _Wanted, target: str, token: str) -> "Report":
    from gateway.cli.contract_check import read_subject, semantic_cases
    from gateway.cli.contract_report import Report
    from gateway.cli.contract_rules import fallback_checks
    from gateway.cli.remote import Gateway

    subject, first = read_subject(file)
    checks: list[Check] = list(first)
    if subject is not None:
        checks.extend(semantic_cases(subject.contract))
        checks.extend(fallback_checks(subject.contract))
    sessions: Counter[str] = Counter()
    if subject is not None and target:
        with Gateway(target, token) as gateway:
            run = _Run(out, gateway, subject=subject, wanted=wanted, sessions=sessions)
            checks.extend(run.checks())
    return Report(
        file=str(file),
        target=target,
        passed=all(one.passed for one in checks),
        checks=tuple(checks),
        sessions=dict(sessions),
    )


@dataclass(frozen=True, slots=True)
class _Run:
    """The part of a check that needs a gateway. A file that does not fit is not run."""

    out: Output
    gateway: "Gateway"
    subject: "Subject"
    wanted: _Wanted
    sessions: "Counter[str]"

    def checks(self) -> "Iterator[Check]":
        from gateway.cli.contract_check import cases_in, put, run_cases

        stored = put(self.subject, self.gateway)
        yield from stored
        if not all(one.passed for one in stored):
            return
        cases, wrong = ((), ()) if self.wanted.cases is None else cases_in(self.wanted.cases)
        yield from wrong
        if wrong:
            return
        with self.out.progress("cases", total=len(cases)) as steps:
            yield from run_cases(cases, self.gateway, name=self.subject.name, done=steps.advance)
        if self.wanted.load:
            yield from self._load(cases)

    def _load(self, cases: "tuple[Case, ...]") -> "tuple[Check, ...]":
        from gateway.cli import contract_load
        from gateway.cli.batch import Batch
        from gateway.cli.contract_check import LABELS, check_inputs, load_inputs
        from gateway.cli.inputs import inputs_of

        wanted, subject = self.wanted, self.subject
        stated = wanted.given is not None or wanted.input_file is not None
        given = list(inputs_of(wanted.given, wanted.input_file)) if stated else []
        inputs = load_inputs(cases, given)
        check_inputs(subject, inputs)
        batch = Batch(gateway=self.gateway, workflow=subject.name, labels=LABELS)
        load = contract_load.Load(at_once=wanted.load, seconds=wanted.seconds)
        what = f"load: {wanted.load} sessions at once for {wanted.seconds:g} s"
        with self.out.progress(what) as steps:
            views = contract_load.run(batch, inputs, load=load, ended=steps.advance)
        self.sessions.update(view.status.value for view in views)
        self.sessions["fell back"] = sum(view.fell_back for view in views)
        with self.out.progress("reading what was recorded", total=len(views)) as steps:
            records = contract_load.trajectories(batch, views, read=steps.advance)
            return contract_load.judged(subject.contract, records, seconds=wanted.seconds)


def _write(report: "Report", *, junit: Path | None, markdown: Path | None) -> None:
    from gateway.cli import contract_report

    if junit is not None:
        write_file(junit, contract_report.junit(report), option="--junit")
    if markdown is not None:
        text = contract_report.markdown(report)
        write_file(markdown, text.encode(), option="--markdown")


def _show(out: Output, report: "Report") -> None:
    from gateway.cli.contract_report import COLUMNS, lines_of, row_of, summary

    loaded = [one for one in report.checks if one.figures is not None]
    if out.json:
        out.value(report)
        return
    out.value(None, text="\n".join(lines_of(report)))
    if loaded:
        out.rows(loaded, columns=COLUMNS, cells=row_of, title="Under load")
    out.value(None, text=summary(report))
