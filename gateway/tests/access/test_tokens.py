"""Tokens that were never made, that ended, and that were tampered with, over both bindings."""

import asyncio
import socket

import pytest

from acp_spec.bindings.routes import GATEWAY
from acp_spec.model import gateway_calls as calls
from acp_spec.model.session import OpenSession
from gateway.tests.access.conftest import Guarded
from gateway.tests.asking import Asker, Outcome

REFUSED = Outcome("UNAUTHENTICATED", "UNAUTHENTICATED")
LIST = GATEWAY["list_sessions"]


def forged(good: str) -> dict[str, str]:
    """Texts near a good token; none of them is it."""
    prefix, token_id, secret = good.split("_", 2)
    other = "A" if secret[0] != "A" else "B"
    return {
        "its id alone": f"{prefix}_{token_id}_",
        "another secret": f"{prefix}_{token_id}_{'A' * len(secret)}",
        "the first character": f"{prefix}_{token_id}_{other}{secret[1:]}",
        "the last character": good[:-1] + ("A" if good[-1] != "A" else "B"),
        "one character less": good[:-1],
        "one character more": good + "A",
        "padding": good + "=",
        "another id": f"{prefix}_{'0' * len(token_id)}_{secret}",
        "no prefix": good.removeprefix("acp_"),
        "capitals": good.upper(),
        "twice": f"{good} {good}",
        "a comma": f"{good},",
        "quotes": f'"{good}"',
        "a long one": good + "A" * 400,
        # Beyond 8 KiB of metadata gRPC itself refuses some requests by chance and some not.
        "too long a one": "A" * 6000,
        "a JWT without signature": "eyJhbGciOiJub25lIn0.eyJzY29wZSI6ImFkbWluIn0.",
    }


def test_a_good_token_is_good_on_both_bindings(guarded: Guarded, asker: Asker) -> None:
    http, grpc = asker.both(LIST, calls.ListSessionsRequest(), token=guarded.token("mine"))
    assert http.is_success
    assert grpc.is_success


@pytest.mark.parametrize("how", sorted(forged("acp_0_x")))
def test_a_forged_token_is_refused(guarded: Guarded, asker: Asker, how: str) -> None:
    token = forged(guarded.token("mine"))[how]
    http, grpc = asker.both(LIST, calls.ListSessionsRequest(), token=token)
    assert http == grpc == REFUSED
    assert token not in http.message + grpc.message


def test_the_secret_of_one_token_does_not_open_another(guarded: Guarded, asker: Asker) -> None:
    weak, strong = guarded.token("submit"), guarded.token("admin")
    mixed = "_".join((*strong.split("_", 2)[:2], weak.split("_", 2)[2]))
    assert asker.both(LIST, calls.ListSessionsRequest(), token=mixed) == (REFUSED, REFUSED)


@pytest.mark.parametrize(
    "header",
    ["Basic {}", "{}", "Bearer: {}", "Bearer\t{}", "bearer{}", "Digest token={}", "Token {}"],
)
def test_a_token_under_another_scheme_is_none(guarded: Guarded, asker: Asker, header: str) -> None:
    shown = header.format(guarded.token("mine"))
    assert asker.send("GET", "/v1/sessions", headers={"authorization": shown}) == REFUSED
    if "\t" not in shown:  # no gRPC client sends it
        assert asker.call(LIST, b"", metadata=(("authorization", shown),)) == REFUSED


def test_two_authorization_headers_are_a_bad_request(guarded: Guarded, asker: Asker) -> None:
    good = ("authorization", f"Bearer {guarded.token('mine')}")
    for pair in ((("authorization", "Bearer x"), good), (good, good)):
        twice = asker.call(LIST, b"", metadata=pair)
        assert twice == Outcome("INVALID_ARGUMENT", "INVALID_REQUEST"), twice
    lines = "".join(f"{name}: {value}\r\n" for name, value in (good, good))
    host, _, port = guarded.served.http.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as peer:
        peer.sendall(f"GET /v1/sessions HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n".encode())
        assert peer.recv(4096).startswith(b"HTTP/1.1 400 ")


def test_an_expired_token_ended_by_itself(guarded: Guarded, asker: Asker) -> None:
    token = guarded.token("expired")
    assert asker.both(LIST, calls.ListSessionsRequest(), token=token) == (REFUSED, REFUSED)
    assert asker.over_http(
        LIST, calls.ListSessionsRequest(), token=guarded.token("short")
    ).is_success


def test_a_revoked_token_ends_at_once_and_stays_so(guarded: Guarded, asker: Asker) -> None:
    made = guarded.tokens["revoked"]
    opening = calls.OpenSessionRequest(session=OpenSession(workflow="nobody"))
    assert asker.over_http(GATEWAY["open_session"], opening, token=made.token).status == 404
    admin = {"authorization": f"Bearer {guarded.token('admin')}"}
    path = f"/v1/tokens/{made.info.token_id}"
    assert asker.send("DELETE", path, headers=admin).status == 204
    assert asker.both(LIST, calls.ListSessionsRequest(), token=made.token) == (REFUSED, REFUSED)
    assert asker.send("DELETE", path, headers=admin).status == 404


def test_a_list_of_tokens_shows_no_secret(guarded: Guarded, asker: Asker) -> None:
    admin = {"authorization": f"Bearer {guarded.token('admin')}"}
    listed = asker.send("GET", "/v1/tokens", headers=admin).data.decode()
    assert guarded.tokens["mine"].info.token_id in listed
    for made in guarded.tokens.values():
        assert made.token.split("_", 2)[2] not in listed


@pytest.mark.parametrize(
    "body",
    [
        '{"scopes": ["root"]}',
        '{"scopes": []}',
        '{"scopes": ["submit"], "tenant": "a\\u0000b"}',
        '{"scopes": ["submit"], "tenant": ""}',
        '{"scopes": ["submit"], "days": -1}',
        '{"scopes": ["submit"], "days": 1000000000000000000}',
        '{"scopes": ["submit"], "days": 1e400}',
        '{"scopes": ["submit"], "label": "' + "x" * 200 + '"}',
        '{"scopes": ["component"], "names": ["' + "x" * 5000 + '"]}',
        '{"scopes": ["submit"], "tenant": "\\ud800"}',
        '{"scopes": "admin"}',
    ],
)
def test_a_token_that_cannot_be_is_refused_as_the_callers_fault(
    guarded: Guarded, asker: Asker, body: str
) -> None:
    headers = {
        "authorization": f"Bearer {guarded.token('admin')}",
        "content-type": "application/json",
    }
    told = asker.send("POST", "/v1/tokens", headers=headers, body=body.encode())
    assert (told.status, told.reason) == (400, "INVALID_REQUEST"), told


def test_guesses_in_parallel_open_nothing_and_stop_nobody(guarded: Guarded, asker: Asker) -> None:
    async def guess(number: int) -> Outcome:
        token = f"acp_{number:012x}_{'A' * 43}"
        return await asyncio.to_thread(
            asker.over_http, LIST, calls.ListSessionsRequest(), token=token
        )

    async def story() -> list[Outcome]:
        return await asyncio.gather(*(guess(number) for number in range(200)))

    assert set(asyncio.run(story())) == {REFUSED}
    assert asker.is_alive()
