"""`acp records`: ask the structured replay store, see how it stands, compare it with the log."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.bindings.errors import error
from acp_spec.model.errors import Reason
from acp_spec.sdk.cli import JsonFlag, Output, fail
from gateway.cli.archive import archive
from gateway.cli.options import GATEWAY_URL_DEFAULT, GatewayUrl, Token, connected
from gateway.cli.records_copies import export_records, forget_records, import_records

if TYPE_CHECKING:
    from gateway.cli.remote import Gateway
    from gateway.stores.records.feed_status import FeedingStatus
    from gateway.transports.records_routes import RecordsStatus

app = typer.Typer(help="Every session as rows that SQL can ask.", no_args_is_help=True)

app.command("archive")(archive)
app.command("export")(export_records)
app.command("import")(import_records)
app.command("forget")(forget_records)

LOOK_EVERY_S = 0.5


@app.command("query")
def query(
    sql: Annotated[
        str, typer.Argument(help="One statement that reads: SELECT ... FROM v_sessions ...")
    ],
    rows: Annotated[int, typer.Option(help="At most so many; 0: what the gateway allows.")] = 0,
    timeout_ms: Annotated[int, typer.Option(help="At most so long; 0: what it allows.")] = 0,
    min_version: Annotated[
        list[str] | None,
        typer.Option(help="SESSION=VERSION: no answer from older rows of it (STALE_STATE)."),
    ] = None,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Run SQL over the views v_sessions, v_calls, v_decisions, v_feedback, v_rewards ..."""
    import msgspec

    from gateway.runtime.records import RecordsQuery
    from gateway.transports.records_routes import RecordsAnswer

    out = Output(json=as_json)
    pairs = [text.partition("=") for text in min_version or ()]
    least = {session: version for session, _, version in pairs}
    asked = RecordsQuery(sql=sql, max_rows=rows, timeout_ms=timeout_ms, min_versions=least)
    with connected(out, gateway, token=token) as remote:
        answer = remote.operate(RecordsAnswer, "POST /v1/records/query", body=asked)
        if out.json:
            out.value(answer)
            return
        out.rows(
            msgspec.json.decode(answer.rows, type=list[list[object]]),
            columns=tuple(column.name for column in answer.columns),
            cells=lambda row: tuple(_cell(value) for value in row),
        )


@app.command("status")
def status(
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT, token: Token = "", as_json: JsonFlag = False
) -> None:
    """Whether the store runs, and how much of the log it has not got yet. Starts nothing."""
    from gateway.transports.records_routes import RecordsStatus

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        found = remote.operate(RecordsStatus, "GET /v1/records/status")
        out.value(found, text=_shown(found))


@app.command("verify")
def verify(
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT, token: Token = "", as_json: JsonFlag = False
) -> None:
    """Compare every session of the log with the store, and heal what differs; names it."""
    from gateway.stores.records.feed_status import Outcome

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        feed = _compared(out, remote)
        found = feed.comparison
        if found.outcome is Outcome.IDENTICAL:
            out.value(found, text=f"identical: {found.compared} sessions")
            return
        named = "\n".join(found.sessions)
        more = found.differing - len(found.sessions)
        out.value(
            found,
            text=f"{found.differing} of {found.compared} sessions differed and are healed"
            f" ({found.damaged_parts} damaged parts dropped):\n{named}"
            + (f"\n... and {more} more" if more > 0 else ""),
        )


@app.command("backfill")
def backfill(
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT, token: Token = "", as_json: JsonFlag = False
) -> None:
    """Read the trajectory log again from its first line; what the store has already is left."""
    from gateway.transports.records_routes import RecordsStatus

    out = Output(json=as_json)
    with connected(out, gateway, token=token) as remote:
        found = remote.operate(RecordsStatus, "POST /v1/records/backfill")
        out.value(found, text=f"begun; see how far: acp records status\n{_shown(found)}")


def _compared(out: Output, remote: "Gateway") -> "FeedingStatus":
    """Ask for a comparison and wait for its end, saying how far it is."""
    from gateway.stores.records.feed_status import Outcome
    from gateway.transports.records_routes import RecordsStatus

    found = remote.operate(RecordsStatus, "POST /v1/records/verify")
    while True:
        feed = _feed(found)
        if feed is None or feed.problem:
            why = feed.problem if feed is not None else found.problem
            fail(out, error(Reason.UNAVAILABLE, f"the records cannot be compared now: {why}"))
        if feed.comparison.outcome in (Outcome.IDENTICAL, Outcome.HEALED):
            return feed
        out.note(f"compared {feed.comparison.compared} sessions")
        time.sleep(LOOK_EVERY_S)
        found = remote.operate(RecordsStatus, "GET /v1/records/status")


def _feed(found: "RecordsStatus") -> "FeedingStatus | None":
    import msgspec

    from gateway.stores.records.feed_status import FeedingStatus

    text = bytes(found.feed)
    return msgspec.json.decode(text, type=FeedingStatus) if text else None


def _shown(found: "RecordsStatus") -> str:
    feed = _feed(found)
    if feed is None:
        return f"{found.state.value}  {found.problem}".strip()
    return (
        f"{found.state.value}, process {feed.pid}: {feed.waiting_bytes} bytes of the log to go,"
        f" {feed.counts.sessions} sessions and {feed.counts.rows} rows since its start,"
        f" {feed.counts.quarantined} put aside; compared: {feed.comparison.outcome.value}"
        + (f"\n{feed.problem}" if feed.problem else "")
    )


def _cell(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
