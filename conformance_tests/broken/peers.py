"""All broken peers: one per MUST of a component or an SDK, one per MUST of a gateway."""

from typing import Final, TypeAlias

from conformance_tests.broken import (
    attach_peers,
    call_peers,
    card_peers,
    error_peers,
    gateway_api,
    gateway_attach,
    gateway_calls,
    gateway_context,
    gateway_record,
    gateway_session,
    gateway_wire,
    grpc_peers,
    key_peers,
    wire_peers,
)
from conformance_tests.broken.gateway import BrokenGateway
from conformance_tests.broken.peer import BrokenPeer
from conformance_tests.runner.requirements import Party

Broken: TypeAlias = BrokenPeer | BrokenGateway

COMPONENT_PEERS: Final = (
    *wire_peers.PEERS,
    *grpc_peers.PEERS,
    *call_peers.PEERS,
    *card_peers.PEERS,
    *key_peers.PEERS,
    *error_peers.PEERS,
    *attach_peers.PEERS,
)
GATEWAYS: Final = (
    *gateway_wire.GATEWAYS,
    *gateway_context.GATEWAYS,
    *gateway_calls.GATEWAYS,
    *gateway_api.GATEWAYS,
    *gateway_session.GATEWAYS,
    *gateway_record.GATEWAYS,
    *gateway_attach.GATEWAYS,
)


def peers_of(party: Party) -> dict[str, Broken]:
    """The broken peer of each requirement."""
    peers: tuple[Broken, ...] = GATEWAYS if party is Party.GATEWAY else COMPONENT_PEERS
    return {peer.requirement: peer for peer in peers}
