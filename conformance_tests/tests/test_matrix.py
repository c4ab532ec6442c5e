"""The suite proves itself: every MUST has a peer that breaks it, and only its check fails."""

import asyncio
import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import pytest

from conformance_tests.broken.houses import component_batch, gateway_batch
from conformance_tests.broken.matrix import musts_of, run_matrix
from conformance_tests.broken.peers import COMPONENT_PEERS, GATEWAYS
from conformance_tests.broken.verdicts import Caught
from conformance_tests.runner.requirements import Party

# a small part for every run: one per way of breaking
SOME = ("VER-002", "PAY-006", "GRP-006", "IDM-001", "CRD-005", "HTT-007", "CAN-004", "ACC-009")
SOME_GATEWAYS = ("VER-005", "GRP-005", "PLN-007", "GWY-042", "TRJ-005", "RUN-002", "WFL-006")
ASKED_AGAIN_MAX = 6
"""More than these are no accident of time."""
Ids: TypeAlias = tuple[str, ...]
Said: TypeAlias = dict[str, str]


def not_caught(found: list[Caught]) -> dict[str, str]:
    return {one.requirement: one.said for one in found if not one.for_its_reason}


def never_caught(ask: Callable[[Sequence[str]], Awaitable[list[Caught]]], ids: Ids) -> Said:
    """What stays uncaught when the one that the crowd kept from its time is asked again alone."""
    left = not_caught(asyncio.run(_asked(ask, ids)))
    return not_caught(asyncio.run(_asked(ask, tuple(left)))) if len(left) == 1 else left


async def _asked(ask: Callable[[Sequence[str]], Awaitable[list[Caught]]], ids: Ids) -> list[Caught]:
    return await ask(ids)


def test_every_must_has_one_broken_peer() -> None:
    for party, peers in ((Party.COMPONENT, COMPONENT_PEERS), (Party.GATEWAY, GATEWAYS)):
        broken = sorted(peer.requirement for peer in peers)
        assert broken == sorted(one.id for one in musts_of(party))


def test_what_fails_along_is_explained() -> None:
    peers = (*COMPONENT_PEERS, *GATEWAYS)
    assert all(bool(peer.fails_with) == bool(peer.why_with) for peer in peers)


def test_some_broken_components_are_caught_for_the_stated_reason() -> None:
    assert never_caught(component_batch, SOME) == {}


def test_some_broken_gateways_are_caught_for_the_stated_reason() -> None:
    batch = functools.partial(gateway_batch, restarting=False)
    assert never_caught(batch, SOME_GATEWAYS) == {}


@pytest.mark.long
def test_every_broken_peer_is_caught_for_the_stated_reason() -> None:
    """A few rows that the crowd kept from their time are asked once more, by themselves."""
    parties = (Party.COMPONENT, Party.GATEWAY)
    matrix = asyncio.run(run_matrix(parties))
    counts = matrix.counts()
    every = sum(len(musts_of(party)) for party in parties)
    assert {counts["must"], counts["with_case"], counts["with_broken_peer"]} == {every}
    left = {row.requirement.id: row.said for row in matrix.rows if not row.whole}
    assert len(left) <= ASKED_AGAIN_MAX, left
    again = asyncio.run(run_matrix(parties, only=tuple(left))).rows if left else ()
    assert {row.requirement.id: row.said for row in again if not row.whole} == {}
