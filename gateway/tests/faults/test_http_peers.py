"""What each wrong peer over HTTP comes to, in the trajectory of a whole session.

The code, the reason, whose fault it was and what may have been done; the session goes on or ends as
its workflow says, and what must not be sent twice was sent once.
"""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.tests.e2e.client import Client, until_called
from gateway.tests.faults.http_peers import (
    GOOD,
    LONG_MS,
    PROXY_PAGE,
    RESPONSE_BYTES_MAX,
    SHORT_MS,
    TLS_ALERT,
    Misbehaviour,
    Wrong,
    answering,
    dripping,
    hang,
    reset,
    reset_in_the_answer,
    saying,
)
from gateway.tests.faults.sessions import Comes, check_sessions, put_workflows, rows_of
from gateway.tests.faults.town import Town
from gateway.transports.tests.raw_peer import certificate, http, peer

LOST = Comes("UNAVAILABLE", "UNAVAILABLE")
LATE = Comes("DEADLINE_EXCEEDED", "TIMEOUT")
PAGE = LOST._replace(of_read="UNKNOWN")
PAGE_LATE = LATE._replace(of_read="UNKNOWN")
BROKEN = Comes("INVALID_ARGUMENT", "CONTRACT_VIOLATION")
TOO_LARGE = Comes("RESOURCE_EXHAUSTED", "PAYLOAD_TOO_LARGE")
CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
SENTENCE = b'{"error": {"code": "INTERNAL", "reason": "order 12 \\u001b[2J", "message": "no"}}'

FAULTS: dict[str, tuple[Misbehaviour, Comes]] = {
    "closed": (saying(), LOST),
    "reset": (reset, LOST),
    "reset_in_answer": (reset_in_the_answer, LOST),
    "half_head": (saying(b"HTTP/1.1 200 OK\r\ncontent-ty"), LOST),
    "half_body": (saying(http(GOOD)[:-5]), LOST),
    "half_chunk": (saying(CHUNKED, b"29\r\n" + GOOD[:20]), LOST),
    "hung": (hang, LATE),
    "dripped_head": (dripping(b"HTTP/1.1 200 OK\r\nx-slow: " + b"a" * 200), LATE),
    "dripped_body": (dripping(http(GOOD + b" " * 200)), LATE),
    "no_json": (answering(http(b'{"output": ')), BROKEN),
    "twice_a_key": (answering(http(b'{"output": 1, "output": 2}')), BROKEN),
    "not_utf8": (answering(http(b'{"output": "\xff"}')), BROKEN),
    "empty_body": (answering(http(b"")), BROKEN),
    "plain_text": (answering(http(GOOD, kind="text/plain")), BROKEN),
    "html_200": (answering(http(PROXY_PAGE, kind="text/html")), BROKEN),
    "compressed": (answering(http(GOOD, extra="content-encoding: gzip\r\n")), BROKEN),
    "redirect": (answering(http(b"", status="302 Found", extra="location: /x\r\n")), BROKEN),
    "tls_alert": (saying(TLS_ALERT), BROKEN),
    "too_large": (answering(http(b'"%b"' % (b"x" * (RESPONSE_BYTES_MAX + 1)))), TOO_LARGE),
    "endless_head": (saying(b"HTTP/1.1 200 OK\r\n" + b"x-a: b\r\n" * 20_000), TOO_LARGE),
    "endless_interim": (saying(b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000), TOO_LARGE),
    "sentence_for_a_reason": (
        answering(http(SENTENCE, status="500 Internal")),
        Comes("INTERNAL", "INTERNAL"),
    ),
    "html_502": (answering(http(PROXY_PAGE, status="502 Bad Gateway", kind="text/html")), PAGE),
    "html_404": (
        answering(http(PROXY_PAGE, status="404 Not Found")),
        Comes("NOT_FOUND", "NOT_FOUND", of_read="UNKNOWN"),
    ),
    "bare_500": (
        answering(http(b"", status="500 Internal")),
        Comes("UNKNOWN", "UNKNOWN", of_read="UNKNOWN"),
    ),
    "bare_504": (answering(http(b"", status="504 Gateway Timeout")), PAGE_LATE),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_wrong_peer_is_told_apart_and_the_session_ends_by_its_workflow(
    name: str, client: Client, town: Town
) -> None:
    misbehave, comes = FAULTS[name]
    wrong = Wrong(name, misbehave, SHORT_MS if comes is LATE else LONG_MS)
    place = town.stay(peer(wrong.behave))
    client.register(f"http://127.0.0.1:{place.port}")
    put_workflows(client, name)
    check_sessions(client, name, comes)
    assert wrong.called.count("once") == 2, "once by each of the two sessions"


def test_tls_where_plain_is_expected_is_told_as_no_http(
    client: Client, town: Town, tmp_path: Path
) -> None:
    """It was plain when it was registered; plain bytes reached it, so nobody can know."""
    server, _ = certificate(tmp_path, "127.0.0.1")
    wrong = Wrong("turned_tls", answering(http(GOOD)))
    place = town.stay(peer(wrong.behave))
    client.register(f"http://127.0.0.1:{place.port}")
    put_workflows(client, "turned_tls")
    town.leave()
    town.stay(peer(wrong.behave, tls=server, port=place.port))
    view = client.run("turned_tls").json
    assert (view["status"], view["output"]) == ("SUCCEEDED", "FAILED")
    for row in rows_of(client, view["session_id"])["once"]:
        assert row["error"].get("boundary", "COMPONENT") == "COMPONENT"
        assert row["error"]["side_effect"] == "UNKNOWN"
    assert wrong.called == []


def test_a_peer_that_is_gone_did_nothing_and_may_be_asked_again(client: Client, town: Town) -> None:
    """Nobody listens: that proves that nothing was sent, so even NONE is tried again."""
    wrong = Wrong("gone", answering(http(GOOD)))
    place = town.stay(peer(wrong.behave))
    client.register(f"http://127.0.0.1:{place.port}")
    put_workflows(client, "gone")
    town.leave()
    check_sessions(client, "gone", Comes("UNAVAILABLE", "UNAVAILABLE", "NONE"))
    rows = rows_of(client, client.run("gone").json["session_id"])
    assert len(rows["once"]) > 1


KILLED = """
workflow: killed
version: 1.0.0
steps:
  - name: write
    role: execute
    component: slow
    action: slow.write
    input_mapping: {ms: input}
    on_error: continue
output: write.status
"""


def test_a_component_that_is_killed_in_a_call_leaves_what_it_did_unknown(
    client: Client, start_components: Callable[..., dict[str, Any]]
) -> None:
    slow = start_components("slow")["slow"]
    client.register(slow["url"])
    client.put_workflow(KILLED)
    session_id = client.open("killed", "30000")
    until_called(slow["url"])
    os.kill(slow["pid"], signal.SIGKILL)
    assert client.ended(session_id)["output"] == "FAILED"
    (row,) = client.trajectory(session_id)["calls"]
    failure = row["error"]
    assert (failure["reason"], failure["side_effect"]) == ("UNAVAILABLE", "UNKNOWN")
