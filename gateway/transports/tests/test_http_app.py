"""Every operation over HTTP, and every way in which a client can be wrong."""

import asyncio
import json
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_spec.bindings.routes import GATEWAY_ROUTES
from gateway.stores.errors import StoreFailed
from gateway.transports.http_app import HttpApp
from gateway.transports.tests.asgi import Answer, Client
from gateway.transports.tests.conftest import build_app
from gateway.transports.tests.in_memory import WORKFLOW, House

OPEN: Mapping[str, object] = {"workflow": "hotline", "input": {"query": "hello"}}
YAML = {"content-type": "application/yaml"}
PLACE = "/v1/workflows/hotline/versions/1.0.0"


def ask(
    client: Client,
    method: str,
    target: str,
    *,
    body: bytes | Mapping[str, object] = b"",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    answer = asyncio.run(client.ask(method, target, body=body, headers=headers))
    assert answer.is_whole, f"{method} {target} was not answered to its end"
    return answer


def opened(client: Client) -> str:
    """A session's path."""
    return ask(client, "POST", "/v1/sessions", body=OPEN).headers["location"]


# ---- sessions ------------------------------------------------------------------------------------


def test_opening_answers_201_with_the_place_of_the_session(client: Client) -> None:
    answer = ask(client, "POST", "/v1/sessions", body=OPEN)
    assert answer.status == 201
    assert set(answer.json) == {"session_id", "lineage_id", "state_version", "status"}
    assert answer.headers["location"] == f"/v1/sessions/{answer.json['session_id']}"
    assert answer.headers["content-type"] == "application/json"
    assert "preference-applied" not in answer.headers


def test_waiting_answers_200_with_the_session_when_it_ends_in_time(
    house: House, client: Client
) -> None:
    house.sessions.ends_at_once = True
    answer = ask(client, "POST", "/v1/sessions", body=OPEN, headers={"prefer": "wait=5"})
    assert (answer.status, answer.json["status"]) == (200, "SUCCEEDED")
    assert answer.headers["preference-applied"] == "wait=5"
    assert house.sessions.waits == [5]


def test_waiting_is_capped_and_the_answer_says_so(house: House, client: Client) -> None:
    answer = ask(client, "POST", "/v1/sessions", body=OPEN, headers={"prefer": "wait=9999"})
    assert (answer.status, house.sessions.waits) == (201, [20])
    assert answer.headers["preference-applied"] == "wait=20"


def test_the_same_session_key_is_the_same_session_and_another_body_a_conflict(
    client: Client,
) -> None:
    body = {**OPEN, "session_key": "k"}
    first = ask(client, "POST", "/v1/sessions", body=body)
    again = ask(client, "POST", "/v1/sessions", body=body)
    assert (first.status, again.status) == (201, 200)
    assert first.json["session_id"] == again.json["session_id"]
    other = ask(client, "POST", "/v1/sessions", body={**body, "priority": 1})
    assert (other.status, other.reason) == (409, "ALREADY_EXISTS")


def test_the_inputs_bytes_pass_as_they_were_written(client: Client) -> None:
    text = b'{"big":9007199254740993,"small":0.10,"long":123456789012345678.90,"s":"\\u00e9"}'
    body = b'{"workflow":"w","input":%s}' % text
    place = ask(client, "POST", "/v1/sessions", body=body).headers["location"]
    assert b'"output":%s' % text in ask(client, "GET", place).body
    assert b'"input":%s' % text in ask(client, "GET", f"{place}/trajectory").body


def test_trace_headers_reach_the_session(house: House, client: Client) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    ask(
        client, "POST", "/v1/sessions", body=OPEN, headers={"traceparent": parent, "baggage": "a=1"}
    )
    (kept,) = house.sessions.kept.values()
    assert (kept.trace.traceparent, kept.trace.baggage) == (parent, "a=1")


def test_enums_are_read_in_lower_case_too(client: Client) -> None:
    assert ask(client, "POST", "/v1/sessions", body={**OPEN, "mode": "manual"}).status == 201
    assert ask(client, "GET", "/v1/sessions?status=running").status == 200


def test_pages_follow_one_another_by_the_last_id(client: Client) -> None:
    for _ in range(5):
        opened(client)
    seen: list[str] = []
    target = "/v1/sessions?limit=2"
    while True:
        page = ask(client, "GET", target).json
        seen += [session["session_id"] for session in page["sessions"]]
        if "next" not in page:
            break
        target = f"/v1/sessions?limit=2&after={page['next']}"
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == 5


def test_a_manual_step_that_takes_longer_is_polled_at_its_place(client: Client) -> None:
    place = opened(client)
    step = {"step_type": "TOOL", "payload": {"action": "a"}, "step_key": "key 1/x"}
    answer = ask(client, "POST", f"{place}/steps", body=step)
    assert (answer.status, answer.json["status"]) == (202, "RUNNING")
    polled = ask(client, "GET", f"{place}/steps/key%201%2Fx")
    assert (polled.status, polled.json["step_key"]) == (202, "key 1/x")
    settled = ask(client, "POST", f"{place}/steps", body=step, headers={"prefer": "wait=1"})
    assert settled.status == 200


def test_a_sessions_life_over_http(house: House, client: Client) -> None:
    place = opened(client)
    judged = ask(client, "POST", f"{place}/feedback", body={"kind": "RATING", "score": 0.5})
    assert (judged.status, judged.json["feedback_id"]) == (201, "f-1")
    assert house.sessions.feedbacks[0].score == 0.5
    assert ask(client, "POST", f"{place}/cancel").status == 202
    finished = ask(client, "POST", f"{place}/finish", body={"output": 1})
    assert (finished.status, finished.json["status"]) == (200, "SUCCEEDED")
    assert ask(client, "GET", f"{place}?min_version=1.0.0").status == 200
    lineage = finished.json["lineage_id"]
    assert ask(client, "GET", f"/v1/lineage/{lineage}").json == {"lineage_id": lineage}
    deleted = ask(client, "DELETE", place)
    assert (deleted.status, deleted.body) == (204, b"")
    assert "content-length" not in deleted.headers
    assert ask(client, "GET", place).status == 404


def test_a_stale_read_is_409_and_says_so(client: Client) -> None:
    answer = ask(client, "GET", f"{opened(client)}?min_version=9.9.9")
    assert (answer.status, answer.reason) == (409, "STALE_STATE")


# ---- components, workflows, tokens ---------------------------------------------------------------


def test_a_components_life_over_http(client: Client) -> None:
    added = ask(client, "POST", "/v1/components", body={"url": "http://ledger:9000"})
    assert added.status == 201
    place = added.headers["location"]
    assert ask(client, "GET", "/v1/components").json["components"][0]["url"] == "http://ledger:9000"
    assert ask(client, "GET", place).json["card"]["name"] == "ledger"
    beat = {"signals": {"queue_length": 3}}
    assert ask(client, "POST", f"{place}/heartbeat", body=beat).status == 200
    assert ask(client, "POST", f"{place}/heartbeat").status == 200
    assert ask(client, "POST", f"{place}/drain").status == 200
    assert ask(client, "DELETE", place).status == 204
    assert ask(client, "GET", place).status == 404


def test_a_workflow_version_is_stored_once_and_never_changed(client: Client) -> None:
    put = ask(client, "PUT", PLACE, body=WORKFLOW, headers=YAML)
    assert (put.status, put.json["active"]) == (201, True)
    assert ask(client, "PUT", PLACE, body=WORKFLOW, headers=YAML).status == 200
    changed = ask(client, "PUT", PLACE, body=WORKFLOW + b"# other\n", headers=YAML)
    assert (changed.status, changed.reason) == (409, "ALREADY_EXISTS")
    assert ask(client, "GET", PLACE).json["source"] == WORKFLOW.decode()


def test_versions_are_listed_and_activated(client: Client) -> None:
    ask(client, "PUT", PLACE, body=WORKFLOW, headers=YAML)
    newer = WORKFLOW.replace(b"1.0.0", b"1.1.0")
    second = PLACE.replace("1.0.0", "1.1.0")
    assert "active" not in ask(client, "PUT", second, body=newer, headers=YAML).json
    assert ask(client, "POST", f"{second}/activate").json["active"] is True
    listed = ask(client, "GET", "/v1/workflows").json["workflows"]
    assert [(one["version"], one.get("active", False)) for one in listed] == [
        ("1.0.0", False),
        ("1.1.0", True),
    ]
    assert ask(client, "GET", "/v1/workflows/hotline/versions").json["workflows"] == listed
    assert ask(client, "GET", "/v1/workflows/other/versions").status == 404


def test_a_workflow_may_come_as_json(client: Client) -> None:
    tree = {
        "workflow": "hotline",
        "version": "1.0.0",
        "steps": [{"name": "plan", "role": "plan"}],
        "output": "plan.output",
    }
    assert ask(client, "PUT", PLACE, body=tree).status == 201


def test_a_wrong_workflow_is_told_with_line_and_column(client: Client) -> None:
    wrong = WORKFLOW.replace(b"role: plan", b"role: plane")
    checked = ask(client, "POST", "/v1/workflows:validate", body=wrong, headers=YAML)
    assert (checked.status, checked.json["valid"]) == (200, False)
    problem = checked.json["problems"][0]
    assert problem["line"] == 5
    assert problem["column"] > 1
    put = ask(client, "PUT", PLACE, body=wrong, headers=YAML)
    assert (put.status, put.reason) == (400, "INVALID_REQUEST")
    assert "line 5" in put.message
    assert put.json["error"]["details"]["problems"] == checked.json["problems"]


def test_a_file_must_say_what_its_path_says(client: Client) -> None:
    answer = ask(client, "PUT", PLACE.replace("1.0.0", "2.0.0"), body=WORKFLOW, headers=YAML)
    assert answer.status == 400
    assert "'2.0.0'" in answer.message


@pytest.mark.parametrize(
    "body", [b"", b"  \n", b"\xff\xfe", b"steps: [", b"- 1\n- 2\n", b"{", b"\0"]
)
def test_no_bad_file_is_more_than_a_clients_fault(client: Client, body: bytes) -> None:
    assert ask(client, "PUT", PLACE, body=body, headers=YAML).status in (400, 415)
    assert ask(client, "POST", "/v1/workflows:validate", body=body, headers=YAML).status < 500


def test_tokens_are_made_listed_and_revoked_by_an_administrator(client: Client) -> None:
    made = ask(client, "POST", "/v1/tokens", body={"scopes": ["submit"], "label": "ci"})
    assert made.status == 201
    assert made.json["token"].startswith("acp_")
    listed = ask(client, "GET", "/v1/tokens")
    assert [one["label"] for one in listed.json["tokens"]] == ["ci"]
    assert made.json["token"].split("_", 2)[2].encode() not in listed.body
    place = f"/v1/tokens/{made.json['info']['token_id']}"
    assert ask(client, "DELETE", place).status == 204
    assert ask(client, "DELETE", place).status == 404


# ---- the house -----------------------------------------------------------------------------------


def test_ready_says_why_not(house: House, client: Client) -> None:
    house.reasons += ["recovering sessions", "the store failed: disk full"]
    answer = ask(client, "GET", "/readyz")
    assert (answer.status, answer.body) == (
        503,
        b"recovering sessions\nthe store failed: disk full\n",
    )
    assert answer.headers["retry-after"] == "1"
    assert ask(client, "GET", "/healthz").status == 200
    house.reasons.clear()
    assert ask(client, "GET", "/readyz").status == 200


def test_metrics_count_refusals(client: Client) -> None:
    ask(client, "GET", "/nowhere")
    page = ask(client, "GET", "/metrics")
    assert page.headers["content-type"].startswith("text/plain")
    assert b'acp_refusals_total{reason="NOT_FOUND"} 1.0' in page.body


def test_docs_load_nothing_from_elsewhere_and_may_not(client: Client) -> None:
    page = ask(client, "GET", "/docs")
    assert b"http://" not in page.body
    assert b"https://" not in page.body
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_openapi_is_the_generated_one_with_every_route_of_the_wire(client: Client) -> None:
    paths = ask(client, "GET", "/openapi.json").json["paths"]
    for route in GATEWAY_ROUTES:
        assert route.method.lower() in paths[route.path], route.name


# ---- clients in the wrong ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "where"),
    [
        (b"", "Input data was truncated"),
        (b"{", ""),
        (b"[]", "$"),
        (b'{"workflow":""}', "$.workflow"),
        (b'{"workflow":1}', "$.workflow"),
        (b'{"input":{}}', "workflow"),
        (b'{"workflow":"w","deadline_ms":-1}', "$.deadline_ms"),
        (b'{"workflow":"w","deadline_ms":1.5}', "$.deadline_ms"),
        (b'{"workflow":"w","mode":"SOMETIMES"}', "AUTOMATIC, MANUAL"),
        (b'{"workflow":"w","labels":{"a":1}}', "$.labels"),
        (b'{"workflow":"w","workflow":"w"}', "same key twice"),
        (b'{"workflow":"w","input":"\xff"}', "UTF-8"),
        (b'{"workflow":"w","input":"\\ud800"}', "surrogate"),
        (b'{"workflow":"w","input":' + b"[" * 60 + b"]" * 60 + b"}", "nested"),
        (b'{"workflow":"w"} x', "after the JSON value"),
        (b'{"workflow":"w","input":NaN}', ""),
    ],
)
def test_a_bad_body_is_400_and_says_what_and_where(client: Client, body: bytes, where: str) -> None:
    answer = ask(
        client, "POST", "/v1/sessions", body=body, headers={"content-type": "application/json"}
    )
    assert (answer.status, answer.reason) == (400, "INVALID_REQUEST")
    assert where in answer.message or not body


def test_another_major_version_is_refused_with_those_supported(client: Client) -> None:
    refused = ask(client, "GET", "/v1/sessions", headers={"acp-version": "2.0"})
    assert (refused.status, refused.reason) == (400, "VERSION_UNSUPPORTED")
    assert "supported: 1.0" in refused.message
    for version in ("1.0", "1.7", ""):
        assert ask(client, "GET", "/v1/sessions", headers={"acp-version": version}).status == 200


def test_unknown_fields_are_ignored(client: Client) -> None:
    assert ask(client, "POST", "/v1/sessions", body={**OPEN, "colour": "red"}).status == 201


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "", "application/yaml", "multipart/x"],
)
def test_a_write_that_is_not_json_is_415(client: Client, kind: str) -> None:
    answer = ask(
        client,
        "POST",
        "/v1/sessions",
        body=json.dumps(OPEN).encode(),
        headers={"content-type": kind},
    )
    assert (answer.status, answer.reason) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert "application/json" in answer.message


@pytest.mark.parametrize(
    "kind", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/merge-patch+json"]
)
def test_json_may_be_named_in_several_ways(client: Client, kind: str) -> None:
    body = json.dumps(OPEN).encode()
    assert (
        ask(client, "POST", "/v1/sessions", body=body, headers={"content-type": kind}).status == 201
    )


def test_a_form_without_a_body_is_refused_too(client: Client) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert ask(client, "POST", f"{opened(client)}/cancel", headers=form).status == 415


def test_a_body_over_the_limit_is_413(client: Client) -> None:
    answer = ask(client, "POST", "/v1/sessions", body={**OPEN, "input": "x" * 10_000})
    assert (answer.status, answer.reason) == (413, "PAYLOAD_TOO_LARGE")


@pytest.mark.parametrize(
    "path",
    ["/", "/v1", "/v1/", "/v1/sessions/", "/v2/sessions", "/v1/Sessions", "//v1/sessions", "/%ff"],
)
def test_an_unknown_path_is_404_in_the_one_error_shape(client: Client, path: str) -> None:
    answer = ask(client, "GET", path)
    assert (answer.status, answer.reason) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/sessions", "GET, HEAD, POST"),
        ("POST", "/v1/sessions/S", "DELETE, GET, HEAD"),
        ("GET", "/v1/workflows:validate", "POST"),
        ("POST", "/healthz", "GET, HEAD"),
        ("OPTIONS", "/v1/sessions", "GET, HEAD, POST"),
        ("TRACE", "/v1/sessions", "GET, HEAD, POST"),
    ],
)
def test_another_method_is_405_with_those_allowed(
    client: Client, method: str, path: str, allowed: str
) -> None:
    answer = ask(client, method, path)
    assert (answer.status, answer.reason) == (405, "METHOD_NOT_ALLOWED")
    assert answer.headers["allow"] == allowed


@pytest.mark.parametrize(
    "target",
    [
        "/v1/sessions?status=HAPPY",
        "/v1/sessions?limit=x",
        "/v1/sessions?limit=-1",
        "/v1/sessions?limit=100000",
        "/v1/sessions?colour=red",
        "/v1/sessions?status=FAILED&status=RUNNING",
        "/v1/components?x=1",
        "/v1/sessions?after=%ff",
    ],
)
def test_a_bad_query_is_400(client: Client, target: str) -> None:
    answer = ask(client, "GET", target)
    assert (answer.status, answer.reason) == (400, "INVALID_REQUEST")


def test_a_bad_last_event_id_is_400(client: Client) -> None:
    answer = ask(client, "GET", f"{opened(client)}/events", headers={"last-event-id": "soon"})
    assert answer.status == 400


def test_unknown_ids_are_404_everywhere(client: Client) -> None:
    for method, path in [
        ("GET", "/v1/sessions/NOPE"),
        ("GET", "/v1/sessions/NOPE/events"),
        ("GET", "/v1/sessions/NOPE/steps/1"),
        ("POST", "/v1/sessions/NOPE/cancel"),
        ("GET", "/v1/components/NOPE"),
        ("DELETE", "/v1/components/NOPE"),
        ("GET", "/v1/workflows/nope/versions/1.0.0"),
        ("POST", "/v1/workflows/nope/versions/1.0.0/activate"),
        ("GET", "/v1/lineage/NOPE.0"),
    ]:
        answer = ask(client, method, path)
        assert (answer.status, answer.reason) == (404, "NOT_FOUND"), path


# ---- the gateway in the wrong --------------------------------------------------------------------


def test_a_bug_is_500_internal_and_leaks_nothing(house: House, client: Client) -> None:
    house.sessions.breaks = RuntimeError("secret of the house")
    answer = ask(client, "POST", "/v1/sessions", body=OPEN)
    assert (answer.status, answer.reason) == (500, "INTERNAL")
    assert answer.json["error"]["boundary"] == "GATEWAY"
    assert b"secret" not in answer.body


def test_a_failed_store_is_503_and_says_when_to_come_back(house: House, client: Client) -> None:
    house.sessions.breaks = StoreFailed("disk full on /secret/path")
    answer = ask(client, "POST", "/v1/sessions", body=OPEN)
    assert (answer.status, answer.reason) == (503, "UNAVAILABLE")
    assert int(answer.headers["retry-after"]) >= 1
    assert b"/secret" not in answer.body


METHODS = st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"])
PARTS = st.sampled_from(
    ["v1", "sessions", "workflows", "components", "S", "steps", "events", "%00", "..", "", "a:b"]
)
HEADERS = st.dictionaries(
    st.sampled_from(["prefer", "last-event-id", "content-type", "authorization", "traceparent"]),
    st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=30),
)


@settings(max_examples=300)
@given(
    METHODS, st.lists(PARTS, max_size=6), st.binary(max_size=40), st.binary(max_size=60), HEADERS
)
def test_no_request_at_all_gets_more_than_a_clients_fault(
    method: str, parts: list[str], query: bytes, body: bytes, headers: dict[str, str]
) -> None:
    app: HttpApp = build_app(House(), required=False)
    given_headers = {
        name: value.encode("latin-1").decode("latin-1") for name, value in headers.items()
    }
    target = "/" + "/".join(parts) + "?" + query.decode("ascii", "ignore").replace("?", "")
    ascii_only = {
        name: value.encode("ascii", "ignore").decode() for name, value in given_headers.items()
    }
    answer = ask(Client(app), method, target, body=body, headers=ascii_only)
    assert answer.status < 500
    if answer.status >= 400:
        assert answer.reason
