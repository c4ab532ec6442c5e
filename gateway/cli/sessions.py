"""`acp sessions`: look at sessions, follow them, prove their journals, stop and erase them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.sdk.cli import Exit, JsonFlag, Output, reporting, wrong_use
from gateway.cli.options import GATEWAY_URL_DEFAULT, GatewayUrl, Token, connected

if TYPE_CHECKING:
    from acp_spec.model.session import SessionView
    from gateway.engine.replay import Replayed

app = typer.Typer(help="Decision sessions.", no_args_is_help=True)
Id = Annotated[str, typer.Argument(help="session_id, as `acp sessions list` shows it.")]


@app.command("list")
def list_sessions(
    status: Annotated[str, typer.Option(help="RUNNING WAITING SUCCEEDED FAILED CANCELLED")] = "",
    workflow: Annotated[str, typer.Option(help="Only of this workflow (its name).")] = "",
    limit: Annotated[int, typer.Option(help="At most so many; 0 = all.", min=0)] = 50,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Sessions of your tenant, the newest first."""
    from gateway.cli.paging import sessions_of

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        found = sessions_of(remote, limit=limit, status=status, workflow=workflow)
        out.rows(
            found,
            columns=("session_id", "workflow", "status", "opened", "ended"),
            cells=_cells,
        )


@app.command("show")
def show(
    session_id: Id,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """How one session stands."""
    from acp_spec.model.session import SessionView

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        out.value(remote.ask(SessionView, "get_session", session_id))


@app.command("follow")
def follow(
    session_id: Id,
    after: Annotated[int, typer.Option(help="Only events beyond this number.", min=0)] = 0,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Print the session's events as they happen, until it ends."""
    from acp_spec.model.gateway_calls import SessionEvent
    from acp_spec.model.payload import payload

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        for number, name, data in remote.events(session_id, after=after):
            event = SessionEvent(id=number, type=name, data=payload(data))
            out.value(event, text=f"{number:>4}  {name:<16} {data.decode()}")


@app.command("trace")
def trace(
    session_id: Id,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """What happened, as a tree with times: steps, calls, attempts, decisions."""
    from acp_spec.model.trajectory import Trajectory
    from gateway.cli.trace_tree import tree_of

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        trajectory = remote.ask(Trajectory, "get_trajectory", session_id)
    if out.json:
        out.value(trajectory)
    else:
        out.show(tree_of(trajectory))


@app.command("trajectory")
def trajectory(
    session_id: Id,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """The whole record as one JSON document, as training reads it; --json changes failures only."""
    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        out.document(remote.text("get_trajectory", session_id))


@app.command("replay")
def replay(
    session_id: Id,
    data_dir: Annotated[
        Path,
        typer.Option(
            envvar="ACP_DATA_DIR",
            help="The gateway's data directory, if it is not .data; the gateway may run.",
        ),
    ] = Path(".data"),
    as_json: JsonFlag = False,
) -> None:
    """Run a session's journal through the engine again and prove that it commands the same.

    The commands are proven once the session has ended: its end holds the hash of all of them.
    Before that, every event so far must answer a command ("proven": false).
    """
    from gateway.cli.offline import replayed

    out = Output(json=as_json)
    with reporting(out):
        result = replayed(data_dir, session_id)
    text = f"{session_id}: {result.events} events, {result.commands} commands"
    out.value(result, text=f"{text}, {_found(result)}")
    if not result.same:
        raise typer.Exit(Exit.FAILED)


@app.command("cancel")
def cancel(
    session_id: Id,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Ask it to stop; it is CANCELLED once its calls have ended or their grace has passed."""
    from acp_spec.model.session import SessionView

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        view = remote.tell(SessionView, "cancel_session", session_id)
    out.value(view, text=f"{session_id} is {view.status.value}")


@app.command("delete")
def delete(
    session_id: Id,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Erase its payloads for good; a tombstone stays."""
    from acp_spec.model.gateway_calls import Empty

    out = Output(json=as_json)
    if not yes and as_json:
        wrong_use(out, "--json asks nothing: add --yes to erase the session's payloads for good")
    with reporting(out):
        if not yes and not out.confirmed(f"Erase the payloads of {session_id} for good?"):
            raise typer.Exit(Exit.REFUSED)
    with connected(out, gateway, token=token) as remote:
        remote.tell(Empty, "delete_session", session_id)
    out.value({"session_id": session_id, "erased": True}, text=f"{session_id} is erased")


def _found(result: "Replayed") -> str:
    """What the replay says about the session, in words."""
    if result.proven:
        return "the same"
    if result.same:
        return "not ended: the events so far are explained, the commands are proven only at the end"
    return result.difference


def _cells(view: "SessionView") -> tuple[str, ...]:
    times = view.times
    return (
        view.session_id,
        view.workflow,
        view.status.value + (" (fell back)" if view.fell_back else ""),
        times.opened_at if times else "",
        times.ended_at if times else "",
    )
