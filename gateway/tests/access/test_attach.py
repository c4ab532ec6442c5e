"""Who may attach: scopes, names and ids on the two streams, asked of a real process."""

import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import grpc
import pytest

from acp_spec.bindings import fields
from acp_spec.codec import frames
from acp_spec.codec.error_trailer import decode_trailer
from acp_spec.model.attach import Hello, Welcome
from acp_spec.model.card import Action, Card
from acp_spec.model.enums import Role
from acp_spec.sdk.attach import CALLS_RPC, CONTROL_RPC
from gateway.tests.access.conftest import MINE, SCOPES, Guarded

OPTIONS: Final = (("grpc.enable_http_proxy", 0),)
STREAM_S: Final = 10.0
DENIED, NOT_KNOWN = "PERMISSION_DENIED", "UNAUTHENTICATED"
Metadata = tuple[tuple[str, str], ...]


def hello(name: str, instance_id: str = "one", incarnation: int = 1) -> bytes:
    card = Card(
        name=name,
        version="1.0.0",
        acp_versions=("1.0",),
        roles=(Role.EXECUTOR,),
        actions=(Action(name=f"{name}.look"),),
    )
    said = Hello(instance_id=instance_id, incarnation=incarnation, card=card)
    return frames.control([frames.component_control_frame(said)])


@pytest.fixture(scope="module")
def channel(guarded: Guarded) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(guarded.served.grpc, options=OPTIONS) as one:
        yield one


def shown(token: str) -> Metadata:
    return ((fields.AUTHORIZATION, f"Bearer {token}"),) if token else ()


def refusal(channel: grpc.Channel, path: str, first: bytes, metadata: Metadata) -> str:
    """The reason with which the stream is ended, "" if it is not."""
    stream = channel.stream_stream(path)(iter([first]), metadata=metadata, timeout=STREAM_S)
    try:
        for _ in stream:
            stream.cancel()
            return ""
    except grpc.RpcError as failed:
        trailer = dict(failed.trailing_metadata() or ()).get(fields.ACP_ERROR_TRAILER)
        number = failed.code().value[0]
        if trailer is None:
            return "no trailer"
        return decode_trailer(number, failed.details() or "", trailer=trailer).error.reason
    return ""


@contextmanager
def attached(channel: grpc.Channel, first: bytes, metadata: Metadata) -> Iterator[Welcome]:
    """A control stream that stays open, and how it was welcomed."""
    ended = threading.Event()

    def said() -> Iterator[bytes]:
        yield first
        ended.wait()

    stream = channel.stream_stream(CONTROL_RPC)(said(), metadata=metadata, timeout=60)
    (welcome,) = frames.read_gateway_control(next(stream))
    assert isinstance(welcome, Welcome)
    try:
        yield welcome
    finally:
        ended.set()
        stream.cancel()


@pytest.mark.parametrize("scope", SCOPES)
def test_a_stream_is_opened_with_its_scope_and_refused_with_every_other(
    guarded: Guarded, channel: grpc.Channel, scope: str
) -> None:
    """A component token without names may come in, and serve none."""
    token = shown(guarded.token(scope))
    control = refusal(channel, CONTROL_RPC, hello(f"by-{scope}"), token)
    calls = refusal(channel, CALLS_RPC, frames.component_calls([], attachment_id="x"), token)
    if scope in ("submit", "annotate"):
        assert control == calls == DENIED
    else:
        assert control == (DENIED if scope == "component" else "")
        assert calls not in (DENIED, NOT_KNOWN, "")


@pytest.mark.parametrize("path", [CONTROL_RPC, CALLS_RPC])
def test_no_stream_is_opened_without_a_good_token(
    guarded: Guarded, channel: grpc.Channel, path: str
) -> None:
    good = guarded.token(MINE)
    for metadata in (
        (),
        shown("nonsense"),
        shown(good[:-1]),
        shown(guarded.token("expired")),
        ((fields.AUTHORIZATION, good),),
        (("acp-token", good),),
    ):
        assert refusal(channel, path, hello("ledger"), metadata) == NOT_KNOWN
    twice = (*shown(good), *shown(good))
    assert refusal(channel, path, hello("ledger"), twice) == "INVALID_REQUEST"


def test_a_token_attaches_its_own_names_and_no_other(
    guarded: Guarded, channel: grpc.Channel
) -> None:
    token = shown(guarded.token("fees"))
    assert refusal(channel, CONTROL_RPC, hello("fees"), token) == ""
    for name in ("ledger", "fees2", "fee"):
        assert refusal(channel, CONTROL_RPC, hello(name), token) == DENIED
    for name in ("Fees", "fees ", "f\u0435es", "*", "\0"):
        assert refusal(channel, CONTROL_RPC, hello(name), token) in (DENIED, "CONTRACT_VIOLATION")


def test_an_instance_of_another_name_is_not_pushed_out(
    guarded: Guarded, channel: grpc.Channel
) -> None:
    """The highest incarnation of an instance wins, of one's own names only."""
    with attached(channel, hello("ledger", "main"), shown(guarded.token(MINE))) as welcome:
        stolen = hello("ledger", "main", incarnation=2**40)
        assert refusal(channel, CONTROL_RPC, stolen, shown(guarded.token("fees"))) == DENIED
        # the same instance id under one's own name is another instance
        own = hello("fees", "main", incarnation=2**40)
        assert refusal(channel, CONTROL_RPC, own, shown(guarded.token("fees"))) == ""
        asked = shown(guarded.token(MINE))
        data = frames.component_calls([], attachment_id=welcome.attachment_id)
        assert refusal(channel, CALLS_RPC, data, asked) == "", "it is still there"


def test_a_calls_stream_cannot_be_guessed(guarded: Guarded, channel: grpc.Channel) -> None:
    token = shown(guarded.token(MINE))
    with attached(channel, hello("ledger", "guessed"), token) as welcome:
        known = welcome.attachment_id
        assert len(set(known)) > 4, "random"
        for guess in ("", "0", known[:-1], known + "0", known.upper() + " ", secrets.token_hex(16)):
            data = frames.component_calls([], attachment_id=guess)
            assert refusal(channel, CALLS_RPC, data, shown(guarded.token("any"))) not in (
                "",
                DENIED,
            )
