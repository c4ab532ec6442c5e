"""`acp tokens`: make, list and revoke API tokens, through a running gateway or on a stopped one.

The first token of a gateway that demands tokens can only be made with --data-dir, before it starts.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.sdk.cli import JsonFlag, Output, reporting
from gateway.cli.options import GATEWAY_URL_DEFAULT, DataDir, GatewayUrl, Token, connected

if TYPE_CHECKING:
    from gateway.cli.offline import TokenPlace

app = typer.Typer(help="API tokens.", no_args_is_help=True)


@app.command("create")
def create(
    scope: Annotated[
        list[str], typer.Option(help="submit operate component annotate admin; repeatable.")
    ],
    tenant: Annotated[
        str | None,
        typer.Option(help="Whose sessions it sees; your own (with --data-dir: default) if unsaid."),
    ] = None,
    name: Annotated[
        list[str] | None, typer.Option(help="Component it may serve; repeatable, * = any.")
    ] = None,
    label: Annotated[str, typer.Option(help="What it is for.")] = "",
    days: Annotated[int, typer.Option(help="Valid so long; 0 = until revoked.")] = 0,
    data_dir: DataDir = None,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Make a token and print it: it is shown this once and kept only as a hash."""
    from gateway.runtime.tokens import TokenRequest

    out = Output(json=as_json)
    request = TokenRequest(
        scopes=tuple(scope), tenant=tenant, names=tuple(name or ()), label=label, days=days
    )
    with _place(out, data_dir, gateway=gateway, token=token) as place:
        created = place.create_token(request)
    out.note(f"token {created.info.token_id}, scopes {' '.join(created.info.scopes)}; keep it:")
    out.value(created, text=created.token)


@app.command("list")
def list_tokens(
    data_dir: DataDir = None,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Every token, without its secret."""
    from acp_spec.model.times import rfc3339

    out = Output(json=as_json)
    with _place(out, data_dir, gateway=gateway, token=token) as place:
        page = place.list_tokens()
    out.rows(
        page.tokens,
        columns=("token_id", "tenant", "scopes", "components", "label", "expires"),
        cells=lambda one: (
            one.token_id,
            one.tenant,
            " ".join(one.scopes),
            " ".join(one.names),
            one.label,
            rfc3339(one.expires_at_ms) if one.expires_at_ms else "never",
        ),
    )


@app.command("revoke")
def revoke(
    token_id: Annotated[str, typer.Argument(help="Its id, as `acp tokens list` shows it.")],
    data_dir: DataDir = None,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """End a token at once."""
    out = Output(json=as_json)
    with _place(out, data_dir, gateway=gateway, token=token) as place:
        place.revoke_token(token_id)
    out.value({"token_id": token_id, "revoked": True}, text=f"token {token_id} is revoked")


@contextlib.contextmanager
def _place(
    out: Output, data_dir: Path | None, *, gateway: str, token: str
) -> Iterator["TokenPlace"]:
    """Where the tokens are: in a directory, or behind a gateway."""
    if data_dir is None:
        with connected(out, gateway, token=token) as remote:
            yield remote
        return
    from gateway.cli.offline import offline_tokens

    with reporting(out), offline_tokens(data_dir) as tokens:
        yield tokens
