"""`acp rollout`: start one from a file or two options, see where it stands, order what it does."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.sdk.cli import JsonFlag, Output, wrong_use
from gateway.cli.options import GATEWAY_URL_DEFAULT, GatewayUrl, Token, connected

if TYPE_CHECKING:
    from gateway.governance.rollout import Order
    from gateway.governance.rollout_spec import RolloutSpec
    from gateway.runtime.rollouts import RolloutView

app = typer.Typer(
    help="Versions tried on some traffic before they get all of it.", no_args_is_help=True
)
RolloutId = Annotated[str, typer.Argument(help="Its name, as `acp rollout status` shows it.")]
Reason = Annotated[str, typer.Option(help="Why; it is kept in the audit log.")]


@app.command("start")
def start(
    file: Annotated[
        Path | None, typer.Argument(help="The declaration, YAML or JSON; see docs/rollouts.md.")
    ] = None,
    component: Annotated[str, typer.Option(help="name@version of a registered component.")] = "",
    workflow: Annotated[str, typer.Option(help="name@version of a stored workflow.")] = "",
    time_scale: Annotated[
        float, typer.Option(help="Every duration times this, for rehearsals.")
    ] = 1.0,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Begin in the canary stage; with --component or --workflow alone, by the default rules."""
    from gateway.runtime.rollouts import RolloutView

    out = Output(json=as_json)
    given = [bool(file), bool(component), bool(workflow)]
    if sum(given) != 1:
        wrong_use(out, "give exactly one of FILE, --component and --workflow")
    with connected(out, gateway, token=token) as remote:
        stated = _stated(file) if file else _named(component, workflow)
        spec = _spec({**stated, "time_scale": time_scale} if time_scale != 1.0 else stated)
        view = remote.operate(RolloutView, "POST /v1/rollouts", body=spec)
    _show(out, view)


@app.command("status")
def status(
    rollout_id: Annotated[str, typer.Argument(help="One of them; left out, all.")] = "",
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Where it stands, what its stage waits for, how every metric looks."""
    from gateway.cli.remote import place
    from gateway.runtime.rollouts import RolloutPage, RolloutView

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        if rollout_id:
            path = place("GET /v1/rollouts/{}", rollout_id)
            _show(out, remote.operate(RolloutView, path))
            return
        page = remote.operate(RolloutPage, "GET /v1/rollouts")
    out.rows(
        page.rollouts,
        columns=("rollout", "status", "stage", "candidates", "since", "reason"),
        cells=lambda one: (
            one.rollout_id,
            one.status.value,
            one.stage.value,
            str(one.candidates),
            one.changed_at,
            one.reason,
        ),
    )


@app.command("promote")
def promote(
    rollout_id: RolloutId,
    reason: Reason = "",
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """On to the next stage, whatever its rules say."""
    from gateway.governance.rollout import Order

    out = Output(json=as_json)
    _order(out, rollout_id, order=Order.PROMOTE, reason=reason, at=(gateway, token))


@app.command("pause")
def pause(
    rollout_id: RolloutId,
    reason: Reason = "",
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """No further session takes part; the stage's clock stands still."""
    from gateway.governance.rollout import Order

    _order(Output(json=as_json), rollout_id, order=Order.PAUSE, reason=reason, at=(gateway, token))


@app.command("resume")
def resume(
    rollout_id: RolloutId,
    reason: Reason = "",
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Go on; what the tests had stopped begins its stage anew."""
    from gateway.governance.rollout import Order

    _order(Output(json=as_json), rollout_id, order=Order.RESUME, reason=reason, at=(gateway, token))


@app.command("rollback")
def rollback(
    rollout_id: RolloutId,
    reason: Reason = "",
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Everybody back to the baseline; open sessions end on the version they began with."""
    from gateway.governance.rollout import Order

    _order(
        Output(json=as_json), rollout_id, order=Order.ROLLBACK, reason=reason, at=(gateway, token)
    )


def _order(
    out: Output, rollout_id: str, *, order: "Order", reason: str, at: tuple[str, str]
) -> None:
    """`at`: the gateway's address and a token."""
    from gateway.cli.remote import place
    from gateway.runtime.rollouts import OrderRequest, RolloutView

    url, token = at
    with connected(out, url, token=token) as remote:
        path = place("POST /v1/rollouts/{}/" + order.value.lower(), rollout_id)
        view = remote.operate(RolloutView, path, body=OrderRequest(reason=reason))
    _show(out, view)


def _stated(file: Path) -> dict[str, object]:
    """What the file says; INVALID_REQUEST when it is no YAML object."""
    import yaml

    from gateway.cli.workflow_source import read_text

    try:
        tree: object = yaml.safe_load(read_text(file))
    except yaml.YAMLError as problem:
        raise _wrong(f"{file}: is not YAML: {problem}") from None
    if not isinstance(tree, dict):
        raise _wrong(f"{file}: needs an object with at least `subject`")
    return {str(name): value for name, value in tree.items()}


def _named(component: str, workflow: str) -> dict[str, object]:
    kind, text = ("COMPONENT", component) if component else ("WORKFLOW", workflow)
    name, _, version = text.rpartition("@")
    if not name or not version:
        raise _wrong(f"{text!r} is not name@version, such as planner@2.0.0")
    return {"subject": {"kind": kind, "name": name, "candidate": version}}


def _spec(stated: dict[str, object]) -> "RolloutSpec":
    import msgspec

    from acp_spec.codec.json import decode_request
    from gateway.governance.rollout_spec import RolloutSpec

    text = msgspec.json.encode(stated)
    return decode_request(RolloutSpec, text, max_bytes=len(text), lower_case_enums=True)


def _wrong(message: str) -> Exception:
    from acp_spec.bindings.errors import error
    from acp_spec.model.errors import AcpFailure
    from acp_spec.model.errors import Reason as Named

    return AcpFailure(error(Named.INVALID_REQUEST, message))


def _show(out: Output, view: "RolloutView") -> None:
    """The rollout as sentences, its metrics as a table; with --json the whole of it."""
    if out.json:
        out.value(view)
        return
    subject = view.subject
    out.value(
        view,
        text=f"{view.rollout_id}: {view.status.value} in {view.stage.value} ({view.share:.0%}),"
        f" {subject.name} {subject.baseline} -> {subject.candidate}; {view.reason}",
    )
    for what in view.waits_for:
        out.note(f"waits for {what}")
    last = view.history[-1] if view.history else None
    for example in view.examples or (last.examples if last else ()):
        out.note(f"{example.what}: session {example.primary}, its twin {example.twin}")
    verdicts = view.verdicts or (last.verdicts if last else ())
    out.rows(
        verdicts,
        columns=("metric", "verdict", "baseline", "candidate", "candidate within", "sessions"),
        cells=lambda one: (
            one.metric,
            one.outcome.value,
            f"{one.baseline:.3g}",
            f"{one.candidate:.3g}",
            f"{one.candidate_interval.low:.3g} .. {one.candidate_interval.high:.3g}",
            f"{one.baseline_samples} / {one.candidate_samples}",
        ),
    )
