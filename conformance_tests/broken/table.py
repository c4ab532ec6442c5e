"""The table requirement x case x broken peer as Markdown: `docs/conformance.md` is made from it.

It is made from what stands in the suite, not from a run, so that it changes only with the suite;
that the rows hold is the matrix's proof.
"""

from collections.abc import Iterator

from conformance_tests.broken.matrix import COMPONENT_PEERS, GATEWAYS, Broken, cases_by_requirement
from conformance_tests.runner.requirements import Party, musts

BEGIN = "<!-- made by `make gen`: do not edit below -->"
TITLES = {
    Party.COMPONENT: "## Components and SDKs",
    Party.GATEWAY: "## Gateways",
}


def to_markdown() -> str:
    """Both tables, with how many rows they have."""
    return "\n".join([BEGIN, *_component_lines(), *_gateway_lines()]) + "\n"


def _component_lines() -> Iterator[str]:
    peers: dict[str, Broken] = {peer.requirement: peer for peer in COMPONENT_PEERS}
    yield from _lines(Party.COMPONENT, Party.SDK, peers=peers)


def _gateway_lines() -> Iterator[str]:
    peers: dict[str, Broken] = {peer.requirement: peer for peer in GATEWAYS}
    yield from _lines(Party.GATEWAY, Party.GATEWAY, peers=peers)


def _lines(party: Party, kind: Party, *, peers: dict[str, Broken]) -> Iterator[str]:
    cases, rows = cases_by_requirement(kind), musts(party, kind)
    yield from ("", TITLES[party], "", f"{len(rows)} statements.", "")
    yield "| requirement | cases | the broken peer ... | ... and what fails with it |"
    yield "|---|---|---|---|"
    for one in rows:
        peer = peers.get(one.id)
        along = f"{', '.join(peer.fails_with)}: {peer.why_with}" if peer and peer.fails_with else ""
        names = ", ".join(cases.get(one.id, ())) or "**none**"
        yield f"| {one.id} | {names} | {peer.does if peer else '**none**'} | {along} |"
