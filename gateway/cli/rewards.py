"""`acp rewards`: check rules, see what holds, and score history again."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.sdk.cli import Exit, JsonFlag, Output, reporting
from gateway.cli.options import GATEWAY_URL_DEFAULT, GatewayUrl, Token, connected
from gateway.cli.rewards_given import give

if TYPE_CHECKING:
    from acp_spec.model.trajectory import Trajectory
    from gateway.rewards.decay_fit import DecayFit
    from gateway.rewards.means import Mean
    from gateway.rewards.rules import RewardRules, Rule
    from gateway.runtime.reward_rules import RulesPage

RULES = "/v1/rewards/rules"

app = typer.Typer(help="Reward rules and what they make of sessions.", no_args_is_help=True)
app.command("give")(give)

Records = Annotated[
    Path,
    typer.Option("--from", help="A gateway's data directory, or any folder of trajectories."),
]
RulesFile = Annotated[Path, typer.Argument(help="A rules file, YAML or JSON.")]


@app.callback()
def _group() -> None:
    """A group of its own, so that `check` is a word of the command line."""


@app.command("check")
def check(file: RulesFile, as_json: JsonFlag = False) -> None:
    """Check a rules file; nothing is stored and no gateway is asked."""
    from acp_spec.model.session import Validation
    from gateway.cli.workflow_source import read_text
    from gateway.rewards.rules import RewardRules
    from gateway.rewards.rules_file import parse_rules

    out = Output(json=as_json)
    with reporting(out):
        found = parse_rules(read_text(file).encode())
    if not isinstance(found, RewardRules):
        lines = [f"{file}:{p.line}:{p.column}: {p.path}: {p.message}" for p in found]
        verdict = Validation(valid=False, problems=found)
        out.value(verdict, text="\n".join([*lines, "not valid"]))
        raise typer.Exit(Exit.FAILED)
    if as_json:
        out.value(Validation(valid=True))
        return
    _table(out, found)


@app.command("put")
def put(
    file: RulesFile,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Store the rules and let them hold, while the gateway runs."""
    from gateway.cli.workflow_source import read_text
    from gateway.runtime.reward_rules import RulesPage

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        _page(out, remote.operate(RulesPage, f"PUT {RULES}", body=read_text(file)))


@app.command("drop")
def drop(
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT, token: Token = "", as_json: JsonFlag = False
) -> None:
    """Let no rules hold: rewards are as given from now on. Stored versions stay."""
    from gateway.runtime.reward_rules import RulesPage

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        _page(out, remote.operate(RulesPage, f"DELETE {RULES}"))


@app.command("show")
def show(
    session: Annotated[
        str, typer.Argument(help="A session's id: its rewards. Left out: the rules that hold.")
    ] = "",
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """The rules that hold and every stored version, or the rewards of one session."""
    from acp_spec.model.trajectory import Trajectory
    from gateway.runtime.reward_rules import RulesPage

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        if session:
            _rewards(out, remote.ask(Trajectory, "get_trajectory", session))
        else:
            _page(out, remote.operate(RulesPage, f"GET {RULES}"))


@app.command("rescore")
def rescore(
    source: Records,
    rules: Annotated[Path, typer.Option(help="The rules file to score by.")],
    as_of: Annotated[
        str, typer.Option(help="Only what was known then (RFC 3339); the newest record's time.")
    ] = "",
    to: Annotated[
        Path | None, typer.Option(help="File to write; rewards/... in a data directory.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Score recorded sessions again; writes one file beside, and touches nothing that was."""
    from gateway.cli.rewards_history import Wanted, rules_in, time_of
    from gateway.cli.rewards_history import rescore as score_again

    out = Output(json=as_json)
    with reporting(out), out.progress("scoring"):
        wanted = Wanted(source=source, rules=rules_in(rules), as_of_ms=time_of(as_of), to=to)
        made = score_again(wanted)
    if as_json:
        out.value(made)
        return
    _means(out, made.means, title=f"{made.rules.name}@{made.rules.version} as of {made.as_of}")
    state = "written" if made.is_new else "there already with the same bytes"
    out.note(f"{made.sessions} sessions in {made.file} ({state}), SHA-256 {made.sha256}")
    if made.not_known_yet:
        out.note(f"{made.not_known_yet} sessions are left out: not all of them was known then")
    if made.unusable:
        out.note(f"{made.unusable} lines could not be read")


@app.command("means")
def means(source: Records, as_json: JsonFlag = False) -> None:
    """Mean rewards per version with the share that could not be judged, and rates of feedback."""
    from gateway.cli.rewards_history import figures

    out = Output(json=as_json)
    with reporting(out), out.progress("reading"):
        found = figures(source)
    if as_json:
        out.value(found)
        return
    _means(
        out, found.means, title=f"{found.sessions} sessions, {found.without_rules} without rules"
    )
    out.rows(
        found.rates,
        columns=("feedback", "version", "rate", "drawn", "volunteered, not counted"),
        cells=lambda one: (
            one.kind.value,
            one.version,
            _figure(one.value),
            str(one.drawn),
            str(one.volunteered),
        ),
    )


@app.command("fit-decay")
def fit_decay(
    source: Records,
    signal: Annotated[
        str, typer.Option(help="Kind of feedback whose half-life is sought.")
    ] = "VALIDATION",
    label: Annotated[
        str, typer.Option(help="Kind of feedback that is trusted and comes later.")
    ] = "OUTCOME",
    good_from: Annotated[float, typer.Option(help="A label is good from this score on.")] = 0.5,
    as_json: JsonFlag = False,
) -> None:
    """The half-life of a kind of feedback, by how well it foretells what turned out later."""
    from gateway.cli.rewards_history import decay, kind_of

    out = Output(json=as_json)
    with reporting(out), out.progress("fitting"):
        kinds = kind_of(signal, "--signal"), kind_of(label, "--label")
        found = decay(source, signal=kinds[0], label=kinds[1], good_from=good_from)
    out.value(found, text=_told(found))


@app.command("draw")
def draw(
    source: Records,
    count: Annotated[int, typer.Option(min=1, help="About how many.")] = 50,
    seed: Annotated[str, typer.Option(help="The same seed draws the same; such as a date.")] = "1",
    as_json: JsonFlag = False,
) -> None:
    """Sessions for people to judge: a fifth at random, the rest where it is unclear."""
    from gateway.cli.rewards_history import drawn

    out = Output(json=as_json)
    with reporting(out), out.progress("reading"):
        found = drawn(source, count=count, seed=seed)
    out.rows(
        found,
        columns=("session", "sampling probability", "slice", "unclear"),
        cells=lambda one: (
            one.session_id,
            f"{one.sampling_probability:.4g}",
            one.slice.value,
            f"{one.unclear:g}",
        ),
    )


def _told(found: "DecayFit") -> str:
    from gateway.rewards.decay_fit import FitVerdict

    counted = "drawn" if found.drawn_only else "volunteered"
    about = f"{found.samples} sessions with signals and {counted} labels"
    if found.verdict is FitVerdict.NOT_IDENTIFIABLE:
        return f"not identifiable: {found.reason} ({about})"
    best, upper = (
        "for ever" if hours is None else f"{hours:.3g} h"
        for hours in (found.half_life_hours, found.upper_hours)
    )
    lower = f"{found.lower_hours or 0.0:.3g} h"
    return f"half-life {best}, 95 % interval from {lower} to {upper} ({about})"


def _means(out: Output, rows: "tuple[Mean, ...]", *, title: str) -> None:
    out.rows(
        rows,
        columns=("of", "version", "quality", "judged", "missing", "operational"),
        cells=lambda one: (
            one.of,
            one.version,
            _figure(one.value),
            str(one.judged),
            f"{one.missing_share:.1%}",
            _figure(one.operational),
        ),
        title=title,
    )


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _page(out: Output, page: "RulesPage") -> None:
    from acp_spec.model.times import rfc3339

    if out.json:
        out.value(page)
        return
    holds = page.holds
    out.rows(
        page.versions,
        columns=("rules", "version", "digest", "stored at", "by", "holds"),
        cells=lambda one: (
            one.ref.name,
            one.ref.version,
            one.ref.digest[:12],
            rfc3339(one.stored_at_ms),
            one.by,
            "holds" if one.holds else "",
        ),
        title=f"{holds.name}@{holds.version} holds" if holds else "no rules hold: as given",
    )
    if page.refused is not None:
        out.note(f"refused, from {page.refused.by} at {rfc3339(page.refused.at_ms)}:")
        out.note("\n".join(page.refused.problems))


def _rewards(out: Output, found: "Trajectory") -> None:
    vector = found.rewards.vector
    if out.json or vector is None:
        out.value(found.rewards)
        return
    rows = [
        (one.step, one.action, one.quality, f"{one.operational:g}", f"{one.shaped:g}")
        for one in vector.step
    ]
    rows.append(("session", "", vector.session.quality, f"{vector.session.operational:g}", ""))
    rows.append(
        ("long term", "", vector.long_term.quality, f"{vector.long_term.operational:g}", "")
    )
    out.rows(
        rows,
        columns=("of", "action", "quality", "operational", "shaped"),
        cells=lambda one: (
            one[0],
            one[1],
            f"{one[2].validity.value}: {one[2].reason}"
            if one[2].value is None
            else f"{one[2].value:g}",
            one[3],
            one[4],
        ),
        title=f"{vector.rules.name}@{vector.rules.version}, as of {vector.as_of}",
    )
    for problem in vector.problems:
        out.note(problem)


def _table(out: Output, rules: "RewardRules") -> None:
    ref = rules.ref
    out.rows(
        rules.rules,
        columns=("rule", "kind", "each", "part", "when", "worth"),
        cells=_cells,
        title=f"{ref.name}@{ref.version} {ref.digest[:12]}: valid",
    )


def _cells(rule: "Rule") -> tuple[str, ...]:
    from gateway.rewards.rules import RuleKind

    words = ("", "") if rule.kind is RuleKind.SHAPING else (rule.each.value, rule.part.value)
    when = rule.when.text if rule.when is not None else ""
    return (rule.name, rule.kind.value, *words, when, rule.worth.text)
