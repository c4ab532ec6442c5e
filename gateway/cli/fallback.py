"""`acp fallback`: who answers a workflow's sessions now, and whether its rules still work."""

from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.sdk.cli import Exit, JsonFlag, Output
from gateway.cli.options import GATEWAY_URL_DEFAULT, GatewayUrl, Token, connected

if TYPE_CHECKING:
    from gateway.runtime.fallback_drills import DrillResult, FallbackView

app = typer.Typer(help="Business fallbacks: rules that answer.", no_args_is_help=True)


@app.command("status")
def status(
    workflow: Annotated[str, typer.Argument(help="Its name; left out: all with rules.")] = "",
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Who answers, since when, and what the last drill found."""
    from gateway.cli.remote import place
    from gateway.runtime.fallback_drills import FallbackPage, FallbackView

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        if workflow:
            path = place("/v1/fallbacks/{}", workflow)
            views: tuple[FallbackView, ...] = (remote.operate(FallbackView, f"GET {path}"),)
        else:
            views = remote.operate(FallbackPage, "GET /v1/fallbacks").fallbacks
    out.rows(
        views,
        columns=("workflow", "rules", "answers", "since", "failures", "successes", "last drill"),
        cells=_cells,
    )


def _cells(one: "FallbackView") -> tuple[str, ...]:
    terms = one.terms
    return (
        f"{one.workflow}@{one.version}",
        one.rules_version,
        one.standing.value,
        one.since,
        f"{one.failures}/{terms.after_failures}",
        f"{one.successes}/{terms.return_after}",
        _said(one.drill) if one.drill else "never",
    )


@app.command("drill")
def drill(
    workflow: Annotated[str, typer.Argument(help="The workflow whose rules are tried.")],
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Try the rules on recorded inputs now; nothing is sent. Exit 1 if an answer is not right."""
    from gateway.cli.remote import place
    from gateway.runtime.fallback_drills import DrillAnswer, DrillOutcome

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        path = place("/v1/fallbacks/{}/drill", workflow)
        result = remote.operate(DrillAnswer, f"POST {path}").drill
    lines = [f"{one.source}: {one.message}" for one in result.failures]
    for rule in result.never_asked:
        lines.append(f"note: no input reached the rule {rule!r}")
    out.value(result, text="\n".join([*lines, _said(result)]))
    if result.outcome is not DrillOutcome.PASSED:
        raise typer.Exit(Exit.FAILED)


def _said(result: "DrillResult") -> str:
    right = result.inputs - result.failed
    return f"{result.outcome.value}: {right} of {result.inputs} right, {result.at}"
