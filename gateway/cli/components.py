"""`acp components`: who is registered, and registering, draining, removing by hand."""

from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.sdk.cli import JsonFlag, Output
from gateway.cli.options import GATEWAY_URL_DEFAULT, GatewayUrl, Token, connected

if TYPE_CHECKING:
    from acp_spec.model.session import Component

app = typer.Typer(help="Registered components.", no_args_is_help=True)
Id = Annotated[str, typer.Argument(help="component_id, as `acp components list` shows it.")]


@app.command("list")
def list_components(
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT, token: Token = "", as_json: JsonFlag = False
) -> None:
    """Every registered instance."""
    from acp_spec.model.gateway_calls import ComponentPage

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        page = remote.ask(ComponentPage, "list_components")
    columns = ("component_id", "component", "roles", "state", "transport", "url")
    out.rows(page.components, columns=columns, cells=_cells)


@app.command("show")
def show(
    component_id: Id,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """One instance with its card."""
    from acp_spec.model.session import Component

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        out.value(remote.ask(Component, "get_component", component_id))


@app.command("add")
def add(
    url: Annotated[str, typer.Argument(help="http(s)://host:port[/base] or grpc(s)://host:port")],
    lease_seconds: Annotated[int, typer.Option(help="0 = the gateway's default.")] = 0,
    auth: Annotated[str, typer.Option(help="Name of a credential in the gateway's file.")] = "",
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Register a component that listens somewhere; the gateway reads and checks its card."""
    from acp_spec.model.enums import Transport
    from acp_spec.model.session import Component, RegisterRequest

    out = Output(json=as_json)
    transport = Transport.GRPC if url.startswith("grpc") else Transport.HTTP
    request = RegisterRequest(url=url, transport=transport, lease_seconds=lease_seconds, auth=auth)
    with connected(out, gateway, token=token) as remote:
        found = remote.tell(Component, "register_component", body=request)
    card = found.card
    out.value(found, text=f"{found.component_id}  {card.name}@{card.version} registered")


@app.command("drain")
def drain(
    component_id: Id,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Send it no new calls."""
    from acp_spec.model.session import Component

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        found = remote.tell(Component, "drain_component", component_id)
    out.value(found, text=f"{component_id} is {found.state}")


@app.command("remove")
def remove(
    component_id: Id,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Remove an instance; its running calls end as they would have."""
    from acp_spec.model.gateway_calls import Empty

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        remote.tell(Empty, "remove_component", component_id)
    out.value({"component_id": component_id, "removed": True}, text=f"{component_id} removed")


def _cells(component: "Component") -> tuple[str, ...]:
    card = component.card
    return (
        component.component_id,
        f"{card.name}@{card.version}",
        " ".join(role.value for role in card.roles),
        component.state,
        component.transport.value,
        component.url,
    )
