"""What a client gets wrong is a 4xx whose message says what and where; never a 5xx."""

import json
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import READ, Stranger, card, member

NO_SESSION = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
GOOD = """
workflow: good
version: 1.0.0
steps:
  - {name: act, role: execute, component: bad-echo, action: bad.echo, input_mapping: {x: input}}
output: act.output
"""
JSON_ROUTES = (
    ("POST", "/v1/components"),
    ("POST", "/v1/sessions"),
    ("POST", "/v1/sessions/{ended}/feedback"),
    ("POST", "/v1/sessions/{manual}/steps"),
    ("POST", "/v1/sessions/{manual}/finish"),
    ("POST", "/v1/operations/call:complete"),
)
UNKNOWN = (
    ("GET", "/v1/sessions/{id}"),
    ("GET", "/v1/sessions/{id}/events"),
    ("GET", "/v1/sessions/{id}/trajectory"),
    ("GET", "/v1/sessions/{id}/steps/first"),
    ("DELETE", "/v1/sessions/{id}"),
    ("POST", "/v1/sessions/{id}/cancel"),
    ("POST", "/v1/sessions/{id}/finish"),
    ("GET", "/v1/lineage/{id}.0123456789ab"),
    ("GET", "/v1/components/{id}"),
    ("DELETE", "/v1/components/{id}"),
    ("POST", "/v1/components/{id}/heartbeat"),
    ("POST", "/v1/components/{id}/drain"),
    ("GET", "/v1/workflows/{id}/versions/1.0.0"),
    ("GET", "/v1/workflows/{id}/versions"),
)


def echo(body: str) -> str:
    return f'{{"output":{member(body, "arguments")}}}'


@pytest.fixture(scope="module")
def ids(client: Client, stranger: Callable[[Stranger], Stranger]) -> dict[str, str]:
    """An ended session and an open manual one."""
    peer = Stranger(card("bad-echo", "EXECUTOR", actions={"bad.echo": READ}), {"execute": echo})
    client.register(stranger(peer).url)
    client.put_workflow(GOOD)
    ended = client.run("good", "1").json["session_id"]
    return {"ended": ended, "manual": client.open("good", "1", mode="MANUAL")}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "JSON"),
        ("{", "JSON"),
        ('{"workflow": "good", "input": }', ""),
        ('{"workflow": "good",\n "input": {"a": 1, "a": 2}}', "twice"),
        ("[]", "object"),
        ("7", "object"),
        (b'{"workflow": "\xff"}', "UTF-8"),
        ('{"workflow": 5}', "workflow"),
        ('{"workflow": ["good"]}', "workflow"),
        ('{"workflow": "good", "deadline_ms": "soon"}', "deadline_ms"),
        ('{"workflow": "good", "deadline_ms": -1}', "deadline_ms"),
        ('{"workflow": "good", "mode": "SOMETIMES"}', "mode"),
        ('{"workflow": "good", "labels": {"a": 1}}', "labels"),
        ('{"workflow": ""}', "workflow"),
        ('{"input": 1}', "workflow"),
    ],
)
def test_a_bad_opening_is_refused_and_the_message_says_what_and_where(
    client: Client, ids: dict[str, str], text: str | bytes, says: str
) -> None:
    reply = client.post("/v1/sessions", text)
    assert reply.status == 400, reply.text
    assert reply.reason == "INVALID_REQUEST"
    assert says in reply.message


@pytest.mark.parametrize("workflow", ["nobody", "good@9.9.9", "good@^2", "good@not-a-range"])
def test_a_workflow_that_does_not_exist_is_named_in_the_refusal(
    client: Client, ids: dict[str, str], workflow: str
) -> None:
    reply = client.post("/v1/sessions", {"workflow": workflow})
    assert 400 <= reply.status < 500, reply.text
    assert workflow.rpartition("@")[2] in reply.message or workflow in reply.message


@pytest.mark.parametrize(("method", "path"), UNKNOWN)
@pytest.mark.parametrize("unknown", [NO_SESSION, "nonsense", "..%2f..%2fetc", "%00", "é"])
def test_an_unknown_id_is_a_404_that_names_it(
    client: Client, ids: dict[str, str], method: str, path: str, unknown: str
) -> None:
    body = b"{}" if method == "POST" else None
    reply = client.call(method, path.format(id=unknown), body=body)
    assert reply.status == 404, reply.text
    assert reply.message


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"url": "127.0.0.1:1"}, "url"),
        ({"url": "ftp://127.0.0.1:1"}, "url"),
        ({"url": "http://127.0.0.1:1", "transport": "CARRIER_PIGEON"}, "transport"),
        ({"url": 7}, "url"),
        ({}, "url"),
        ({"url": "http://127.0.0.1:99999"}, ""),
        ({"url": "http://192.0.2.1:80"}, "192.0.2.1"),
        ({"url": "http://127.0.0.1:80", "auth": "no-such"}, "no-such"),
    ],
)
def test_a_registration_that_cannot_be_says_why(
    client: Client, body: dict[str, object], says: str
) -> None:
    reply = client.post("/v1/components", body)
    assert 400 <= reply.status < 500, reply.text
    assert says in reply.message


def test_a_component_that_is_not_there_cannot_be_registered_and_it_is_no_fault_of_ours(
    client: Client, free_port: Callable[[], int]
) -> None:
    reply = client.post("/v1/components", {"url": f"http://127.0.0.1:{free_port()}"})
    assert reply.status in (400, 422, 503), reply.text
    assert reply.reason != "INTERNAL"


@pytest.mark.parametrize(
    "broken",
    [
        '{"name": "x"}',
        '{"name": 5, "version": "1.0.0", "acp_versions": ["1.0"]}',
        '{"name": "x", "version": "first", "acp_versions": ["1.0"], "roles": ["EXECUTOR"]}',
        '{"name": "x", "version": "1.0.0", "acp_versions": ["7.0"], "roles": ["EXECUTOR"]}',
        "<html>It works!</html>",
        "[]",
    ],
)
def test_a_bad_card_is_refused_as_the_clients_fault(
    client: Client, stranger: Callable[[Stranger], Stranger], broken: str
) -> None:
    peer = stranger(_WithCard({}, {}, text=broken))
    reply = client.post("/v1/components", {"url": peer.url})
    assert 400 <= reply.status < 500, reply.text
    assert "card" in reply.message or "ACP 7.0" in reply.message


class _WithCard(Stranger):
    """A stranger whose card is any text."""

    __slots__ = ("_text",)

    def __init__(self, card: dict[str, object], answers: dict[str, object], *, text: str) -> None:
        super().__init__({}, {})
        self._text = text

    def answer(self, asked: object) -> tuple[int, str]:
        return 200, self._text


@pytest.mark.parametrize(
    ("source", "line", "says"),
    [
        ("workflow: [", 1, ""),
        ("workflow: a\nversion: one\nsteps: []\n", 2, "version"),
        ("workflow: a\nversion: 1.0.0\nsteps:\n  - {name: A, role: plan}\n", 4, "name"),
        ("workflow: a\nversion: 1.0.0\nsteps:\n  - {name: a, role: dance}\n", 4, "role"),
        (
            "workflow: a\nversion: 1.0.0\nsteps:\n  - {name: a, role: plan}\noutput: b.output\n",
            5,
            "b",
        ),
        ("workflow: a\nworkflow: b\nversion: 1.0.0\nsteps: []\n", 2, "workflow"),
        ("workflow: &a [*a]\nversion: 1.0.0\n", 1, ""),
    ],
)
def test_a_bad_workflow_file_is_told_by_line_and_column(
    client: Client, source: str, line: int, says: str
) -> None:
    body, kind = source.encode(), "application/yaml"
    told = client.call("POST", "/v1/workflows:validate", body=body, content_type=kind)
    assert told.status == 200, told.text
    assert told.json["valid"] is False
    first = told.json["problems"][0]
    assert first["line"] == line, told.text
    assert first["column"] >= 1
    assert says in json.dumps(told.json["problems"])
    put = client.call(
        "PUT", "/v1/workflows/a/versions/1.0.0", body=body, content_type="application/yaml"
    )
    assert 400 <= put.status < 500, put.text
    assert str(line) in put.text


def test_a_stored_version_never_changes(client: Client, ids: dict[str, str]) -> None:
    path = "/v1/workflows/good/versions/1.0.0"
    same = client.call("PUT", path, body=GOOD.encode(), content_type="application/yaml")
    assert same.status in (200, 201)
    other = GOOD.replace("output: act.output", "output: act.status").encode()
    changed = client.call("PUT", path, body=other, content_type="application/yaml")
    assert changed.status == 409, changed.text
    named = client.call(
        "PUT", "/v1/workflows/evil/versions/1.0.0", body=other, content_type="application/yaml"
    )
    assert named.status == 400, named.text
    assert "evil" in named.message


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "RATING"},
        {"kind": "APPLAUSE", "score": 1},
        {"kind": "RATING", "score": "much"},
        {"kind": "RATING", "score": 1, "time": "yesterday"},
        {"kind": "RATING", "score": 1, "target": {"call_id": "nobody"}},
        {"kind": "RATING", "score": 1, "target": {"step": "nobody"}},
        {"score": 1},
    ],
)
def test_bad_feedback_is_refused(
    client: Client, ids: dict[str, str], body: dict[str, object]
) -> None:
    reply = client.post(f"/v1/sessions/{ids['ended']}/feedback", body)
    assert 400 <= reply.status < 500, reply.text
    assert reply.message


def test_routes_methods_and_media_types_that_do_not_exist_say_so(
    client: Client, ids: dict[str, str]
) -> None:
    assert client.get("/v1/nothing").status == 404
    assert client.call("PUT", "/v1/sessions", body=b"{}").status == 405
    text = client.call("POST", "/v1/sessions", body=b"{}", content_type="text/plain")
    assert 400 <= text.status < 500
    assert "content" in text.message.lower()
    foreign = client.call("POST", "/v1/sessions", body=b"{}", origin="http://evil.example")
    assert foreign.status == 403
    host = client.call("GET", "/v1/sessions", host="evil.example")
    assert 400 <= host.status < 500


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
FIELDS = (
    "url", "transport", "lease_seconds", "labels", "auth", "workflow", "input", "deadline_ms",
    "priority", "session_key", "mode", "step_type", "payload", "step_key", "kind", "score",
    "comment", "target", "author", "time", "feedback_id", "output", "error", "component",
)  # fmt: skip


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    route=st.sampled_from(JSON_ROUTES),
    body=st.dictionaries(st.sampled_from(FIELDS), anything, max_size=5)
    | anything
    | st.binary(max_size=40),
)
def test_no_body_whatever_is_answered_with_a_5xx(
    client: Client, ids: dict[str, str], route: tuple[str, str], body: object
) -> None:
    method, path = route
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    reply = client.call(method, path.format(**ids), body=data)
    assert reply.status < 500, reply.text
    if reply.status >= 400:
        assert reply.message


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(source=st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_no_workflow_file_whatever_is_answered_with_a_5xx(client: Client, source: bytes) -> None:
    path, kind = "/v1/workflows:validate", "application/yaml"
    reply = client.call("POST", path, body=source, content_type=kind)
    assert reply.status in (200, 400), reply.text
