"""`acp insight`: what the records say of workflows and components.

Reads the records of a gateway, or trajectories from a data directory or any folder without one; the
figures are made by `gateway/insight`. The same sessions, windows and seed give the same answer.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.sdk.cli import Exit, JsonFlag, Output, reporting
from gateway.cli.options import GATEWAY_URL_DEFAULT, GatewayUrl, Token

if TYPE_CHECKING:
    from gateway.cli.insight_windows import Source
    from gateway.insight.contribution import Contribution, Part
    from gateway.insight.drift import Declared, Drift, FieldDrift
    from gateway.insight.signals import Signals
    from gateway.insight.taking import Compared

app = typer.Typer(
    help="What the records say: golden signals, contributions, drift.", no_args_is_help=True
)

From = Annotated[
    str,
    typer.Option(
        "--from",
        help="`records` of the gateway, or a data directory, a file or folder of trajectories.",
    ),
]
Baseline = Annotated[
    str,
    typer.Option(help="since=TIME,until=TIME,workflow=NAME[@V],component=NAME@V; all optional."),
]
New = Annotated[str, typer.Option(help="The window held against it; the two may not overlap.")]
Workflow = Annotated[str, typer.Option(help="For windows that name none: name or name@version.")]
Ignored = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        help="JSON pointer, list places as *, of what differs in each session (a date, an id).",
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option(help="STEP:/pointer (input:/pointer): only these of that step's input count."),
]
Seed = Annotated[int, typer.Option(help="The same seed, the same answer.")]
Reward = Annotated[
    str, typer.Option(help="succeeded, quality, quality:NAME; by rules: session, long_term.")
]


@dataclass(frozen=True, slots=True)
class _Asked:
    """Two windows of one source, and what counts in them."""

    source: "Source"
    baseline: str
    new: str
    workflow: str
    ignore: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    tenant: str = ""

    def compared(self) -> "Compared":
        from acp_spec.bindings.errors import error
        from acp_spec.model.errors import AcpFailure, Reason
        from gateway.insight.taking import Compared

        only: dict[str, tuple[str, ...]] = {}
        for text in self.only:
            step, _, pointer = text.partition(":")
            if not step or (pointer and not pointer.startswith("/")):
                message = f"--only: {text!r} is not STEP:/pointer, such as input:/kind"
                raise AcpFailure(error(Reason.INVALID_REQUEST, message))
            only[step] = (*only.get(step, ()), pointer)
        return Compared(ignore=self.ignore, only=only)


@app.command("signals")
def signals(
    window: Annotated[
        str, typer.Option(help="since=TIME,until=TIME,...: sessions that ended in it.")
    ] = "",
    workflow: Workflow = "",
    baseline: Annotated[
        str, typer.Option(help="With it: the variance of contributions from there to the window.")
    ] = "",
    reward: Reward = "quality",
    prometheus: Annotated[
        bool, typer.Option(help="Print them for the textfile collector of Prometheus.")
    ] = False,
    seed: Seed = 0,
    source: From = "records",
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Success rate and p95 per workflow, fallback rate per component, variance of contributions."""
    from gateway.cli.insight_windows import Source
    from gateway.cli.insight_windows import window as window_of
    from gateway.insight.signals import exposition
    from gateway.insight.signals import signals as signals_of

    out = Output(json=as_json)
    with reporting(out):
        chosen = window_of(window, "--window", workflow=workflow)
        place = Source(source, gateway, token)
        with place.opened([chosen], by_end=True) as records:
            found = signals_of(one for one in records if chosen.ended_in(one))
            records.tell(out)
        variance = None
        if baseline:
            asked = _Asked(place, baseline, window, workflow)
            variance = _contribution(out, asked, reward=reward, seed=seed).variance
        if prometheus:
            typer.echo(exposition(found, variance), nl=False)
        else:
            _show_signals(out, found, variance=variance)


def _show_signals(out: Output, found: "Signals", *, variance: float | None) -> None:
    if out.json:
        out.value(
            {
                "workflows": found.workflows,
                "components": found.components,
                "highest_fallback": found.highest_fallback,
                "contribution_variance": variance,
            }
        )
        return
    out.rows(
        found.workflows,
        columns=("workflow", "succeeded", "failed", "cancelled", "success rate", "p95 ms"),
        cells=lambda one: (
            one.workflow,
            str(one.succeeded),
            str(one.failed),
            str(one.cancelled),
            "" if one.success_rate is None else f"{one.success_rate:.2%}",
            str(one.p95_ms),
        ),
    )
    out.rows(
        found.components,
        columns=("component", "sessions", "fell back because of it", "fallback rate"),
        cells=lambda one: (
            one.component,
            str(one.sessions),
            str(one.fallbacks),
            f"{one.fallback_rate:.2%}",
        ),
    )
    if variance is not None:
        out.note(f"variance of the components' contributions: {variance:.3g}")


@app.command("contribution")
def contribution(
    baseline: Baseline,
    new: New,
    workflow: Workflow = "",
    reward: Reward = "quality",
    rules: Annotated[
        Path | None, typer.Option(help="Score all sessions by these reward rules first.")
    ] = None,
    ignore: Ignored = None,
    only: Only = None,
    chain: Annotated[
        bool, typer.Option(help="What follows a step depends on that step alone.")
    ] = False,
    tenant: Annotated[str, typer.Option(help="Of this tenant's sessions only.")] = "",
    seed: Seed = 0,
    source: From = "records",
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """How much of the change of the mean reward is due to which component; 8 when not enough of the
    sessions have counterparts to tell."""
    from gateway.cli.insight_windows import Source

    out = Output(json=as_json)
    place = Source(source, gateway, token, rules)
    asked = _Asked(place, baseline, new, workflow, tuple(ignore or ()), tuple(only or ()), tenant)
    with reporting(out):
        found = _contribution(out, asked, reward=reward, seed=seed, chain=chain)
        _show_contribution(out, found)
    if found.refused:
        raise typer.Exit(Exit.REFUSED)


def _contribution(
    out: Output, asked: _Asked, *, reward: str, seed: int, chain: bool = False
) -> "Contribution":
    import msgspec

    from gateway.cli.insight_windows import generator, sorted_into, window

    chance = generator(seed)
    from gateway.insight.contribution import Asking
    from gateway.insight.contribution import contribution as contribution_of
    from gateway.insight.samples import SessionSample
    from gateway.insight.taking import LONG_TERM, SESSION, check_reward, session_sample

    check_reward(reward)
    compared = asked.compared()
    both = (
        window(asked.baseline, "--baseline", workflow=asked.workflow, tenant=asked.tenant),
        window(asked.new, "--new", workflow=asked.workflow, tenant=asked.tenant),
    )
    samples: tuple[list[SessionSample], list[SessionSample]] = ([], [])
    kinds: dict[SessionSample, SessionSample] = {}  # of sessions that are alike one is kept
    with asked.source.opened(both, with_parts=reward in (SESSION, LONG_TERM)) as records:
        for place, one in sorted_into(records, both, out=out):
            sample = session_sample(one, reward=reward, compared=compared)
            samples[place].append(kinds.setdefault(sample, sample))
        records.tell(out)
    for window_samples in samples:
        window_samples.sort(key=msgspec.json.encode)  # wherever they came from, one order
    with out.progress("walking every coalition"):
        return contribution_of(*samples, chance=chance, asking=Asking(chain=chain))


def _show_contribution(out: Output, found: "Contribution") -> None:
    if out.json:
        out.value(found)
        return
    out.rows(
        [("baseline", found.baseline), ("new", found.new)],
        columns=("window", "sessions", "mean reward", "without one", "covered"),
        cells=lambda one: (
            one[0],
            str(one[1].sessions),
            f"{one[1].mean:.4f}" if one[1].sessions else "-",
            str(one[1].unrewarded),
            f"{one[1].coverage:.1%}",
        ),
    )
    if found.refused:
        out.note(f"no parts are told: {found.refused}")
        return
    out.rows(found.parts, columns=("part of the change", "value", "95%"), cells=_part)
    out.note(f"in all {found.change:+.4f}" + _interval(found.span.low, found.span.high))
    if found.variance is not None:
        out.note(f"variance of the components' contributions: {found.variance:.3g}")
    if not found.exact:
        out.note("by drawn orders: too many components for all coalitions")


def _part(one: "Part") -> tuple[str, str, str]:
    span = one.span
    return one.name, f"{one.value:+.4f}", _interval(span.low, span.high) if span else ""


def _interval(low: float, high: float) -> str:
    return f" {low:+.4f} .. {high:+.4f}"


@app.command("drift")
def drift(
    baseline: Baseline,
    new: New,
    workflow: Workflow = "",
    ignore: Ignored = None,
    card: Annotated[
        list[Path] | None,
        typer.Option(help="A component's card as JSON, for its declared codes; repeatable."),
    ] = None,
    level: Annotated[
        float, typer.Option(min=0.0001, max=0.5, help="Chance of any false alarm in one look.")
    ] = 0.05,
    every: Annotated[
        bool, typer.Option("--all", help="Show fields that did not drift, too.")
    ] = False,
    seed: Seed = 0,
    source: From = "records",
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Which fields of which component's answers changed, inputs apart; 1 when any did."""
    from gateway.cli.insight_windows import Source, generator, sorted_into, window

    out = Output(json=as_json)
    asked = _Asked(Source(source, gateway, token), baseline, new, workflow, tuple(ignore or ()))
    with reporting(out):
        chance = generator(seed)
        from gateway.insight.drift import Looking
        from gateway.insight.drift import drift as drift_of
        from gateway.insight.samples import CallSample
        from gateway.insight.taking import call_samples

        both = (
            window(baseline, "--baseline", workflow=workflow),
            window(new, "--new", workflow=workflow),
        )
        compared, declared = asked.compared(), _declared(card or [])
        samples: tuple[list[CallSample], list[CallSample]] = ([], [])
        with asked.source.opened(both) as records:
            for place, one in sorted_into(records, both, out=out):
                samples[place].extend(call_samples(one, compared=compared))
            records.tell(out)
        for window_samples in samples:
            window_samples.sort(key=lambda one: (one.session_id, one.component, one.link))
        with out.progress("exchanging labels"):
            found = drift_of(
                *samples, chance=chance, looking=Looking(level=level), declared=declared
            )
        _show_drift(out, found, every=every)
    if found.drifted:
        raise typer.Exit(Exit.FAILED)


def _declared(cards: list[Path]) -> "Declared":
    import msgspec

    from acp_spec.bindings.errors import error
    from acp_spec.model.card import Card
    from acp_spec.model.errors import AcpFailure, Reason
    from gateway.insight.declared import declared

    found: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {}
    for path in cards:
        try:
            found |= declared(msgspec.json.decode(path.read_bytes(), type=Card))
        except (OSError, msgspec.DecodeError, json.JSONDecodeError) as problem:
            message = f"--card: {path} is no component card: {problem}"
            raise AcpFailure(error(Reason.INVALID_REQUEST, message)) from None
    return found


def _show_drift(out: Output, found: "Drift", *, every: bool) -> None:
    if out.json:
        out.value(found)
        return
    shown = found.fields if every else found.drifted
    if shown:
        out.rows(
            shown,
            columns=("component", "of", "end", "field", "records", "drift (nats)", "p", "verdict"),
            cells=_field,
        )
    few = sum(one.verdict.value == "TOO_FEW" for one in found.fields)
    out.note(
        f"{len(found.drifted)} of {found.tests} tested fields drifted, with a chance of at most"
        f" {found.level:.0%} of any false alarm; {few} have too few records"
    )
    for one in found.only_new:
        out.note(f"not in the baseline: {one}")


def _field(one: "FieldDrift") -> tuple[str, ...]:
    tested = one.drift is not None and one.p_adjusted is not None
    return (
        f"{one.component}@{one.version}",
        one.link,
        one.side.value,
        f"{one.field} ({one.kind.value})",
        f"{one.baseline} / {one.new}",
        f"{one.drift:.4f}" if tested else "",
        f"{one.p_adjusted:.4f}" if tested else "",
        one.verdict.value,
    )
