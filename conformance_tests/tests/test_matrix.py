"""The suite proves itself: every MUST has a peer that breaks it, and only its check fails."""

import asyncio

import pytest

from conformance_tests.broken.matrix import COMPONENT_PEERS, run_matrix
from conformance_tests.runner.requirements import Party, musts

# a small part for every run: one per way of breaking
SOME = ("VER-002", "PAY-006", "GRP-006", "IDM-001", "CRD-005", "HTT-007", "CAN-004", "ACC-009")


def test_every_must_of_a_component_has_one_broken_peer() -> None:
    broken = [peer.requirement for peer in COMPONENT_PEERS]
    assert sorted(broken) == sorted(one.id for one in musts(Party.COMPONENT, Party.SDK))


def test_what_fails_along_is_explained() -> None:
    assert all(bool(peer.fails_with) == bool(peer.why_with) for peer in COMPONENT_PEERS)


def test_some_broken_peers_are_caught_for_the_stated_reason() -> None:
    matrix = asyncio.run(run_matrix((Party.COMPONENT,), only=SOME))
    assert {row.requirement.id: row.said for row in matrix.rows if not row.whole} == {}
    assert set(matrix.counts().values()) == {len(SOME)}


@pytest.mark.long
def test_every_broken_component_is_caught_for_the_stated_reason() -> None:
    matrix = asyncio.run(run_matrix((Party.COMPONENT,)))
    assert {row.requirement.id: row.said for row in matrix.rows if not row.whole} == {}
    assert set(matrix.counts().values()) == {len(musts(Party.COMPONENT, Party.SDK))}
