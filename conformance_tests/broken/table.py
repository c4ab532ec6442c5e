"""The table requirement x case x broken peer as Markdown: `docs/conformance.md` is made from it.

It is made from what stands in the suite, not from a run, so that it changes only with the suite;
that the rows hold is the matrix's proof.
"""

from collections.abc import Iterator

from conformance_tests.broken.matrix import cases_by_requirement, musts_of
from conformance_tests.broken.peers import peers_of
from conformance_tests.runner.requirements import Party

BEGIN = "<!-- made by `make gen`: do not edit below -->"
TITLES = {
    Party.COMPONENT: "## Components and SDKs",
    Party.GATEWAY: "## Gateways",
}


def to_markdown() -> str:
    """Both tables, with how many rows they have."""
    lines = [BEGIN, *_lines(Party.COMPONENT), *_lines(Party.GATEWAY)]
    return "\n".join(lines) + "\n"


def _lines(party: Party) -> Iterator[str]:
    cases = cases_by_requirement(Party.GATEWAY if party is Party.GATEWAY else Party.SDK)
    peers, rows = peers_of(party), musts_of(party)
    yield from ("", TITLES[party], "", f"{len(rows)} statements.", "")
    yield "| requirement | cases | the broken peer ... | ... and what fails with it |"
    yield "|---|---|---|---|"
    for one in rows:
        peer = peers.get(one.id)
        along = f"{', '.join(peer.fails_with)}: {peer.why_with}" if peer and peer.fails_with else ""
        names = ", ".join(cases.get(one.id, ())) or "**none**"
        yield f"| {one.id} | {names} | {peer.does if peer else '**none**'} | {along} |"
