"""Broken gateways for operations, access, the trajectory, workflow files and the rules of runs."""

import asyncio
import re
from dataclasses import replace

from conformance_tests.broken import rules
from conformance_tests.broken.epoch import EPOCH
from conformance_tests.broken.gateway import BrokenGateway
from conformance_tests.broken.gateway_api import SOMEBODY, of_label
from conformance_tests.broken.gateway_calls import Story, as_new_call
from conformance_tests.broken.http_layer import Forward, Json, Reply, Request, Rule
from conformance_tests.broken.meant import (
    at,
    context_of,
    ear,
    holds,
    in_arguments,
    in_context,
    opens,
    opens_with,
    reads,
    registers,
    second_attempt,
    trajectory,
    with_header,
)
from conformance_tests.broken.rules import (
    after,
    answer_text,
    answered,
    do,
    drop,
    error,
    instead,
    put,
    saying,
)
from conformance_tests.stage.actors import Heard


def completes(value: int) -> rules.When:
    """A call-back with this output."""
    return lambda r: r.path.endswith(":complete") and r.tree.get("output") == {"value": value}


def waits_once() -> Rule:
    """The second time, a waiting session is running."""
    seen: set[str] = set()

    async def rule(request: Request, forward: Forward) -> Reply:
        reply = await forward(request)
        if not reads(request) or b'"status":"WAITING"' not in reply.body:
            return reply
        if request.path not in seen:
            seen.add(request.path)
            return reply
        return replace(reply, body=reply.body.replace(b'"WAITING"', b'"RUNNING"'))

    return rule


OPERATIONS = (
    BrokenGateway(
        requirement="OPN-001",
        does="takes no call-back",
        because=r"ok: expected success, got HTTP 409",
        client=instead(completes(70), error("ABORTED", "STALE_STATE", http=409)),
    ),
    BrokenGateway(
        requirement="OPN-002",
        does="answers a wrong token with 403",
        because=r"status: expected status 401 or 404, got 403",
        client=instead(completes(9), error("PERMISSION_DENIED", "PERMISSION_DENIED", http=403)),
    ),
    BrokenGateway(
        requirement="OPN-003",
        does="takes a second result",
        because=r"status: expected status 409, got 200",
        client=instead(completes(10), saying({})),
    ),
    BrokenGateway(
        requirement="OPN-007",
        does="thinks that a forgotten operation did nothing",
        because=r"at: calls/0/side_effect: expected one of UNKNOWN, got 'NONE'",
        client=after(trajectory, put("calls/0/side_effect", "NONE"), sees=b'"NOT_FOUND"'),
    ),
    BrokenGateway(
        requirement="OPN-008",
        does="does not wait for an operation",
        because=r"at: status: expected 'WAITING', got 'RUNNING'",
        client=waits_once,
    ),
    BrokenGateway(
        requirement="OPN-009",
        does="polls early",
        because=r"at: calls/0/@at_ms: only -?\d+ ms later",
        ear=ear("get_operation", lambda heard: replace(heard, at_ms=heard.at_ms - 450)),
    ),
)


async def _shows_components(request: Request, forward: Forward) -> Reply:
    reply = await forward(request)
    lists = at("GET", "/v1/components")(request)
    return saying({"components": []}) if lists and reply.status == 403 else reply


async def _tells_secret(request: Request, forward: Forward) -> Reply:
    reply = await forward(request)
    if request.path != "/v1/tokens":
        return reply
    token = request.headers.get("authorization", "").rpartition(" ")[2]
    return reply.with_tree({"tokens": [], "token": token})


ADMITTED = saying(SOMEBODY, http=201)
LISTS = at("GET", "/v1/sessions")

ACCESS = (
    BrokenGateway(
        requirement="ACC-001",
        does="asks for no token",
        because=r"status: expected status 401, got 200",
        client=instead(
            lambda r: LISTS(r) and "authorization" not in r.headers, saying({"sessions": []})
        ),
    ),
    BrokenGateway(
        requirement="ACC-002",
        does="does not look at scopes",
        because=r"status: expected status 403, got 200",
        client=rules.plainly(_shows_components),
    ),
    BrokenGateway(
        requirement="ACC-003",
        does="lets a component serve any name",
        because=r"ok: expected an error, got success",
        client=answered(lambda r, came: registers(r) and b"may not serve" in came.body, ADMITTED),
    ),
    BrokenGateway(
        requirement="ACC-004",
        does="answers to any Host",
        because=r"status: expected a 4xx, got success",
        client=rules.request_header(
            lambda r: r.headers.get("host") == "evil.example", "host", to="127.0.0.1"
        ),
    ),
    BrokenGateway(
        requirement="ACC-005",
        does="answers to any Origin",
        because=r"status: expected status 403, got 200",
        client=rules.request_header(lambda r: "origin" in r.headers, "origin", to=None),
    ),
    BrokenGateway(
        requirement="ACC-006",
        does="takes any media type",
        because=r"status: expected status 415, got 201",
        client=rules.request_header(
            lambda r: r.headers.get("content-type") == "text/plain",
            "content-type",
            to="application/json",
        ),
    ),
    BrokenGateway(
        requirement="ACC-007",
        does="dials any address",
        because=r"status: expected a 4xx, got success",
        client=instead(holds(registers, b"169.254"), ADMITTED),
    ),
    BrokenGateway(
        requirement="ACC-008",
        does="sends another Host",
        because=r"at: calls/0/@headers/host: .* is not like localhost",
        ear=ear(
            "describe",
            lambda h: with_header("host", "127.0.0.1:1")(h) if "localhost" in str(h.headers) else h,
        ),
    ),
    BrokenGateway(
        requirement="ACC-010",
        does="tells a token's secret",
        because=r"lacks: the answer holds",
        client=rules.plainly(_tells_secret),
    ),
)


def _only_first_plan(tree: Json) -> None:
    plans = tree.get("plan", [])
    ids = [one["plan"]["sub_goals"][0]["id"] for one in plans if one["plan"].get("sub_goals")]
    if ids == ["a", "b"]:
        plans.pop()


def _also_failed(tree: Json) -> None:
    tree["calls"][-1]["error"] = {"code": "UNKNOWN", "reason": "UNKNOWN", "message": "Late."}


TRAJECTORY = (
    BrokenGateway(
        requirement="TRJ-001",
        does="leaves out what the schema demands",
        because=r"trajectory_fits_its_schema: .*schema_version",
        client=answer_text(trajectory, b'"schema_version":"1.0",', to=b""),
    ),
    BrokenGateway(
        requirement="TRJ-002",
        does="numbers attempts wrongly",
        because=r"at: calls/1/attempt: expected 2, got 3",
        client=answer_text(trajectory, b'"attempt":2', to=b'"attempt":3'),
    ),
    BrokenGateway(
        requirement="TRJ-003",
        does="does not say that a call was taken over",
        because=r"one_reused_row: 0 rows are reused",
        client=answer_text(trajectory, b'"reused":true', to=b'"reused":false'),
    ),
    BrokenGateway(
        requirement="TRJ-004",
        does="keeps no decisions",
        because=r"at: decisions is absent",
        client=after(trajectory, drop("decisions"), sees=b'"decisions":[{'),
    ),
    BrokenGateway(
        requirement="TRJ-005",
        does="has chances that do not sum up",
        because=r"chances_sum_to_one: the probabilities sum to",
        client=after(
            trajectory, put("decisions/0/options/0/probability", 0.123), sees=b"OVERLOADED"
        ),
    ),
    BrokenGateway(
        requirement="TRJ-006",
        does="does not name the guard",
        because=r"masked_names_its_guard: .* masked by nothing",
        client=answer_text(trajectory, b'"masked_by"', to=b'"hidden_by"'),
    ),
    BrokenGateway(
        requirement="TRJ-007",
        does="keeps the first plan only",
        because=r"at: plan: expected 2 items, got 1",
        client=after(trajectory, _only_first_plan, sees=b"Not yet."),
    ),
    BrokenGateway(
        requirement="TRJ-008",
        does="rewards what nobody judged with 0",
        # The deadline of the session or that of its call may be over first: lawful, both.
        because=r"unjudged_is_null: .* is 0 though NOT_(REACHED|JUDGED)",
        client=after(trajectory, put("rewards/quality/0/value", 0), sees=b'"validity"'),
    ),
    BrokenGateway(
        requirement="TRJ-009",
        does="does not say what is missing",
        because=r"at: gaps/0/what is absent",
        client=after(trajectory, drop("gaps"), sees=b'"gaps"'),
    ),
    BrokenGateway(
        requirement="TRJ-010",
        does="keeps numbers in its own form",
        because=r"text: calls/0/arguments: sent",
        client=answer_text(trajectory, b"[1e5,", to=b"[100000.0,"),
    ),
    BrokenGateway(
        requirement="TRJ-011",
        does="lets a late answer change the outcome",
        because=r"at: calls/0/error/reason: expected 'TIMEOUT', got 'LATE'",
        client=after(trajectory, put("calls/0/error/reason", "LATE"), sees=b'"TIMEOUT"'),
    ),
)


def _steps_swapped(heard: Heard) -> Heard:
    other = {"first": "second", "second": "first"}.get(str(context_of(heard).get("step")))
    return in_context(step=other)(heard) if other else heard


def runs_what_is_unclear() -> Rule:
    """A session of a workflow that was refused as unclear succeeds."""
    refused: set[str] = set()

    async def rule(request: Request, forward: Forward) -> Reply:
        reply = await forward(request)
        if request.method == "PUT" and b"is offered by" in reply.body:
            refused.add(request.path.split("/")[3])
        if opens(request) and request.tree.get("workflow") in refused:
            return saying({"session_id": "0" * 26, "status": "SUCCEEDED"})
        return reply

    return rule


def _goal_b_free(tree: Json) -> None:
    goals = tree.get("plan", {}).get("sub_goals", [])
    if [goal.get("id") for goal in goals] == ["a", "b", "c"] and not goals[2].get("depends_on"):
        goals[1].pop("depends_on", None)


VALIDATES = at("POST", "/v1/workflows:validate")

FILES = (
    BrokenGateway(
        requirement="WFL-001",
        does="reads YAML only",
        because=r"status: expected status 201, got 415",
        client=instead(
            lambda r: r.method == "PUT" and r.headers.get("content-type") == "application/json",
            error("INVALID_ARGUMENT", "UNSUPPORTED_MEDIA_TYPE", http=415),
        ),
    ),
    BrokenGateway(
        requirement="WFL-002",
        does="runs steps in its own order",
        because=r"at: calls/0/context/step: expected 'second', got 'first'",
        ear=ear("execute", _steps_swapped),
    ),
    BrokenGateway(
        requirement="WFL-003",
        does="does not say that a step was skipped",
        because=r"at: steps/0: expected",
        client=answer_text(opens_with(input={"go": False}), b"SKIPPED", to=b"SUCCEEDED"),
    ),
    BrokenGateway(
        requirement="WFL-004",
        does="copies numbers in its own form",
        because=r"holds: calls/0/arguments",
        ear=ear("execute", in_arguments(b'"bare":0.10', b'"bare":0.1')),
    ),
    BrokenGateway(
        requirement="WFL-005",
        does="does not say in which line a mapping failed",
        because=r"mentions: 'line 8' is not mentioned",
        client=answer_text(opens, b"line 8", to=b"somewhere"),
    ),
    BrokenGateway(
        requirement="WFL-006",
        does="answers something else than the file's output",
        because=r"at: output: expected \{'a': 5\}, got \{'a': 6\}",
        client=answer_text(opens_with(input={"a": 5}), b'"output":{"a":5}', to=b'"output":{"a":6}'),
    ),
    BrokenGateway(
        requirement="WFL-007",
        does="succeeds though a step failed",
        because=r"at: status: expected 'FAILED', got 'SUCCEEDED'",
        client=after(opens_with(input="paper"), put("status", "SUCCEEDED")),
    ),
    BrokenGateway(
        requirement="WFL-008",
        does="fails a step when any of its sub-goals failed",
        because=r"at: status: expected 'SUCCEEDED', got 'FAILED'",
        client=after(opens_with(input="some"), put("status", "FAILED")),
    ),
    BrokenGateway(
        requirement="WFL-009",
        does="runs what depends on a failed sub-goal",
        because=r"at: count: expected 2, got 3",
        stage=after(do("plan"), _goal_b_free),
    ),
    BrokenGateway(
        requirement="WFL-010",
        does="takes unknown keys",
        because=r"at: valid: expected False, got True",
        client=instead(holds(VALIDATES, b"colour"), saying({"valid": True})),
    ),
    BrokenGateway(
        requirement="WFL-011",
        does="takes expressions of any length",
        because=r"at: valid: expected False, got True",
        client=instead(lambda r: VALIDATES(r) and len(r.body) > 4096, saying({"valid": True})),
    ),
    BrokenGateway(
        requirement="WFL-012",
        does="computes with what lost precision",
        because=r"at: status: expected 'FAILED', got 'SUCCEEDED'",
        client=after(holds(opens, b'"n":123456789012345678.90'), put("status", "SUCCEEDED")),
    ),
    BrokenGateway(
        requirement="WFL-013",
        does="chooses between two components by itself",
        because=r"any_of: expected an error, got success",
        client=runs_what_is_unclear,
    ),
)


def does_again_after_replan() -> Rule:
    """With each new plan of a session its last call is done again."""
    story = Story()

    async def rule(request: Request, forward: Forward) -> Reply:
        story.note(request)
        session = story.session(request)
        if request.do == "plan" and story.plans[session] > 1 and story.executes.get(session):
            last = story.executes[session][-1]
            await forward(as_new_call(last, "r"))
        return await forward(request)

    return rule


def changes_replicas() -> Rule:
    """Every second call of a session goes to the other replica, if there is one."""
    story = Story()

    async def rule(request: Request, forward: Forward) -> Reply:
        story.note(request)
        number = len(story.executes.get(story.session(request), []))
        if request.do != "execute" or request.context.get("step") != "act" or number % 2:
            return await forward(request)
        path = re.sub(r"^/([cd])-", lambda m: f"/{'d' if m[1] == 'c' else 'c'}-", request.path)
        reply = await forward(replace(request, path=path))
        return reply if reply.status != 404 else await forward(request)

    return rule


def sends_after_restart() -> Rule:
    """A call that may have been sent is sent again once the gateway was restarted."""
    waiting: list[asyncio.Task[None]] = []

    async def rule(request: Request, forward: Forward) -> Reply:
        if request.do == "execute" and request.context.get("labels") == {"kept": "unsure"}:
            waiting.append(asyncio.create_task(again(request, forward)))
        return await forward(request)

    async def again(request: Request, forward: Forward) -> None:
        begun = EPOCH.number
        for _ in range(600):
            if EPOCH.number > begun:
                await forward(as_new_call(request, "r"))
                return
            await asyncio.sleep(0.05)

    return rule


RUNS = (
    BrokenGateway(
        requirement="RUN-001",
        does="maps a second time for a second attempt",
        because=r"text: calls/1/arguments: sent",
        ear=ear("execute", second_attempt(in_arguments(b"0.10", b"0.1"))),
    ),
    BrokenGateway(
        requirement="RUN-002",
        does="does again in a later loop what is done",
        because=r"at: count: expected 1, got 2",
        stage=does_again_after_replan,
    ),
    BrokenGateway(
        requirement="RUN-003",
        does="shows an attempt that succeeded and failed",
        because=r"one_outcome_per_attempt: a row has output and error",
        client=after(trajectory, _also_failed, sees=b'"attempt":2'),
    ),
    BrokenGateway(
        requirement="RUN-004",
        does="is cancelled while a call still runs",
        because=r"at: calls/0/error/reason is absent",
        client=after(trajectory, drop("calls/0/error"), sees=b"Stopped as asked."),
    ),
    BrokenGateway(
        requirement="RUN-005",
        does="does not tell that another version served",
        because=r"at: deviations/0/intended is absent",
        client=answer_text(reads, b'"deviations"', to=b'"differences"'),
    ),
    BrokenGateway(
        requirement="RUN-006",
        does="changes replicas within a session",
        because=r"at: count: expected one of 0 or 3",
        stage=changes_replicas,
    ),
    BrokenGateway(
        requirement="RUN-007",
        does="gives up what ran when it was killed",
        because=r"at: status: expected 'SUCCEEDED', got 'FAILED'",
        client=of_label("going", saying({"session_id": "0" * 26, "status": "FAILED"})),
    ),
    BrokenGateway(
        requirement="RUN-008",
        does="sends again what may have been sent",
        because=r"at: count: expected 1, got 2",
        stage=sends_after_restart,
    ),
)

GATEWAYS = (*OPERATIONS, *ACCESS, *TRAJECTORY, *FILES, *RUNS)
