"""`acp lineage`: from an id to everything behind a run, from a version to its runs, between two."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.sdk.cli import JsonFlag, Output, wrong_use
from gateway.cli.options import GATEWAY_URL_DEFAULT, GatewayUrl, Token, connected

if TYPE_CHECKING:
    from gateway.cli.remote import Gateway
    from gateway.insight.differing import Difference
    from gateway.runtime.lineage import LineageDiff
    from gateway.runtime.lineage_search import LineageMatch, LineageMatches

app = typer.Typer()

PAGE = 200
COMPONENTS_SHOWN = 4


@app.command("lineage")
def lineage(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[ID]",
            help="Of a session, a lineage, a trace or a call, as log lines and traces have it.",
        ),
    ] = "",
    against: Annotated[
        str, typer.Option(metavar="ID", help="Another run: print what the two differ in.")
    ] = "",
    component: Annotated[
        str, typer.Option(help="Runs with it: name or name@version, intended or served.")
    ] = "",
    workflow: Annotated[str, typer.Option(help="Runs of it: name or name@version.")] = "",
    policy: Annotated[str, typer.Option(help="Runs under it: name@version#digest.")] = "",
    input_hash: Annotated[str, typer.Option(help="Runs with this input (its SHA-256).")] = "",
    since: Annotated[str, typer.Option(help="Opened then or later: 2026-11-29[T15:00:00Z].")] = "",
    until: Annotated[str, typer.Option(help="Opened before.")] = "",
    limit: Annotated[int, typer.Option(help="At most so many runs; 0 = all.", min=0)] = 50,
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """Versions intended and served, policies, calls, logs, trace, feedback and rewards of a run;
    or all runs of a version, a policy, an input; or what two runs differ in."""
    out = Output(json=as_json)
    shared = {
        "component": component,
        "workflow": workflow,
        "policy": policy,
        "input_sha256": input_hash,
        "since": since,
        "until": until,
    }
    if bool(name) == any(shared.values()):
        wrong_use(out, "give the id of a run, or what runs have in common, such as --component")
    if against and not name:
        wrong_use(out, "--against needs the id of a run to hold against the other")
    with connected(out, gateway, token=token) as remote:
        if not name:
            _show_runs(out, _runs(out, remote, shared=shared, limit=limit))
        elif against:
            _show_difference(out, remote, name=name, other=against)
        else:
            _show_run(out, remote, name=name)


def _show_run(out: Output, remote: "Gateway", *, name: str) -> None:
    """The page of a run; a trace of several sessions gives a choice."""
    from gateway.cli.lineage_text import run_text
    from gateway.cli.remote import place
    from gateway.runtime.lineage import LineageRun

    found = _sessions_of(remote, name)
    if len(found) > 1:
        out.note(f"{name} is the trace of {len(found)} runs; name one of them")
        _show_runs(out, iter(found))
        return
    path = place("GET /v1/lineage/{}/run", found[0].session_id if found else name)
    run = remote.operate(LineageRun, path)
    out.value(run, text=run_text(run))


def _show_difference(out: Output, remote: "Gateway", *, name: str, other: str) -> None:
    from gateway.cli.remote import place
    from gateway.runtime.lineage import LineageDiff

    ids = []
    for one in (name, other):
        found = _sessions_of(remote, one)
        if len(found) > 1:
            wrong_use(out, f"{one} is the trace of {len(found)} runs: name a session's id")
        ids.append(found[0].session_id if found else one)
    path = place("GET /v1/lineage/{}/against/{}", *ids)
    found_diff = remote.operate(LineageDiff, path)
    if out.json:
        out.value(found_diff)
        return
    _tell_difference(out, found_diff)


def _tell_difference(out: Output, found: "LineageDiff") -> None:
    left, right = found.left, found.right
    if found.differences:
        out.rows(
            found.differences,
            columns=("subject", "call", "at", left.session_id, right.session_id),
            cells=_difference,
        )
    else:
        out.note("they differ in nothing that is compared (ids and times are not)")
    parting = found.parting
    if parting is not None and parting.subjects:
        in_what = ", ".join(one.value.lower() for one in parting.subjects)
        out.note(f"the first call where they part: {parting.left} ({in_what})")
    elif parting is not None:
        here, there = parting.left or "no further call", parting.right or "no further call"
        out.note(f"they part where one has {here} and the other {there}")


def _difference(one: "Difference") -> tuple[str, ...]:
    left, right = ("-" if text is None else text for text in (one.left, one.right))
    return one.subject.value.lower(), one.call, one.at, left, right


def _sessions_of(remote: "Gateway", name: str) -> "tuple[LineageMatch, ...]":
    """The sessions of a trace's or a call's id; none for an id that names a run by itself."""
    from acp_spec.bindings.errors import error
    from acp_spec.model.errors import AcpFailure, Reason
    from acp_spec.model.ids import is_session_id

    if is_session_id(name.partition(".")[0]):
        return ()
    page = _page(remote, {"id": name, "limit": str(PAGE)})
    if not page.sessions:
        why = f"; only memory was looked at: {page.only_memory}" if page.only_memory else ""
        message = f"no run has the session, lineage, trace or call id {name!r}{why}"
        raise AcpFailure(error(Reason.NOT_FOUND, message))
    return page.sessions


def _page(remote: "Gateway", query: dict[str, str]) -> "LineageMatches":
    from gateway.runtime.lineage_search import LineageMatches

    given = {name: text for name, text in query.items() if text}
    return remote.operate(LineageMatches, "GET /v1/lineage", query=given)


def _runs(
    out: Output, remote: "Gateway", *, shared: dict[str, str], limit: int
) -> "Iterator[LineageMatch]":
    """Page after page, and at the end what was not looked at."""
    after, left = "", limit
    while True:
        size = min(PAGE, left) if limit else PAGE
        page = _page(remote, {**shared, "after": after, "limit": str(size)})
        yield from page.sessions
        left -= len(page.sessions)
        after = page.next
        if not after or (limit and left <= 0):
            break
    if page.only_memory:
        out.note(f"only sessions in memory were looked at: {page.only_memory}")
    if page.open_unseen:
        out.note(f"{page.open_unseen} sessions under way are not in memory: not looked at")


def _show_runs(out: Output, runs: "Iterator[LineageMatch]") -> None:
    out.rows(
        runs,
        columns=("session_id", "workflow", "status", "opened", "input", "served"),
        cells=_match,
    )


def _match(one: "LineageMatch") -> tuple[str, ...]:
    more = len(one.served) - COMPONENTS_SHOWN
    served = ", ".join(one.served[:COMPONENTS_SHOWN]) + (f" and {more} more" if more > 0 else "")
    status = f"{one.status} {one.error}".strip()
    return one.session_id, one.workflow, status, one.opened_at, one.input_sha256[:12], served
