"""Time and calls: cancels cascade, deadlines shrink, operations end by poll or by call-back."""

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from time import monotonic
from typing import Any

import pytest

from gateway.tests.e2e.client import UNTIL_S, Client, until_called
from gateway.tests.e2e.json_texts import compact
from gateway.tests.e2e.stranger import READ, Stranger, card, member
from gateway.tests.served import Served, serve_gateway

Serve = Callable[[Stranger], Stranger]
Start = Callable[..., dict[str, Any]]
CANCEL_GRACE_MS = 8_000
"""Far longer than an answer to a cancel takes on any machine."""
SHORT_GRACE_MS = 1_000
DEADLINE_MS = 3_000
"""Long enough that the first call leaves in time on any machine."""
ONE_ACTION = """
workflow: {name}
version: 1.0.0
steps:
  - name: act
    role: execute
    component: {component}
    action: {action}
    input_mapping: {mapping}
output: act.output
limits: {{deadline_ms: {deadline_ms}}}
"""
SLOW_FIELDS = "{ms: input.ms, deaf: input.deaf, fail: input.fail, poll_after_ms: input.poll}"


def one_action(
    client: Client, action: str, *, component: str = "slow", deadline_ms: int = 30_000
) -> str:
    """A workflow of one call; its name."""
    name = f"{action}-{deadline_ms}"
    mapping = SLOW_FIELDS if component == "slow" else "{x: input}"
    client.put_workflow(
        ONE_ACTION.format(
            name=name,
            component=component,
            action=action,
            mapping=mapping,
            deadline_ms=deadline_ms,
        )
    )
    return name


def told(ms: int, *, deaf: bool = False, fail: bool = False, poll: int = 100) -> str:
    return json.dumps({"ms": ms, "deaf": deaf, "fail": fail, "poll": poll})


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("gateway")
    environ = {"ACP_GRACE_CANCEL_GRACE_MS": str(CANCEL_GRACE_MS)}
    gateway = serve_gateway(data_dir=folder / "data", log_file=folder / "log", environ=environ)
    yield gateway
    gateway.stop()


@pytest.fixture(scope="module", autouse=True)
def slow(client: Client, start_components: Start) -> str:
    """Where the slow component serves."""
    url: str = start_components("slow")["slow"]["url"]
    client.register(url)
    return url


def only_row(client: Client, session_id: str) -> Any:
    (row,) = client.trajectory(session_id)["calls"]
    return row


# ---- cancel --------------------------------------------------------------------------------------


def test_a_cancel_reaches_the_component_which_stops_and_says_that_nothing_was_done(
    client: Client, slow: str
) -> None:
    session_id = client.open(one_action(client, "slow.write"), told(60_000))
    until_called(slow)
    begun = monotonic()
    assert client.post(f"/v1/sessions/{session_id}/cancel").status == 202
    assert client.ended(session_id)["status"] == "CANCELLED"
    assert monotonic() - begun < CANCEL_GRACE_MS / 1000
    row = only_row(client, session_id)
    assert row["side_effect"] == "NONE"
    assert row["error"]["reason"] == "CANCELLED"
    assert client.post(f"/v1/sessions/{session_id}/cancel").status in (200, 202)


def test_a_component_that_does_not_stop_is_given_its_grace_and_its_effect_is_unknown(
    serve: Callable[..., Served], slow: str
) -> None:
    gateway = serve(environ={"ACP_GRACE_CANCEL_GRACE_MS": str(SHORT_GRACE_MS)})
    with Client(gateway.url) as client:
        client.register(slow)
        session_id = client.open(one_action(client, "slow.write"), told(12_000, deaf=True))
        until_called(slow)
        begun = monotonic()
        client.post(f"/v1/sessions/{session_id}/cancel")
        assert client.ended(session_id)["status"] == "CANCELLED"
        assert monotonic() - begun > SHORT_GRACE_MS / 1000 - 0.2
        until_called(slow)  # it goes on, and nobody waited for its end
        row = only_row(client, session_id)
        assert row.get("side_effect", "UNKNOWN") == "UNKNOWN"
        assert row["error"]["reason"] == "CANCELLED"


def test_a_cancel_goes_to_every_call_that_is_in_flight_and_starts_no_other(
    client: Client, stranger: Serve
) -> None:
    sent, let_go = threading.Semaphore(0), threading.Event()
    goals = [{"id": f"g{n}", "action": "hold", "arguments": n} for n in range(3)]
    goals.append({"id": "after", "action": "hold", "depends_on": ["g0"]})

    def hold(body: str) -> tuple[int, str]:
        sent.release()
        let_go.wait(10)
        stopped = {"code": "CANCELLED", "reason": "CANCELLED", "message": "stopped"}
        return 499, json.dumps({"error": {**stopped, "side_effect": "NONE"}})

    heard: list[str] = []

    def cancel(body: str) -> str:
        heard.append(body)
        if len(heard) == 3:  # a call that has ended is told of no cancel
            let_go.set()
        return '{"state": "STOPPED", "side_effect": "NONE"}'

    action = {"effect": "WRITE", "idempotency": "NONE"}
    peer = Stranger(
        card("holder", "PLANNER", "EXECUTOR", actions={"hold": action}),
        {"plan": lambda body: json.dumps({"plan": {"sub_goals": goals}}), "execute": hold,
         "cancel": cancel},
    )  # fmt: skip
    client.register(stranger(peer).url)
    client.put_workflow(
        "workflow: held\nversion: 1.0.0\nsteps:\n"
        "  - {name: plan, role: plan, component: holder}\n"
        "  - {name: act, role: execute, plan: plan}\n"
    )
    session_id = client.open("held")
    for _ in range(3):
        assert sent.acquire(timeout=10)
    client.post(f"/v1/sessions/{session_id}/cancel")
    assert client.ended(session_id)["status"] == "CANCELLED"
    cancelled = {one.path.split("/")[-2] for one in peer.asked if one.path.endswith("/cancel")}
    executed = [one.context["call_id"] for one in peer.asked if one.path.endswith("/execute")]
    assert len(executed) == 3
    assert cancelled == set(executed)


# ---- deadlines -----------------------------------------------------------------------------------


def test_the_time_left_shrinks_from_call_to_call_and_a_late_component_is_told_to_stop(
    client: Client, stranger: Serve
) -> None:
    calls, stopped = itertools.count(1), threading.Event()

    def doze(body: str) -> str:
        threading.Event().wait(0.15)
        if next(calls) > 3:
            stopped.wait(UNTIL_S)
        return '{"output": 1}'

    def cancel(body: str) -> str:
        stopped.set()
        return '{"state": "STOPPED", "side_effect": "NONE"}'

    answers = {"execute": doze, "cancel": cancel}
    peer = Stranger(card("dozer", "EXECUTOR", actions={"doze": READ}), answers)
    client.register(stranger(peer).url)
    steps = [f"  - {{name: s{n}, role: execute, component: dozer, action: doze}}" for n in range(9)]
    client.put_workflow(
        "workflow: shrinking\nversion: 1.0.0\nsteps:\n"
        + "\n".join(steps)
        + f"\nlimits: {{deadline_ms: {DEADLINE_MS}}}\n"
    )
    view = client.ended(client.open("shrinking"))
    assert view["status"] == "FAILED"
    assert view["error"]["reason"] == "TIMEOUT"
    left = [one.context["timeout_ms"] for one in peer.asked if one.path.endswith("/execute")]
    assert left == sorted(left, reverse=True)
    assert left[0] <= DEADLINE_MS
    assert stopped.is_set()
    assert all(later <= earlier - 140 for earlier, later in pairwise(left))


def test_a_deadline_that_passes_ends_the_session_and_stops_the_component(client: Client) -> None:
    workflow = one_action(client, "slow.write", deadline_ms=DEADLINE_MS)
    session_id = client.open(workflow, told(60_000))
    view = client.ended(session_id)
    assert view["status"] == "FAILED"
    assert view["error"]["reason"] == "TIMEOUT"
    row = only_row(client, session_id)
    assert row["error"]["reason"] == "TIMEOUT"
    assert row["timeout_ms"] <= DEADLINE_MS


# ---- long operations -----------------------------------------------------------------------------


def test_an_operation_ends_by_poll_while_the_sessions_clock_stands_still(client: Client) -> None:
    workflow = one_action(client, "slow.operation", deadline_ms=DEADLINE_MS)
    session_id = client.open(workflow, told(DEADLINE_MS + 500, poll=50))
    client.until(session_id, lambda view: view["status"] == "WAITING")
    view = client.ended(session_id)
    assert view["status"] == "SUCCEEDED", view
    assert view["output"] == {"took_ms": DEADLINE_MS + 500}


def test_an_operation_that_fails_fails_with_what_the_component_said(client: Client) -> None:
    session_id = client.open(one_action(client, "slow.operation"), told(100, fail=True, poll=20))
    view = client.ended(session_id)
    assert view["status"] == "FAILED"
    assert view["error"]["reason"] == "FAILED_AS_TOLD"


def test_a_cancel_stops_an_operation(client: Client) -> None:
    session_id = client.open(one_action(client, "slow.operation"), told(60_000, poll=100))
    client.until(session_id, lambda view: view["status"] == "WAITING")
    client.post(f"/v1/sessions/{session_id}/cancel")
    assert client.ended(session_id)["status"] == "CANCELLED"


@pytest.fixture(scope="module")
def patient(client: Client, stranger: Serve) -> Stranger:
    """Accepts every operation, and when it is polled knows only that it still runs."""
    waits = {"operation": {"poll_after_ms": 60_000}}
    actions = {"wait": {"effect": "WRITE", "idempotency": "BY_KEY", "operation_timeout_ms": 60_000}}
    answers = {"execute": lambda body: json.dumps(waits)}
    peer = stranger(Stranger(card("patient", "EXECUTOR", actions=actions), answers))
    client.register(peer.url)
    return peer


def accepted(client: Client, patient: Stranger) -> tuple[str, str, str]:
    """A session that waits for its operation; with the call-back's path and token."""
    session_id = client.open(one_action(client, "wait", component="patient"), '"in"')
    client.until(session_id, lambda view: view["status"] == "WAITING")
    asked = [one for one in patient.asked if one.path.endswith("/execute")]
    callback = asked[-1].context["callback"]
    assert callback["url"].startswith(client.url + "/v1/operations/")
    return session_id, callback["url"].removeprefix(client.url), callback["token"]


def test_the_first_call_back_ends_an_operation_the_same_again_is_fine_another_is_a_conflict(
    client: Client, patient: Stranger
) -> None:
    session_id, path, token = accepted(client, patient)
    body = '{"output": {"exact": 0.10, "big": 9007199254740993}}'
    bearer = f"Bearer {token}"
    assert client.post(path, body, authorization="Bearer wrong").status in (401, 403)
    assert client.post(path, body).status in (401, 403)
    assert client.post(path, '{"output": 1, "error": {}}', authorization=bearer).status == 400
    assert client.post(path, body, authorization=bearer).status == 200
    assert client.ended(session_id)["status"] == "SUCCEEDED"
    reply = client.get(f"/v1/sessions/{session_id}")
    assert compact(member(reply.text, "output")) == '{"exact":0.10,"big":9007199254740993}'
    assert client.post(path, body, authorization=bearer).status == 200
    other = client.post(path, '{"output": 2}', authorization=bearer)
    assert other.status == 409, other.text


def test_a_call_back_may_report_an_error(client: Client, patient: Stranger) -> None:
    session_id, path, token = accepted(client, patient)
    failed = {"code": "NOT_FOUND", "reason": "NO_SUCH_ACCOUNT", "message": "there is none",
              "side_effect": "NONE"}  # fmt: skip
    reply = client.post(path, {"error": failed}, authorization=f"Bearer {token}")
    assert reply.status == 200, reply.text
    view = client.ended(session_id)
    assert view["status"] == "FAILED"
    assert view["error"]["reason"] == "NO_SUCH_ACCOUNT"


def test_a_token_belongs_to_one_call_only(client: Client, patient: Stranger) -> None:
    first, _, token = accepted(client, patient)
    second, path, _ = accepted(client, patient)
    reply = client.post(path, '{"output": 1}', authorization=f"Bearer {token}")
    assert reply.status in (401, 403), reply.text
    assert client.session(second)["status"] == "WAITING"
    for session_id in (first, second):
        client.post(f"/v1/sessions/{session_id}/cancel")
