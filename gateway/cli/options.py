"""Options that several commands share, and the one way to reach a gateway with them."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.sdk.cli import JsonFlag, Output, reporting

if TYPE_CHECKING:
    from gateway.cli.remote import Gateway

__all__ = ["DataDir", "GatewayUrl", "JsonFlag", "Token", "connected"]

GATEWAY_URL_DEFAULT = "http://127.0.0.1:8080"

GatewayUrl = Annotated[
    str, typer.Option("--gateway", envvar="ACP_GATEWAY", help="Base URL of the gateway.")
]
Token = Annotated[
    str,
    typer.Option(
        "--token",
        envvar="ACP_TOKEN",
        help="API token, where the gateway asks for one.",
        show_default=False,
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Work on a stopped gateway's directory instead of an address."),
]  # fmt: skip


@contextlib.contextmanager
def connected(out: Output, url: str, *, token: str) -> Iterator["Gateway"]:
    """A gateway to talk to; failures inside become a message and an exit code."""
    from gateway.cli.remote import Gateway

    with reporting(out), Gateway(url, token) as gateway:
        yield gateway
