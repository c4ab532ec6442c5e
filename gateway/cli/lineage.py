"""`acp lineage`: one id back to everything that was intended and everything that served."""

from typing import Annotated

import typer

from acp_spec.sdk.cli import JsonFlag, Output
from gateway.cli.options import GATEWAY_URL_DEFAULT, GatewayUrl, Token, connected

app = typer.Typer()


@app.command("lineage")
def lineage(
    lineage_id: Annotated[str, typer.Argument(help="<session_id>.<12 hex>, as in every log line.")],
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Workflow, component versions, input hash, policies, and where the run deviated."""
    import msgspec

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        out.value(msgspec.json.decode(remote.text("get_lineage", lineage_id)))
