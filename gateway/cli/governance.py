"""`acp governance`: the live parameters (breakers, budgets, rates, slots), and who changed them.

`set` reads the document, changes what it is told to, and writes it back under the version it read:
somebody else's change in between is refused, never overwritten.
"""

from collections.abc import Set
from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.sdk.cli import JsonFlag, Output
from gateway.cli.options import GATEWAY_URL_DEFAULT, GatewayUrl, Token, connected

if TYPE_CHECKING:
    from gateway.cli.remote import Gateway
    from gateway.runtime.parameters import ParameterVersion

PARAMETERS = "/v1/governance/parameters"

app = typer.Typer(help="Breakers, retry budgets, rates and slots: live.", no_args_is_help=True)


@app.command("show")
def show(
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT, token: Token = "", as_json: JsonFlag = False
) -> None:
    """What holds now."""
    from gateway.runtime.parameters import ParameterVersion

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        _show(out, remote.operate(ParameterVersion, f"GET {PARAMETERS}"))


@app.command("set")
def set_parameters(
    changes: Annotated[
        list[str],
        typer.Argument(
            help="NAME=VALUE such as breaker.open_ms=2000, or components.fees.retry_tokens="
            "'{\"enabled\": false}'; VALUE is JSON, null takes the default again.",
            metavar="NAME=VALUE...",
        ),
    ],
    reason: Annotated[
        str, typer.Option(help="Why; kept with the version and in the audit log.")
    ] = "",
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Change some of them; the answer is the new version."""
    from acp_spec.codec.json import decode_request
    from gateway.cli.changed_document import changed_document
    from gateway.runtime.parameters import ParameterChange, ParameterVersion

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        now = remote.operate(ParameterVersion, f"GET {PARAMETERS}")
        text = changed_document(now.parameters, changes, expected_version=now.version, note=reason)
        change = decode_request(ParameterChange, text, max_bytes=len(text))
        _show(out, remote.operate(ParameterVersion, f"PUT {PARAMETERS}", body=change))
        named = change.parameters.components.keys() - now.parameters.components.keys()
        _note_strangers(out, remote, named=named)


@app.command("history")
def history(
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many, newest first.")] = 20,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """The versions, newest first, with what each of them changed."""
    from acp_spec.model.times import rfc3339
    from gateway.runtime.parameters import ParameterHistory, changed_fields

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        query = {"limit": str(limit)}
        page = remote.operate(ParameterHistory, f"GET {PARAMETERS}/history", query=query)
    before = {one.version + 1: one.parameters for one in page.versions}
    out.rows(
        page.versions,
        columns=("version", "changed at", "by", "changed", "note"),
        cells=lambda one: (
            str(one.version),
            rfc3339(one.at_ms) if one.at_ms else "at the start",
            one.by,
            ", ".join(changed_fields(before[one.version], one.parameters))
            if one.version in before
            else "",
            one.note,
        ),
    )


@app.command("targets")
def targets(
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT, token: Token = "", as_json: JsonFlag = False
) -> None:
    """Every instance with its breaker, its queue, and what is left of its retry tokens."""
    from gateway.runtime.target_views import TargetPage

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        page = remote.operate(TargetPage, "GET /v1/governance/targets")
    out.rows(
        page.targets,
        columns=("component", "instance", "breaker", "in flight", "waiting", "retry tokens"),
        cells=lambda one: (
            one.component,
            one.component_id,
            f"{one.breaker} ({one.open_left_ms} ms)" if one.open_left_ms else one.breaker,
            str(one.in_flight),
            str(one.waiting),
            f"{one.retry_tokens:.0%}",
        ),
    )


def _note_strangers(out: Output, remote: "Gateway", *, named: Set[str]) -> None:
    """A name that nobody has yet is allowed, and more often than not a slip."""
    from acp_spec.model.gateway_calls import ComponentPage

    if not named:
        return
    known = {one.card.name for one in remote.ask(ComponentPage, "list_components").components}
    for name in sorted(named - known):
        out.note(f"no component {name!r} is registered: it holds once there is one")


def _show(out: Output, found: "ParameterVersion") -> None:
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(found), indent=2).decode()
    out.value(found, text=text)
