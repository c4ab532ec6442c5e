"""Broken gateways for SPEC sections 3 to 5: plans, calls, verdicts, cards, idempotency, errors."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from conformance_tests.broken import rules
from conformance_tests.broken.gateway import BrokenGateway
from conformance_tests.broken.http_layer import Forward, Json, Reply, Request, Rule
from conformance_tests.broken.meant import (
    at,
    component,
    ear,
    in_arguments,
    opens,
    opens_with,
    reads,
    registers,
    trajectory,
)
from conformance_tests.broken.rules import after, answer_text, both, do, drop, error, put
from conformance_tests.messages.tree import Tree
from conformance_tests.stage.actors import Heard


def _goals(tree: Json) -> list[Json]:
    found: list[Json] = tree.get("plan", {}).get("sub_goals", [])
    return found


def _by_id(goals: list[Json]) -> dict[str, Json]:
    return {str(goal.get("id")): goal for goal in goals}


def _one_of_two(tree: Json) -> None:
    goals = _goals(tree)
    if len(goals) == 2 and goals[0]["id"] == goals[1]["id"]:
        goals.pop()


def _goal_free(name: str, beside: str) -> rules.Change:
    """A sub-goal of plans that also have another loses what it depends on."""

    def change(tree: Json) -> None:
        goals = _by_id(_goals(tree))
        if name in goals and beside in goals:
            goals[name].pop("depends_on", None)

    return change


def _pointer_mended(tree: Json) -> None:
    for goal in _goals(tree):
        for binding in goal.get("bindings", []):
            if binding.get("pointer") == "/nothing":
                binding["pointer"] = "/v"


def _when_mended(tree: Json) -> None:
    for goal in _goals(tree):
        for one in goal.get("when", []):
            one["value"] = 1


def _without(name: str) -> Callable[[Heard], Heard]:
    return lambda heard: replace(heard, tree={k: v for k, v in heard.tree.items() if k != name})


def _not_marked(heard: Heard) -> Heard:
    calls = cast("list[Tree]", heard.tree.get("calls", []))
    kept = [{k: v for k, v in call.items() if k != "truncated"} for call in calls]
    return replace(heard, tree={**heard.tree, "calls": cast("Any", kept)})


def _first_action(tree: Json) -> Json:
    actions: list[Json] = tree.get("actions") or [{}]
    return actions[0]


def _without_schema(name: str, part: str) -> rules.Change:
    def change(tree: Json) -> None:
        if part in str(_first_action(tree).get(name)):
            _first_action(tree).pop(name)

    return change


PLAN = (
    BrokenGateway(
        requirement="PLN-006",
        does="mends a plan with an id twice",
        because=r"at: status: expected 'FAILED', got 'SUCCEEDED'",
        stage=after(do("plan"), _one_of_two),
    ),
    BrokenGateway(
        requirement="PLN-007",
        does="does not wait for what a sub-goal depends on",
        because=r"at: calls/0/arguments/n: expected 1, got 2",
        stage=after(do("plan"), _goal_free("later", beside="first")),
    ),
    BrokenGateway(
        requirement="PLN-008",
        does="splices numbers in its own form",
        because=r"spliced_bytes: arguments",
        ear=ear("execute", in_arguments(b'"x":{"n":0.10', b'"x":{"n":0.1')),
    ),
    BrokenGateway(
        requirement="PLN-009",
        does="reads something else where a pointer leads nowhere",
        because=r"at: status: expected 'FAILED', got 'SUCCEEDED'",
        stage=after(do("plan"), _pointer_mended),
    ),
    BrokenGateway(
        requirement="PLN-010",
        does="takes strings for templates",
        because=r"at: calls/0/arguments: expected",
        ear=ear("execute", in_arguments(b"{{input}}", b"5")),
    ),
    BrokenGateway(
        requirement="PLN-011",
        does="does not look at when",
        because=r"at: count: expected 1, got 2",
        stage=after(do("plan"), _when_mended),
    ),
    BrokenGateway(
        requirement="PLN-012",
        does="changes a direct answer",
        because=r"at: output: expected \{'direct': 1\}, got \{'direct': 2\}",
        client=answer_text(opens, b'{"direct":1}', to=b'{"direct":2}'),
    ),
    BrokenGateway(
        requirement="PLN-013",
        does="keeps the critique from the planner",
        because=r"at: calls/1/critique is absent",
        ear=ear("plan", _without("critique")),
    ),
    BrokenGateway(
        requirement="PLN-014",
        does="does not say that a call was cut",
        because=r"at: calls/1/calls/0/truncated is absent",
        ear=ear("plan", _not_marked),
    ),
    BrokenGateway(
        requirement="EXE-005",
        does="does not look at output_schema",
        because=r"at: status: expected 'FAILED', got 'SUCCEEDED'",
        stage=after(do("component"), _without_schema("output_schema", "other")),
    ),
    BrokenGateway(
        requirement="EXE-006",
        does="does not look at input_schema",
        because=r"at: status: expected 'FAILED', got 'SUCCEEDED'",
        stage=after(do("component"), _without_schema("input_schema", "string")),
    ),
)


class Story:
    """What a stage has seen of each session: executes, plans, verdicts."""

    def __init__(self) -> None:
        self.executes: dict[str, list[Request]] = {}
        self.plans: dict[str, int] = {}
        self.replans: dict[str, int] = {}

    @staticmethod
    def session(request: Request) -> str:
        return str(request.context.get("session_id"))

    def note(self, request: Request) -> None:
        if request.do == "execute":
            self.executes.setdefault(self.session(request), []).append(request)
        if request.do == "plan":
            self.plans[self.session(request)] = self.plans.get(self.session(request), 0) + 1


def as_new_call(request: Request, name: str) -> Request:
    """The same request as another call."""
    context = {**request.context, "call_id": f"{request.context['call_id']}{name}"}
    return request.with_tree({**request.tree, "context": context})


def no_retry() -> Rule:
    """A RETRY of what did nothing is taken for ACCEPT."""

    async def rule(request: Request, forward: Forward) -> Reply:
        reply = await forward(request)
        calls = request.tree.get("calls") or [{}]
        wanted = request.do == "reflect" and reply.tree.get("verdict") == "RETRY"
        if wanted and calls[0].get("side_effect") != "PERFORMED":
            return reply.with_tree({"verdict": "ACCEPT", "output": 1})
        return reply

    return rule


def unsafe_retry() -> Rule:
    """What was performed is sent again because a reflector said so."""
    story = Story()

    async def rule(request: Request, forward: Forward) -> Reply:
        story.note(request)
        reply = await forward(request)
        calls = request.tree.get("calls") or [{}]
        wanted = request.do == "reflect" and reply.tree.get("verdict") == "RETRY"
        if wanted and calls[0].get("side_effect") == "PERFORMED":
            last = story.executes[story.session(request)][-1]
            await forward(as_new_call(last, "r"))
        return reply

    return rule


def gives_in() -> Rule:
    """The second REPLAN of a session is taken for ACCEPT."""
    story = Story()

    async def rule(request: Request, forward: Forward) -> Reply:
        reply = await forward(request)
        if request.do != "reflect" or reply.tree.get("verdict") != "REPLAN":
            return reply
        session = story.session(request)
        story.replans[session] = story.replans.get(session, 0) + 1
        if story.replans[session] < 2:
            return reply
        return reply.with_tree({"verdict": "ACCEPT", "output": 1})

    return rule


VERDICTS = (
    BrokenGateway(
        requirement="RFL-004",
        does="fails an accepted session",
        because=r"at: status: expected 'SUCCEEDED', got 'FAILED'",
        client=after(opens_with(input={"judged": "well"}), put("status", "FAILED")),
    ),
    BrokenGateway(
        requirement="RFL-005",
        does="keeps the critique to itself",
        because=r"at: error/message: .* lacks 'No use",
        client=answer_text(opens, b"No use", to=b"Stopped"),
    ),
    BrokenGateway(
        requirement="RFL-006",
        does="takes RETRY for ACCEPT",
        because=r"at: count: expected 2, got 1",
        stage=no_retry,
    ),
    BrokenGateway(
        requirement="RFL-007",
        does="does again what was performed",
        because=r"at: count: expected 1, got 2",
        stage=unsafe_retry,
    ),
    BrokenGateway(
        requirement="RFL-008",
        does="gives in at the second REPLAN",
        because=r"at: status: expected 'FAILED', got 'SUCCEEDED'",
        stage=gives_in,
    ),
    BrokenGateway(
        requirement="ANS-003",
        does="loses llm_calls of errors",
        because=r"both_llm_calls: llm_calls \['lost', 'second'\]",
        client=answer_text(trajectory, b'"first"', to=b'"lost"'),
    ),
)


def _named(tree: Json) -> None:
    if not tree.get("name"):
        tree["name"] = "nameless"


def _read_natural(tree: Json) -> None:
    action = _first_action(tree)
    bare = "effect" not in action and "input_schema" not in action
    if action and bare and len(tree["actions"]) == 1:
        action.update(effect="READ", idempotency="NATURAL")


def sends_again(reason: str) -> rules.Maker:
    """A call that failed so is sent once more."""

    async def rule(request: Request, forward: Forward) -> Reply:
        reply = await forward(request)
        if request.do == "execute" and reply.error.get("reason") == reason:
            attempt = request.context.get("attempt", 1) + 1
            context = {**request.context, "attempt": attempt}
            return await forward(request.with_tree({**request.tree, "context": context}))
        return reply

    return lambda: rule


def sends_at_once(after_ms: int) -> rules.Maker:
    """A call that may be repeated only later is sent again at once."""

    async def rule(request: Request, forward: Forward) -> Reply:
        reply = await forward(request)
        if request.do == "execute" and reply.error.get("retry_after_ms") == after_ms:
            context = {**request.context, "attempt": 2}
            return await forward(request.with_tree({**request.tree, "context": context}))
        return reply

    return lambda: rule


CARDS = (
    BrokenGateway(
        requirement="CRD-006",
        does="registers a card without a name",
        because=r"status: status 201",
        stage=after(do("component"), _named),
    ),
    BrokenGateway(
        requirement="CRD-007",
        does="reads an action that says nothing as READ",
        because=r"action_reads_as_careful|at: count: expected 1",
        stage=after(do("component"), _read_natural),
    ),
    BrokenGateway(
        requirement="CRD-008",
        does="digests something else",
        because=r"digest_of_the_card: digest 0{64}",
        client=after(component, put("digest", "0" * 64), ok=True),
    ),
    BrokenGateway(
        requirement="IDM-008",
        does="sends a NONE action again",
        because=r"at: count: expected 1, got 2",
        stage=sends_again("JAMMED"),
    ),
    BrokenGateway(
        requirement="IDM-009",
        does="sends a BY_KEY call after its time",
        because=r"at: count: expected 1, got 2",
        stage=sends_again("LATE_KEY"),
    ),
)


def _unknown(request: Request) -> bool:
    """A path nobody has."""
    return request.path == "/v1/no-such-thing"


def _not_said(request: Request) -> bool:
    return opens(request) and request.body == b"{}"


async def _blames_itself(request: Request, forward: Forward) -> Reply:
    reply = await forward(request)
    foreign = registers(request) and b"may not serve" in reply.body
    return error("INTERNAL", "INTERNAL", http=500) if foreign else reply


async def _tells_token(request: Request, forward: Forward) -> Reply:
    reply = await forward(request)
    token = request.headers.get("authorization", "")
    if reply.ok or "acp_secret" not in token:
        return reply
    tree = reply.tree
    tree["error"]["details"] = {"token": token}
    return reply.with_tree(tree)


def _rows_unknown(tree: Json) -> None:
    for row in tree["calls"]:
        row["side_effect"] = "UNKNOWN"


ERRORS = (
    BrokenGateway(
        requirement="ERR-001",
        does="answers an error without a reason",
        because=r"error_has_its_fields: the error has no reason",
        client=after(lambda r: reads(r) and r.path.endswith("QAZ"), drop("error/reason")),
    ),
    BrokenGateway(
        requirement="ERR-002",
        does="has a code of its own",
        because=r"code_is_canonical: 'NO_METHOD' is no canonical code",
        client=after(
            at("DELETE", "/v1/sessions"),
            both(put("error/code", "NO_METHOD"), put("error/reason", "WRONG_METHOD")),
        ),
    ),
    BrokenGateway(
        requirement="ERR-003",
        does="writes a reason as a sentence",
        because=r"reason_is_upper_snake: reason 'not found'",
        client=after(_unknown, put("error/reason", "not found")),
    ),
    BrokenGateway(
        requirement="ERR-004",
        does="gives a reason of the table another code",
        because=r"code_of_the_row: NOT_FOUND with ABORTED",
        client=after(_unknown, put("error/code", "ABORTED")),
    ),
    BrokenGateway(
        requirement="ERR-005",
        does="says nothing",
        because=r"message_says_something: the message is empty",
        client=after(_unknown, put("error/message", "")),
    ),
    BrokenGateway(
        requirement="ERR-006",
        does="blames itself for a foreign name",
        because=r"not_a_server_fault: status 500",
        client=rules.plainly(_blames_itself),
    ),
    BrokenGateway(
        requirement="ERR-007",
        does="refuses without saying that nothing was done",
        because=r"refusal_did_nothing: side effect None",
        client=after(_not_said, drop("error/side_effect")),
    ),
    BrokenGateway(
        requirement="ERR-009",
        does="does not know what a READ action did",
        because=r"absent_side_effect_of_an_error: READ action: side effect UNKNOWN",
        client=after(trajectory, _rows_unknown, sees=b"OUT_OF_PAPER"),
    ),
    BrokenGateway(
        requirement="ERR-010",
        does="takes the blame for a proxy's page",
        because=r"at: error/boundary: expected one of COMPONENT, got 'GATEWAY'",
        client=after(opens, put("error/boundary", "GATEWAY"), sees=b"503"),
    ),
    BrokenGateway(
        requirement="ERR-011",
        does="retries at once",
        because=r"retried_after_600_ms: the second came \d+ ms after the first",
        stage=sends_at_once(600),
    ),
    BrokenGateway(
        requirement="ERR-013",
        does="retries what is not retryable",
        because=r"at: count: expected 1, got 2",
        stage=sends_again("BROKEN"),
    ),
    BrokenGateway(
        requirement="ERR-014",
        does="tells the token that was sent",
        because=r"lacks: the answer holds 'acp_secret",
        client=rules.plainly(_tells_token),
    ),
)

GATEWAYS = (*PLAN, *VERDICTS, *CARDS, *ERRORS)
