"""Names, keys, labels and numbers that nobody expects, over both bindings alike.

Whatever is sent, both bindings give the same code and reason, never a failure of the server; what
is taken comes back as it was.
"""

import json
from typing import Any, Final

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_spec.bindings.routes import GATEWAY
from acp_spec.model import gateway_calls as calls
from acp_spec.model.enums import FeedbackKind, Mode, StepType
from acp_spec.model.payload import payload
from acp_spec.model.session import (
    Feedback,
    FeedbackTarget,
    ManualStep,
    OpenSession,
    RegisterRequest,
)
from gateway.tests.asking import Asker, Outcome
from gateway.tests.e2e.client import Client
from gateway.tests.hostile.conftest import Target
from gateway.tests.hostile.outcomes import agreed

UNKNOWN: Final = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
TEXTS: Final[dict[str, str]] = {
    "empty": "",
    "NUL": "\0",
    "NUL inside": "a\0b",
    "space": " ",
    "line ends": "a\r\nb: c",
    "line separator": "a\u2028b\u2029c\x85d",
    "escape": "\x1b[31mred\x1b[0m",
    "delete": "\x7f",
    "right to left": "\u202eabc\u202c",
    "zero width": "a\u200b\u200d\ufeffb",
    "composed": "\u00e9",
    "decomposed": "e\u0301",
    "many marks": "a" + "\u0301" * 2_000,
    "beyond the plane": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "last of all": "\U0010ffff",
    "no character": "\ufffe\uffff",
    "private": "\ue000\U000f0000",
    "Turkish": "\u0130\u0131",
    "sharp s": "\u00df\u1e9e",
    "wide digits": "\uff11\uff12",
    "path": "../../etc/passwd",
    "query": "a?b=c&d=e#f",
    "per cent": "%00%2e%2e%2f",
    "quotes": "'\"`$(id)${HOME}{{7*7}}",
    "JSON": '{"$ref":"x"}',
    "proto": "__proto__",
    "SQL": "'; DROP TABLE sessions; --",
    "format": "%s%n{0}{self.__class__}",
    "a long one": "x" * 100_000,
    "a wide long one": "\U0001f600" * 50_000,
}


@pytest.fixture(scope="module")
def manual(asker: Asker, plain: str) -> str:
    """An open manual session."""
    session = OpenSession(workflow=plain, mode=Mode.MANUAL)
    told = asker.over_http(GATEWAY["open_session"], calls.OpenSessionRequest(session=session))
    found: str = msgspec.json.decode(told.data)["session_id"]
    return found


def questions(text: str, manual: str) -> list[tuple[str, msgspec.Struct]]:
    """Every operation that takes a text, with this one in each of its places."""
    feedback = Feedback(kind=FeedbackKind.COMMENT, comment="fine")
    step = ManualStep(step_type=StepType.TOOL, payload=payload(b'{"action":"echo"}'))
    replaced = msgspec.structs.replace
    opens = [
        OpenSession(workflow=text, mode=Mode.MANUAL),
        OpenSession(workflow=f"plain@{text}", mode=Mode.MANUAL),
        OpenSession(workflow="plain", mode=Mode.MANUAL, session_key=text),
        OpenSession(workflow="plain", mode=Mode.MANUAL, labels={text: "v"}),
        OpenSession(workflow="plain", mode=Mode.MANUAL, labels={"k": text}),
        OpenSession(workflow="plain", mode=Mode.MANUAL, labels={"component:echo": text}),
    ]
    judged = [
        replaced(feedback, author=text),
        replaced(feedback, comment=text),
        replaced(feedback, time=text),
        replaced(feedback, feedback_id=text),
        replaced(feedback, target=FeedbackTarget(call_id=text)),
        replaced(feedback, target=FeedbackTarget(step=text)),
    ]
    registered = [
        RegisterRequest(url=text),
        RegisterRequest(url=f"http://{text}:80"),
        RegisterRequest(url="http://127.0.0.1:9", auth=text),
        RegisterRequest(url="http://127.0.0.1:9", labels={text: "v"}),
        RegisterRequest(url="http://127.0.0.1:9", labels={"k": text}),
    ]
    return [
        *(("open_session", calls.OpenSessionRequest(session=one)) for one in opens),
        *(
            ("give_feedback", calls.GiveFeedbackRequest(session_id=manual, feedback=one))
            for one in judged
        ),
        *(("register_component", one) for one in registered),
        (
            "execute_step",
            calls.ExecuteStepRequest(session_id=manual, step=replaced(step, component=text)),
        ),
        ("validate_workflow", calls.ValidateWorkflowRequest(source=f"workflow: {text}")),
        ("put_workflow", calls.PutWorkflowRequest(name="a", version="1.0.0", source=text)),
        *in_the_path(text, manual),
    ]


def in_the_path(text: str, manual: str) -> list[tuple[str, msgspec.Struct]]:
    """The same in the URL; it cannot be empty there, and has a length that servers bound."""
    if not 0 < len(text.encode()) < 5_000:
        return []
    return [
        ("list_sessions", calls.ListSessionsRequest(status=text)),
        ("list_sessions", calls.ListSessionsRequest(workflow=text)),
        ("list_sessions", calls.ListSessionsRequest(after=text)),
        ("get_session", calls.GetSessionRequest(session_id=manual, min_version=text)),
        ("get_session", calls.GetSessionRequest(session_id=text)),
        ("get_step", calls.GetStepRequest(session_id=manual, step_key=text)),
        ("get_trajectory", calls.SessionIdRequest(session_id=text)),
        ("cancel_session", calls.SessionIdRequest(session_id=text)),
        ("stream_events", calls.StreamEventsRequest(session_id=text)),
        ("get_lineage", calls.LineageRequest(lineage_id=text)),
        ("get_lineage", calls.LineageRequest(lineage_id=f"{UNKNOWN}.{text}")),
        ("get_component", calls.ComponentIdRequest(component_id=text)),
        ("remove_component", calls.ComponentIdRequest(component_id=text)),
        ("get_workflow", calls.WorkflowRequest(name=text, version="1.0.0")),
        ("get_workflow", calls.WorkflowRequest(name="plain", version=text)),
        ("activate_workflow", calls.WorkflowRequest(name="plain", version=text)),
        ("list_workflow_versions", calls.ListWorkflowsRequest(name=text)),
        ("put_workflow", calls.PutWorkflowRequest(name=text, version=text, source="a: b")),
    ]


@pytest.mark.parametrize("kind", sorted(TEXTS))
def test_an_odd_text_in_any_place_is_taken_or_refused_alike(
    asker: Asker, manual: str, kind: str
) -> None:
    for name, message in questions(TEXTS[kind], manual):
        agreed(asker, GATEWAY[name], message)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(codec="utf-8"), max_size=40))
def test_any_text_in_any_place_is_taken_or_refused_alike(
    asker: Asker, manual: str, text: str
) -> None:
    for name, message in questions(text, manual):
        agreed(asker, GATEWAY[name], message)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    labels=st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1, max_size=20),
        st.text(st.characters(codec="utf-8"), max_size=20),
        max_size=5,
    ),
)
def test_labels_that_were_taken_come_back_as_they_were(
    asker: Asker, plain: str, labels: dict[str, str]
) -> None:
    session = OpenSession(workflow=plain, mode=Mode.MANUAL, labels=labels)
    told = asker.over_http(GATEWAY["open_session"], calls.OpenSessionRequest(session=session))
    if not told.is_success:
        assert told.reason == "INVALID_REQUEST"
        return
    session_id = msgspec.json.decode(told.data)["session_id"]
    view = asker.over_http(GATEWAY["get_session"], calls.GetSessionRequest(session_id=session_id))
    assert json.loads(view.data).get("labels", {}) == labels


INTEGERS: Final = (
    "-1", "-9223372036854775808", "-9223372036854775809", "9223372036854775807",
    "9223372036854775808", "18446744073709551616", "1" + "0" * 400, "1e3", "1e400", "-1e400", "1.0",
    "1.5", "-0", "0.0", "true", "null", '"1"', "[1]", "{}", "NaN", "Infinity", "-Infinity", "0x10",
    "1_000", "+1", "01", "1.", ".5", "\u0663",
)  # fmt: skip


@pytest.mark.parametrize("number", INTEGERS)
def test_an_odd_number_is_taken_or_is_a_400(client: Client, manual: str, number: str) -> None:
    bodies = {
        "/v1/sessions": [
            f'{{"workflow":"plain","mode":"MANUAL","deadline_ms":{number}}}',
            f'{{"workflow":"plain","mode":"MANUAL","priority":{number}}}',
            f'{{"workflow":"plain","mode":"MANUAL","input":{number}}}',
            f'{{"workflow":"plain","mode":{number}}}',
            f'{{"workflow":{number}}}',
        ],
        "/v1/components": [f'{{"url":"http://127.0.0.1:9","lease_seconds":{number}}}'],
        f"/v1/sessions/{manual}/feedback": [
            f'{{"kind":"RATING","score":{number}}}',
            f'{{"kind":"RATING","score":1,"target":{{"loop":{number}}}}}',
        ],
        "/v1/components/cmp_0/heartbeat": [
            f'{{"signals":{{"queue_length":{number},"cpu_percent":{number}}}}}'
        ],
    }
    for path, texts in bodies.items():
        for text in texts:
            reply = client.post(path, text.encode())
            assert reply.status < 500 or reply.reason == "UNAVAILABLE", (text, reply.text)
            if reply.status >= 400:
                assert reply.reason in ("INVALID_REQUEST", "NOT_FOUND", "UNAVAILABLE"), text
            again = client.post(path, text.encode())
            assert again.status == reply.status, text


@pytest.mark.parametrize("number", [-(2**63), -1, 0, 1, 501, 10**9, 2**31, 2**53, 2**63 - 1])
def test_a_number_in_a_message_means_the_same_on_both_bindings(
    asker: Asker, manual: str, number: int
) -> None:
    session = OpenSession(workflow="plain", mode=Mode.MANUAL)
    replaced = msgspec.structs.replace
    for name, message in (
        ("open_session", calls.OpenSessionRequest(session=replaced(session, deadline_ms=number))),
        ("open_session", calls.OpenSessionRequest(session=replaced(session, priority=number))),
        ("list_sessions", calls.ListSessionsRequest(limit=number)),
        ("stream_events", calls.StreamEventsRequest(session_id=manual, last_event_id=number)),
        ("register_component", RegisterRequest(url="http://127.0.0.1:9", lease_seconds=number)),
        (
            "give_feedback",
            calls.GiveFeedbackRequest(
                session_id=manual,
                feedback=Feedback(
                    kind=FeedbackKind.RATING, score=1.0, target=FeedbackTarget(loop=number)
                ),
            ),
        ),
    ):
        agreed(asker, GATEWAY[name], message)


@pytest.mark.parametrize(
    "query",
    [
        "limit=-1", "limit=1e9", "limit=0x10", "limit=%D9%A3", "limit=", "limit=999999999999999999",
        "limit=99999999999999999999", "limit=1.5", "limit=+1", "limit=1&limit=2", "limit=501",
        "limit=%00", "status=%00", "status=%ff", "after=%ff%fe", "after=" + "9" * 5000,
        "after=..%2f..", "workflow=%F0%9F%98%80", "workflow=" + "a" * 20_000, "unknown=1", "%00=1",
        "&&&&", "limit", "=", "limit=1;status=RUNNING", "status=RUNNING%20OR%201=1",
    ],
)  # fmt: skip
def test_an_odd_query_is_answered_or_is_a_400(client: Client, query: str) -> None:
    reply = client.call("GET", f"/v1/sessions?{query}")
    assert reply.status in (200, 400), reply.text


@pytest.mark.parametrize(
    "prefer",
    ["wait=-1", "wait=1e9", "wait=99999999999999999999", "wait=", "wait", "wait=NaN", "wait=0",
     "wait=0.5", "wait=\xb2", "wait=0, wait=1", '"', "wait=1;" * 500, "x" * 30_000, "wait=1=2"],
)  # fmt: skip
def test_an_odd_preference_is_a_preference_not_taken(asker: Asker, plain: str, prefer: str) -> None:
    headers = {"content-type": "application/json", "prefer": prefer}
    body = json.dumps({"workflow": plain, "mode": "MANUAL"}).encode()
    told = asker.send("POST", "/v1/sessions", headers=headers, body=body)
    assert told.status in (200, 201), told


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("last-event-id", "-1"),
        ("last-event-id", "99999999999999999999"),
        ("last-event-id", "999999999999999999"),
        ("last-event-id", "1e3"),
        ("last-event-id", ""),
        ("acp-version", "1" * 5000),
        ("acp-version", "-1.0"),
        ("acp-version", "1.99999999999999999999"),
        ("acp-version", "\xb9"),
        ("traceparent", "00-" + "f" * 32 + "-" + "f" * 16 + "-01"),
        ("traceparent", "ff" * 3000),
        ("tracestate", "a=" + "b" * 20_000),
        ("baggage", "k=" + "%00" * 5000),
        ("baggage", "\xff\xfe"),
        ("accept", "\xff" * 100),
        ("authorization", "Bearer \xff"),
    ],
)
def test_an_odd_header_is_ignored_or_is_a_4xx(
    asker: Asker, manual: str, name: str, value: str
) -> None:
    for path in (f"/v1/sessions/{manual}", f"/v1/sessions/{manual}/events", "/metrics"):
        headers = {name: value.encode("latin-1")}
        told = asker.send("GET", path, headers=headers)
        assert told.status < 500, (path, told)


@pytest.mark.parametrize(
    "time",
    ["0000-01-01T00:00:00Z", "9999-12-31T23:59:60Z", "2026-02-30T00:00:00Z",
     "10000-01-01T00:00:00Z",
     "2026-01-01T00:00:00+99:99", "2026-01-01T00:00:00-23:59", "9999-12-31T23:59:59-23:59",
     "0001-01-01T00:00:00+23:59", "2026-01-01T00:00:00." + "9" * 400 + "Z", "now", "1700000000",
     "2026-W01-1", "2026-01-01", "\uff12026-01-01T00:00:00Z"],
)  # fmt: skip
def test_an_odd_time_is_taken_or_refused_alike(asker: Asker, manual: str, time: str) -> None:
    feedback = Feedback(kind=FeedbackKind.RATING, score=1.0, time=time)
    message = calls.GiveFeedbackRequest(session_id=manual, feedback=feedback)
    agreed(asker, GATEWAY["give_feedback"], message)


@pytest.mark.parametrize("score", [float("inf"), float("-inf"), float("nan")])
def test_a_score_that_is_no_number_is_refused_over_grpc(
    asker: Asker, manual: str, score: float
) -> None:
    feedback = Feedback(kind=FeedbackKind.RATING, score=score)
    message = calls.GiveFeedbackRequest(session_id=manual, feedback=feedback)
    told = asker.over_grpc(GATEWAY["give_feedback"], message)
    assert told == Outcome("INVALID_ARGUMENT", "INVALID_REQUEST")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"workflow":"plain","workflow":"plain"}', "twice"),
        ('{"workflow":"plain","input":{"a":1,"a":1}}', "twice"),
        ('{"workflow":"plain","input":{"a":1,"\\u0061":1}}', "twice"),
        ('{"workflow":"plain","input":"\\ud800"}', "surrogate"),
        ('{"workflow":"plain","labels":{"a":"\\udfff"}}', "surrogate"),
        ('{"workflow":"plain","labels":{"a":"1","a":"2"}}', "twice"),
        ('{"workflow":"plain","input":' + "[" * 49 + "]" * 49 + "}", "nest"),
        ('{"workflow":"plain","input":' + '{"a":' * 60 + "1" + "}" * 60 + "}", "nest"),
        ('{"workflow":"plain","input":' + "[" * 100_000 + "}", ""),
        ('{"workflow":"plain","input":1} trailing', ""),
        ('{"workflow":"plain","input":1}{"workflow":"plain"}', ""),
        ("\ufeff" + '{"workflow":"plain"}', ""),
        ('{"workflow":"plain",}', ""),
        ("{'workflow':'plain'}", ""),
        ('{"workflow":"plain"/*comment*/}', ""),
        ('{"workflow":"pla\nin"}', ""),
        ('{"workflow":"plain","input":"\x01"}', ""),
    ],
)
def test_json_that_is_not_good_is_refused_with_what_is_wrong(
    client: Client, plain: str, text: str, says: str
) -> None:
    reply = client.post("/v1/sessions", text.encode())
    assert (reply.status, reply.reason) == (400, "INVALID_REQUEST"), reply.text
    assert says in reply.message
    assert len(reply.message) < 1_000


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-le", "utf-7", "latin-1"])
def test_json_in_another_encoding_is_refused(client: Client, plain: str, encoding: str) -> None:
    body = '{"workflow":"plain","input":"\u00e9"}'.encode(encoding)
    reply = client.call("POST", "/v1/sessions", body=body)
    if encoding == "utf-7":  # looks like ASCII, and is
        assert reply.status in (201, 400)
    else:
        assert (reply.status, reply.reason) == (400, "INVALID_REQUEST"), reply.text


@pytest.mark.parametrize(
    "fields",
    [
        {"session_key": "k" * 513},
        {"labels": {"k": "v" * 1025}},
        {"labels": {"k" * 1025: "v"}},
        {"labels": {f"k{number}": "v" for number in range(65)}},
    ],
    ids=["a key", "a label", "a label's name", "many labels"],
)
def test_what_names_a_session_has_a_length(
    asker: Asker, plain: str, fields: dict[str, Any]
) -> None:
    """It stands in an index row, and in the context of every call."""
    session = OpenSession(workflow="plain", mode=Mode.MANUAL, **fields)
    opening = calls.OpenSessionRequest(session=session)
    refused = Outcome("INVALID_ARGUMENT", "INVALID_REQUEST")
    assert asker.both(GATEWAY["open_session"], opening) == (refused, refused)


def test_a_step_key_has_a_length(asker: Asker, manual: str) -> None:
    step = ManualStep(step_type=StepType.TOOL, step_key="k" * 513)
    asked = calls.ExecuteStepRequest(session_id=manual, step=step)
    refused = Outcome("INVALID_ARGUMENT", "INVALID_REQUEST")
    assert asker.both(GATEWAY["execute_step"], asked) == (refused, refused)


BIG: Final = 10 * 1024 * 1024


@pytest.mark.parametrize(
    "message",
    [
        OpenSession(workflow="plain", session_key="k" * BIG),
        OpenSession(workflow="plain", labels={"k": "v" * BIG}),
        OpenSession(workflow="plain", labels={"k" * BIG: "v"}),
        OpenSession(workflow="w" * BIG),
        OpenSession(workflow="plain", input=payload(b'"' + b"x" * BIG + b'"')),
        OpenSession(workflow="plain", labels={f"k{n}": "v" * 30 for n in range(200_000)}),
    ],
    ids=["a session key", "a label", "a label's name", "a workflow", "an input", "many labels"],
)
def test_ten_megabytes_are_too_large_in_any_place(
    asker: Asker, gateway: Target, plain: str, message: OpenSession
) -> None:
    opening = calls.OpenSessionRequest(session=message)
    http, grpc = asker.both(GATEWAY["open_session"], opening)
    assert (http.status, http.reason) == (413, "PAYLOAD_TOO_LARGE")
    assert grpc.code == "RESOURCE_EXHAUSTED"
    gateway.assert_well()


def test_the_largest_body_that_is_taken_changes_nothing_for_others(
    asker: Asker, gateway: Target, plain: str
) -> None:
    size = 4 * 1024 * 1024 - 1000
    message = OpenSession(
        workflow="plain", mode=Mode.MANUAL, input=payload(b'"' + b"x" * size + b'"')
    )
    opening = calls.OpenSessionRequest(session=message)
    for outcome in asker.both(GATEWAY["open_session"], opening):
        assert outcome.is_success, outcome
    gateway.assert_well()
