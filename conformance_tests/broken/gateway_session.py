"""Broken gateways for SPEC sections 6.4 to 6.10: events, steps by hand, feedback, the house."""

import re
from dataclasses import replace

from conformance_tests.broken import rules
from conformance_tests.broken.epoch import EPOCH
from conformance_tests.broken.gateway import BrokenGateway
from conformance_tests.broken.gateway_api import NOT_FOUND
from conformance_tests.broken.http_layer import Forward, Reply, Request, Rule
from conformance_tests.broken.meant import (
    at,
    below,
    events,
    holds,
)
from conformance_tests.broken.rules import (
    INVALID,
    after,
    answer_text,
    answered,
    before,
    error,
    instead,
    put,
    saying,
)

steps = below("steps")
feedback = below("feedback")


def other_events_after_restart() -> Rule:
    """A stream that was read before a restart is told otherwise after it."""
    first: dict[str, int] = {}

    async def rule(request: Request, forward: Forward) -> Reply:
        reply = await forward(request)
        if not events(request) or first.setdefault(request.path, EPOCH.number) == EPOCH.number:
            return reply
        return replace(reply, body=re.sub(rb"event: \w+", b"event: Other", reply.body, count=1))

    return rule


EVENTS = (
    BrokenGateway(
        requirement="GWY-040",
        does="counts events from 0",
        because=r"ids_count_from_one: ids \[0, 2",
        client=answer_text(
            lambda r: events(r) and "last-event-id" not in r.headers, b"id: 1\n", to=b"id: 0\n"
        ),
    ),
    BrokenGateway(
        requirement="GWY-041",
        does="begins from the first event",
        because=r"at: events/0/id: expected 2, got 1",
        client=rules.request_header(
            lambda r: events(r) and r.headers.get("last-event-id") == "1", "last-event-id", to=None
        ),
    ),
    BrokenGateway(
        requirement="GWY-042",
        does="opens an empty stream after the end",
        because=r"status: expected status 204, got 200",
        client=answered(
            lambda r, came: events(r) and came.status == 204,
            Reply(status=200, headers={"content-type": "text/event-stream"}),
        ),
    ),
    BrokenGateway(
        requirement="GWY-043",
        does="does not say that events have expired",
        because=r"status: expected status 410, got 404",
        client=answered(lambda r, came: events(r) and came.status == 410, NOT_FOUND),
    ),
    BrokenGateway(
        requirement="GWY-044",
        does="tells events otherwise after a restart",
        because=r"at: events: expected",
        client=other_events_after_restart,
    ),
)


def does_steps_again() -> Rule:
    """The second time, a step_key is taken for another."""
    seen: set[str] = set()

    async def rule(request: Request, forward: Forward) -> Reply:
        tree = request.tree
        key = f"{request.path} {tree.get('step_key')}"
        if steps(request) and tree.get("step_key") and key in seen:
            return await forward(request.with_tree({**tree, "step_key": "again"}))
        if steps(request):
            seen.add(key)
        return await forward(request)

    return rule


def judges_again() -> Rule:
    """The second time, a feedback_id is taken for another."""
    seen: set[str] = set()

    async def rule(request: Request, forward: Forward) -> Reply:
        tree = request.tree
        id_ = str(tree.get("feedback_id", ""))
        if feedback(request) and id_ in seen:
            return await forward(request.with_tree({**tree, "feedback_id": f"{id_}x"}))
        if feedback(request) and id_:
            seen.add(id_)
        return await forward(request)

    return rule


TAKEN = saying({"feedback_id": "f", "state_version": "1.1.1"}, http=201)

STEPS = (
    BrokenGateway(
        requirement="GWY-050",
        does="sends other arguments than the step has",
        because=r"at: calls/0/arguments: expected \{'n': 1\}, got \{'n': 2\}",
        client=before(
            lambda r: steps(r) and '"n":1' in r.body.decode() and b".act" in r.body,
            put("payload/arguments/n", 2),
        ),
    ),
    BrokenGateway(
        requirement="GWY-051",
        does="answers a running step with 200",
        because=r"status: expected status 202, got 200",
        client=rules.status(lambda r: steps(r) and r.headers.get("prefer") == "wait=0", 200),
    ),
    BrokenGateway(
        requirement="GWY-052",
        does="runs a step again",
        because=r"at: count: expected 1, got 2",
        client=does_steps_again,
    ),
    BrokenGateway(
        requirement="GWY-053",
        does="has its own code for a step by hand",
        because=r"code: expected code FAILED_PRECONDITION, got HTTP 400 INVALID_ARGUMENT",
        client=answered(lambda r, came: steps(r) and came.status in {400, 409}, INVALID),
    ),
    BrokenGateway(
        requirement="GWY-054",
        does="ends a session with another output",
        because=r"at: output: expected \{'done': 1\}, got \{'done': 2\}",
        client=before(holds(below("finish"), b'"done"'), put("output/done", 2)),
    ),
    BrokenGateway(
        requirement="GWY-060",
        does="takes no feedback after the end",
        because=r"status: expected status 201, got 409",
        client=instead(
            lambda r: feedback(r) and r.tree.get("kind") == "COMMENT",
            error("FAILED_PRECONDITION", "SESSION_ENDED", http=409),
        ),
    ),
    BrokenGateway(
        requirement="GWY-061",
        does="does not count feedback",
        because=r"at: state_version: .* the third counter did not grow",
        client=instead(lambda r: feedback(r) and r.tree.get("score") == 4, TAKEN),
    ),
    BrokenGateway(
        requirement="GWY-062",
        does="takes feedback on anything",
        because=r"status: expected a 4xx, got success",
        client=instead(holds(feedback, b'"nothing"'), TAKEN),
    ),
    BrokenGateway(
        requirement="GWY-063",
        does="counts the same feedback twice",
        because=r"at: state_version: expected",
        client=judges_again,
    ),
    BrokenGateway(
        requirement="GWY-070",
        does="serves no metrics",
        because=r"status: expected status 200, got 404",
        client=instead(at("GET", "/metrics"), NOT_FOUND),
    ),
    BrokenGateway(
        requirement="GWY-071",
        does="describes another API",
        because=r"openapi_as_in_the_spec: it is not openapi/gateway.v1.json",
        client=after(at("GET", "/openapi.json"), put("info/title", "Another")),
    ),
)

GATEWAYS = (*EVENTS, *STEPS)
