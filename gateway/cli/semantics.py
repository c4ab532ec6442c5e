"""`acp semantics`: values that no domain knew, and the synonyms that a person accepts."""

from typing import TYPE_CHECKING, Annotated

import typer

from acp_spec.sdk.cli import JsonFlag, Output, wrong_use
from gateway.cli.options import GATEWAY_URL_DEFAULT, GatewayUrl, Token, connected

if TYPE_CHECKING:
    from gateway.cli.remote import Gateway
    from gateway.runtime.semantics_review import ReviewPage, UnknownView
    from gateway.runtime.synonym_source import Synonym

app = typer.Typer(help="What values mean: unknown ones, and new synonyms.", no_args_is_help=True)

SHOWN_CHARACTERS = 60


@app.callback()
def _group() -> None:
    """A group of its own, so that `review` is a word of the command line."""


@app.command("review")
def review(
    workflow: Annotated[
        str, typer.Argument(help="Its name; left out: every workflow that has something.")
    ] = "",
    accept: Annotated[
        list[str] | None,
        typer.Option(help="[DOMAIN:]SAID=VALUE: SAID means VALUE from now on; repeatable."),
    ] = None,
    dismiss: Annotated[
        list[str] | None, typer.Option(help="[DOMAIN:]SAID means nothing here; repeatable.")
    ] = None,
    base: Annotated[str, typer.Option(help="Version to start from; the active one.")] = "",
    version: Annotated[str, typer.Option(help="The new version; the next minor one.")] = "",
    gateway: GatewayUrl = GATEWAY_URL_DEFAULT,
    token: Token = "",
    as_json: JsonFlag = False,
) -> None:
    """List unknown values, or accept synonyms into a new version of the workflow."""
    out = Output(json=as_json)
    if not workflow and (accept or dismiss):
        wrong_use(out, "name the workflow whose values these are")
    with connected(out, gateway, token=token) as remote:
        if not workflow:
            _overview(out, remote)
            return
        if dismiss:
            _dismiss(out, remote, workflow=workflow, said=dismiss)
        if accept:
            choice = (base, version)
            _accept(out, remote, workflow=workflow, said=accept, choice=choice)
        if not accept and not dismiss:
            _list(out, _page(remote, workflow))


def _overview(out: Output, remote: "Gateway") -> None:
    from gateway.runtime.semantics_review import SemanticsPage

    page = remote.operate(SemanticsPage, "GET /v1/semantics")
    out.rows(
        page.workflows,
        columns=("workflow", "unknown values"),
        cells=lambda one: (one.workflow, str(one.unknown)),
    )


def _page(remote: "Gateway", workflow: str) -> "ReviewPage":
    from gateway.cli.remote import place
    from gateway.runtime.semantics_review import ReviewPage

    return remote.operate(ReviewPage, f"GET {place('/v1/semantics/{}', workflow)}")


def _list(out: Output, page: "ReviewPage") -> None:
    out.rows(
        page.values,
        columns=("count", "field", "domain", "said", "nearest", "last"),
        cells=lambda one: (
            str(one.unknown.count),
            one.unknown.field,
            one.unknown.domain,
            one.unknown.value[:SHOWN_CHARACTERS],
            _nearest(one),
            one.unknown.last_at,
        ),
        title=f"{page.workflow}, active {page.active}",
    )
    if page.values:
        out.note("accept one with --accept 'SAID=VALUE', or --dismiss 'SAID'")


def _nearest(view: "UnknownView") -> str:
    if view.means:
        return f"{view.means} (known by now)"
    return ", ".join(f"{one.value} {one.confidence:.2f}" for one in view.nearest)


def _accept(
    out: Output, remote: "Gateway", *, workflow: str, said: list[str], choice: tuple[str, str]
) -> None:
    from gateway.cli.remote import place
    from gateway.runtime.semantics_review import Accepted, AcceptRequest

    page = _page(remote, workflow)
    request = AcceptRequest(
        synonyms=tuple(_synonym(out, page, text=text) for text in said),
        base=choice[0],
        version=choice[1],
    )
    path = place("/v1/semantics/{}/synonyms", workflow)
    accepted = remote.operate(Accepted, f"POST {path}", body=request)
    added = ", ".join(f"{one.value!r} -> {one.means}" for one in accepted.synonyms)
    out.value(
        accepted,
        text=f"{workflow}@{accepted.version} is stored with {added}; it is not active:"
        f" `acp workflows activate {workflow} {accepted.version}`",
    )


def _dismiss(out: Output, remote: "Gateway", *, workflow: str, said: list[str]) -> None:
    from gateway.cli.remote import place
    from gateway.runtime.semantics_review import DismissAnswer, Dismissed, DismissRequest

    page = _page(remote, workflow)
    values = tuple(
        Dismissed(domain=domain, value=value)
        for domain, value in (_domain_of(out, page, said=text) for text in said)
    )
    path = place("/v1/semantics/{}/dismiss", workflow)
    answer = remote.operate(DismissAnswer, f"POST {path}", body=DismissRequest(values=values))
    out.value(answer, text=f"{answer.settled} forgotten")


def _synonym(out: Output, page: "ReviewPage", *, text: str) -> "Synonym":
    from gateway.runtime.synonym_source import Synonym

    said, equals, means = text.rpartition("=")
    if not equals or not said or not means:
        wrong_use(out, f"--accept {text!r}: write [DOMAIN:]SAID=VALUE")
    domain, value = _domain_of(out, page, said=said)
    return Synonym(domain=domain, value=value, means=means)


def _domain_of(out: Output, page: "ReviewPage", *, said: str) -> tuple[str, str]:
    """The domain that was named, or the only one in which this was said."""
    found = {one.unknown.domain for one in page.values if one.unknown.value == said}
    if len(found) == 1:
        return found.pop(), said
    domain, colon, value = said.partition(":")
    if not colon:
        why = "was said in several domains" if found else "is not on the list"
        wrong_use(out, f"{said!r} {why}: write DOMAIN:{said}")
    return domain, value
