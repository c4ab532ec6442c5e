"""What each wrong peer over gRPC comes to, in the trajectory of a whole session."""

import ssl
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest

from acp_spec.bindings.fields import ACP_ERROR_TRAILER
from acp_spec.codec import proto
from acp_spec.model.calls import ExecuteResponse
from acp_spec.model.payload import payload
from gateway.tests.e2e.client import Client
from gateway.tests.faults.grpc_peers import (
    ANSWER_HEAD,
    GO_AWAY,
    HALF_A_MESSAGE,
    HTML_BODY,
    HTML_HEAD,
    RESET_STREAM,
    WrongGrpc,
    answering,
    crash,
    hang,
    http2,
)
from gateway.tests.faults.http_peers import LONG_MS, PROXY_PAGE, RESPONSE_BYTES_MAX, SHORT_MS
from gateway.tests.faults.sessions import Comes, check_sessions, put_workflows, rows_of
from gateway.tests.faults.town import Town
from gateway.transports.tests.raw_grpc_peer import Handler, aborting, server
from gateway.transports.tests.raw_peer import Behaviour, Peer, certificate, http, peer

LATE = Comes("DEADLINE_EXCEEDED", "TIMEOUT")
BROKEN = Comes("INVALID_ARGUMENT", "CONTRACT_VIOLATION")
Status = grpc.StatusCode


def output(text: bytes) -> bytes:
    return proto.to_proto(ExecuteResponse(output=payload(text)))


def unstated(code: str, reason: str, side_effect: str = "UNKNOWN") -> Comes:
    """A status without ACP's trailer: nobody said that a READ did nothing (SPEC ERR-010)."""
    return Comes(code, reason, side_effect, side_effect)


FAULTS: dict[str, tuple[Handler, Comes]] = {
    "g_hung": (hang, LATE),
    "g_crashed": (crash, unstated("UNKNOWN", "UNKNOWN")),
    "g_no_proto": (answering(b"\xff\xff\xff\xff"), BROKEN),
    "g_no_json": (answering(output(b'{"n":')), BROKEN),
    "g_too_large": (
        answering(output(b'"%b"' % (b"x" * (RESPONSE_BYTES_MAX + 100_000)))),
        Comes("RESOURCE_EXHAUSTED", "PAYLOAD_TOO_LARGE"),
    ),
    "g_unavailable": (aborting(Status.UNAVAILABLE), unstated("UNAVAILABLE", "UNAVAILABLE")),
    "g_internal": (aborting(Status.INTERNAL), unstated("INTERNAL", "INTERNAL")),
    "g_data_loss": (aborting(Status.DATA_LOSS), unstated("DATA_LOSS", "DATA_LOSS")),
    "g_late": (aborting(Status.DEADLINE_EXCEEDED), unstated(*LATE[:2])),
    "g_unimplemented": (
        aborting(Status.UNIMPLEMENTED),
        unstated("UNIMPLEMENTED", "UNIMPLEMENTED", "NONE"),
    ),
    "g_unauthenticated": (
        aborting(Status.UNAUTHENTICATED),
        unstated("UNAUTHENTICATED", "UNAUTHENTICATED", "NONE"),
    ),
    "g_bad_trailer": (
        aborting(Status.INTERNAL, (ACP_ERROR_TRAILER, b"\xff\xff\xff")),
        unstated("INTERNAL", "INTERNAL"),
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_wrong_answer_is_told_apart_and_the_session_ends_by_its_workflow(
    name: str, client: Client, town: Town
) -> None:
    execute, comes = FAULTS[name]
    wrong = WrongGrpc(name, execute, SHORT_MS if comes is LATE else LONG_MS)
    port = town.stay(server(wrong.handlers()))
    client.register(f"grpc://127.0.0.1:{port}", "GRPC")
    put_workflows(client, name)
    check_sessions(client, name, comes)
    if comes.side_effect == "UNKNOWN":
        assert wrong.called.count("once") == 2, "once by each of the two sessions"


async def html(peer: Peer) -> None:
    await peer.reader.read(24)
    await peer.say(http(PROXY_PAGE, status="502 Bad Gateway", kind="text/html"))


LOST = unstated("UNAVAILABLE", "UNAVAILABLE")
REPLACED: dict[str, tuple[Behaviour, Comes]] = {
    "h_reset_stream": (http2(RESET_STREAM), unstated("INTERNAL", "INTERNAL")),
    "h_go_away": (http2(GO_AWAY), LOST),
    "h_closed": (http2(), LOST),
    "h_half": (http2(ANSWER_HEAD, HALF_A_MESSAGE, RESET_STREAM), unstated("INTERNAL", "INTERNAL")),
    "h_no_status": (http2(HTML_HEAD, HTML_BODY), LOST),
    "h_html": (html, Comes("UNAVAILABLE", "UNAVAILABLE", "NONE")),
}


@pytest.mark.parametrize("name", REPLACED)
def test_what_is_no_grpc_in_the_place_of_a_component_is_told_apart(
    name: str, client: Client, town: Town
) -> None:
    """It was a component when it was registered; afterwards something else listens there."""
    behaviour, comes = REPLACED[name]
    replaced(client, town, name=name)(behaviour, None)
    check_sessions(client, name, comes)


def test_tls_where_plain_is_expected_proves_that_nothing_was_sent(
    client: Client, town: Town, tmp_path: Path
) -> None:
    tls, _ = certificate(tmp_path, "127.0.0.1")
    replaced(client, town, name="h_tls")(html, tls)
    check_sessions(client, "h_tls", Comes("UNAVAILABLE", "UNAVAILABLE", "NONE"))
    rows = rows_of(client, client.run("h_tls").json["session_id"])
    assert len(rows["once"]) > 1, "nothing was sent, so even NONE is tried again"


def replaced(
    client: Client, town: Town, *, name: str
) -> Callable[[Behaviour, ssl.SSLContext | None], None]:
    """Register a good component, then let what is given take its place."""
    port = town.stay(server(WrongGrpc(name, answering(output(b"1"))).handlers()))
    client.register(f"grpc://127.0.0.1:{port}", "GRPC")
    put_workflows(client, name)
    town.leave()

    def take(behaviour: Behaviour, tls: ssl.SSLContext | None) -> None:
        town.stay(peer(behaviour, tls=tls, port=port))

    return take
