"""A token that may serve one component name moves no other, on either binding."""

import json
from collections.abc import Callable

import msgspec
import pytest

from acp_spec.bindings.routes import GATEWAY
from acp_spec.model import gateway_calls as calls
from acp_spec.model.enums import Transport
from acp_spec.model.session import RegisterRequest
from gateway.tests.access.conftest import MINE, Guarded
from gateway.tests.access.peers import FORBIDDEN, Heard, Said, peer
from gateway.tests.asking import Asker, Outcome
from gateway.tests.e2e.stranger import READ, Stranger, card

UNKNOWN = "cmp_00000000000000000000"
MOVES = ("heartbeat_component", "drain_component", "remove_component")


def named(name: str) -> Stranger:
    return Stranger(card(name, "EXECUTOR", actions={f"{name}.look": READ}), {})


def registered(asker: Asker, url: str, token: str) -> str:
    told = asker.over_http(
        GATEWAY["register_component"], RegisterRequest(url=url, lease_seconds=600), token=token
    )
    assert told.is_success, told
    found: str = msgspec.json.decode(told.data)["component_id"]
    return found


def about(operation: str, component_id: str) -> msgspec.Struct:
    if operation == "heartbeat_component":
        return calls.HeartbeatRequest(component_id=component_id)
    return calls.ComponentIdRequest(component_id=component_id)


@pytest.fixture(scope="module")
def other(guarded: Guarded, asker: Asker, stranger: Callable[[Stranger], Stranger]) -> str:
    """A component that somebody else registered."""
    return registered(asker, stranger(named("ledger")).url, guarded.token(MINE))


@pytest.mark.parametrize("name", ["ledger", "fees2", "fee", "fees.x", "any"])
def test_a_name_that_the_token_does_not_list_is_not_admitted(
    guarded: Guarded, asker: Asker, stranger: Callable[[Stranger], Stranger], name: str
) -> None:
    request = RegisterRequest(url=stranger(named(name)).url)
    for outcome in asker.both(GATEWAY["register_component"], request, token=guarded.token("fees")):
        assert outcome == Outcome("PERMISSION_DENIED", "PERMISSION_DENIED"), outcome


@pytest.mark.parametrize(
    "name",
    ["Fees", "fees ", " fees", "fees\u0000", "f\u0435es", "fees\u200b", "FEES", "fees\n", "*"],
)
def test_a_name_that_only_looks_like_it_is_no_name(
    guarded: Guarded, asker: Asker, stranger: Callable[[Stranger], Stranger], name: str
) -> None:
    told = {**card("fees", "EXECUTOR", actions={"look": READ}), "name": name}
    request = RegisterRequest(url=stranger(Stranger(told, {})).url)
    for token, reason in (
        ("fees", "PERMISSION_DENIED"),
        ("any", "CONTRACT_VIOLATION"),
        (MINE, "CONTRACT_VIOLATION"),
    ):
        for outcome in asker.both(
            GATEWAY["register_component"], request, token=guarded.token(token)
        ):
            assert outcome.reason == reason, (token, outcome)


@pytest.mark.parametrize("operation", MOVES)
def test_a_component_of_another_name_does_not_exist_for_it(
    guarded: Guarded, asker: Asker, other: str, operation: str
) -> None:
    token = guarded.token("fees")
    foreign = asker.both(GATEWAY[operation], about(operation, other), token=token)
    never = asker.both(GATEWAY[operation], about(operation, UNKNOWN), token=token)
    for theirs, unknown in zip(foreign, never, strict=True):
        assert theirs == unknown == Outcome("NOT_FOUND", "NOT_FOUND")
        assert theirs.message.replace(other, "ID") == unknown.message.replace(UNKNOWN, "ID")
    still = asker.over_http(
        GATEWAY["get_component"],
        calls.ComponentIdRequest(component_id=other),
        token=guarded.token(MINE),
    )
    assert msgspec.json.decode(still.data).get("state", "ACTIVE") == "ACTIVE"


def test_its_own_name_is_kept_and_removed_and_nothing_else_is_read(
    guarded: Guarded, asker: Asker, stranger: Callable[[Stranger], Stranger]
) -> None:
    token = guarded.token("fees")
    component_id = registered(asker, stranger(named("fees")).url, token)
    for operation in ("heartbeat_component", "drain_component"):
        for outcome in asker.both(GATEWAY[operation], about(operation, component_id), token=token):
            assert outcome.is_success, (operation, outcome)
    for operation in ("get_component", "list_components"):
        message = about(operation, component_id) if operation == "get_component" else calls.Empty()
        for outcome in asker.both(GATEWAY[operation], message, token=token):
            assert outcome.reason == "PERMISSION_DENIED"
    removed = asker.over_grpc(
        GATEWAY["remove_component"], about("remove_component", component_id), token=token
    )
    assert removed.is_success


def test_a_card_that_changes_its_name_later_is_not_taken_over(
    guarded: Guarded, asker: Asker
) -> None:
    name = "fees"

    def shape_shifting(heard: Heard) -> Said:
        told = card(name, "EXECUTOR", actions={"shift": READ})
        return Said(json.dumps(told).encode())

    token = guarded.token("fees")
    with peer(shape_shifting, FORBIDDEN) as one:
        component_id = registered(asker, one.url, token)
        name = "treasury"
        request = RegisterRequest(url=one.url)
        denied = asker.over_http(GATEWAY["register_component"], request, token=token)
        assert denied.reason == "PERMISSION_DENIED"
        beat = asker.over_http(
            GATEWAY["heartbeat_component"], about("heartbeat_component", component_id), token=token
        )
        assert msgspec.json.decode(beat.data)["card"]["name"] == "fees"
        asker.over_http(
            GATEWAY["remove_component"], about("remove_component", component_id), token=token
        )


def test_a_component_token_names_no_credential_of_the_gateway(
    guarded: Guarded, asker: Asker, stranger: Callable[[Stranger], Stranger]
) -> None:
    for auth in ("ledger", "../../etc/passwd", "env:HOME", "file:/etc/passwd", "\0"):
        request = RegisterRequest(url="http://127.0.0.1:9", transport=Transport.HTTP, auth=auth)
        for outcome in asker.both(
            GATEWAY["register_component"], request, token=guarded.token("fees")
        ):
            assert outcome.code in ("INVALID_ARGUMENT", "PERMISSION_DENIED"), (auth, outcome)
            assert "root:" not in outcome.message
