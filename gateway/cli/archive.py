"""`acp records archive`: how the cold tier stands, a pass at once, a check of all of it."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.sdk.cli import Exit, JsonFlag, Output
from gateway.cli.options import GATEWAY_URL_DEFAULT, GatewayUrl, Token, connected

if TYPE_CHECKING:
    from gateway.cli.remote import Gateway
    from gateway.runtime.archive import ArchiveStatus

LOOK_EVERY_S = 0.5


def archive(
    now: Annotated[
        bool, typer.Option("--now", help="Move what is old enough at once, and wait for it.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Read all of the archive, compare it with its checksums, and heal it."
        ),
    ] = False,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Files that left the trajectory log: how many, what waits, what went wrong."""
    from gateway.runtime.archive import ArchiveStatus

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        if now or check:
            found = _passed(out, remote, check=check)
        else:
            found = remote.operate(ArchiveStatus, "GET /v1/records/archive")
        out.value(found, text=_shown(found))
    if (now or check) and found.troubles:
        raise typer.Exit(Exit.FAILED)


def _passed(out: Output, remote: "Gateway", *, check: bool) -> "ArchiveStatus":
    """How it stands after a pass that began now."""
    from gateway.runtime.archive import ArchiveState, ArchiveStatus
    from gateway.transports.archive_routes import ArchivePass

    before = remote.operate(ArchiveStatus, "GET /v1/records/archive")
    # A pass that is under way has begun before the wish: it does not count.
    wanted = before.passes + (2 if before.state is ArchiveState.RUNNING else 1)
    found = remote.operate(ArchiveStatus, "POST /v1/records/archive", body=ArchivePass(check=check))
    while found.passes < wanted:
        out.note(f"{found.moved} files moved, {found.checked} checked")
        time.sleep(LOOK_EVERY_S)
        found = remote.operate(ArchiveStatus, "GET /v1/records/archive")
    return found


def _shown(found: "ArchiveStatus") -> str:
    counts = (
        f"{found.state.value}: {found.files} files in the archive; since the start"
        f" {found.moved} moved, {found.dropped} dropped by retention, {found.checked} checked,"
        f" {found.healed} healed"
    )
    lines = [counts]
    if found.erasing:
        lines.append(f"{found.erasing} deletions have not reached it yet")
    if found.waiting:
        lines.append(f"{found.waiting} files wait until the records have got them")
    return "\n".join([*lines, *found.troubles])
