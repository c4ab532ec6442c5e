"""Broken gateways for SPEC section 2: what the context of a call says."""

from collections.abc import Callable

from conformance_tests.broken.gateway import BrokenGateway
from conformance_tests.broken.http_layer import Forward, Reply, Request, Rule
from conformance_tests.broken.meant import (
    below,
    context_of,
    ear,
    in_context,
    opens_with,
    second_attempt,
    with_header,
)
from conformance_tests.broken.rules import (
    after,
    put,
)
from conformance_tests.stage.actors import Heard


def _other_form(heard: Heard) -> Heard:
    session = "9" + str(context_of(heard)["session_id"])[1:]
    lineage = session + str(context_of(heard)["lineage_id"])[26:]
    return in_context(session_id=session, lineage_id=lineage)(heard)


def _other_lineage(heard: Heard) -> Heard:
    return in_context(lineage_id=f"{context_of(heard)['session_id']}.none")(heard)


def _other_call(heard: Heard) -> Heard:
    call_id = f"{context_of(heard)['call_id']}x"
    return with_header("idempotency-key", call_id)(in_context(call_id=call_id)(heard))


def _labelled_tenant(heard: Heard) -> Heard:
    labels = context_of(heard).get("labels")
    tenant = labels.get("tenant") if isinstance(labels, dict) else None
    return in_context(tenant=tenant)(heard) if tenant else heard


def _no_colour(heard: Heard) -> Heard:
    return in_context(labels=None)(heard) if "colour" in str(context_of(heard)) else heard


def _bare_workflow(heard: Heard) -> Heard:
    return in_context(workflow=str(context_of(heard)["workflow"]).partition("@")[0])(heard)


def _http_only(change: Callable[[Heard], Heard]) -> Callable[[Heard], Heard]:
    return lambda heard: change(heard) if heard.binding == "http" else heard


class _Calls:
    """The calls of each session, as a stage sees them."""

    def __init__(self) -> None:
        self.of_session: dict[str, set[str]] = {}

    def note(self, request: Request) -> set[str]:
        context = request.context
        known = self.of_session.setdefault(str(context.get("session_id")), set())
        known.add(str(context.get("call_id")))
        return known


async def _again(request: Request, forward: Forward, *, attempt: int) -> Reply:
    tree = request.tree
    return await forward(
        request.with_tree({**tree, "context": {**request.context, "attempt": attempt}})
    )


def retries_without_end() -> Rule:
    """Beyond the session's budget, once it has many calls."""
    calls = _Calls()

    async def rule(request: Request, forward: Forward) -> Reply:
        reply = await forward(request)
        if request.do == "execute" and len(calls.note(request)) > 3 and reply.status == 503:
            for attempt in range(11, 17):
                await _again(request, forward, attempt=attempt)
        return reply

    return rule


def sends_four_times() -> Rule:
    """Beyond the call's own limit, where it is the only one of its session."""
    calls = _Calls()

    async def rule(request: Request, forward: Forward) -> Reply:
        reply = await forward(request)
        alone = request.do == "execute" and len(calls.note(request)) == 1
        if alone and request.context.get("attempt") == 3 and reply.status == 503:
            return await _again(request, forward, attempt=4)
        return reply

    return rule


def counters_go_back() -> Rule:
    """Once a score of 1 was given."""
    judged: set[str] = set()

    async def rule(request: Request, forward: Forward) -> Reply:
        reply = await forward(request)
        session = request.path.split("/")[3] if request.path.count("/") > 2 else ""
        if below("feedback")(request) and request.tree.get("score") == 1:
            judged.add(session)
        if request.method == "GET" and session in judged and request.path.count("/") == 3:
            return reply.with_tree({**reply.tree, "state_version": "0.0.1"})
        return reply

    return rule


CONTEXT = (
    BrokenGateway(
        requirement="CTX-001",
        does="numbers sessions otherwise",
        because=r"session_id_form: session_id '9",
        ear=ear("observe", _other_form),
    ),
    BrokenGateway(
        requirement="CTX-002",
        does="gives ids in no order",
        because=r"after: session_id: 0{26} does not come after",
        client=after(opens_with(labels={"order": "later"}), put("session_id", "0" * 26)),
    ),
    BrokenGateway(
        requirement="CTX-003",
        does="writes lineage_id otherwise",
        because=r"lineage_id_form: lineage_id '.*none'",
        ear=ear("observe", _other_lineage),
    ),
    BrokenGateway(
        requirement="CTX-004",
        does="gives each attempt its own call_id",
        because=r"attempts_of_one_call: 3 attempts with 2 different call_id",
        ear=ear("execute", second_attempt(_other_call)),
    ),
    BrokenGateway(
        requirement="CTX-005",
        does="counts attempts wrongly",
        because=r"attempts_grow: attempts \[1, 1",
        ear=ear("execute", second_attempt(in_context(attempt=1))),
    ),
    BrokenGateway(
        requirement="CTX-006",
        does="digests something else",
        because=r"digest_of_the_body: body_digest 0{64}",
        ear=ear("execute", in_context(body_digest="0" * 64)),
    ),
    BrokenGateway(
        requirement="CTX-011",
        does="gives more time than is left",
        because=r"at: calls/0/context/timeout_ms: 99000 is more than 10000",
        ear=ear("execute", _http_only(in_context(timeout_ms=99_000))),
    ),
    BrokenGateway(
        requirement="CTX-012",
        does="lends more with each attempt",
        because=r"budget_does_not_grow: retry_budget",
        ear=ear("execute", second_attempt(in_context(retry_budget=50))),
    ),
    BrokenGateway(
        requirement="CTX-013",
        does="retries beyond the session's budget",
        because=r"retries_within_eight: \d+ retries in one session",
        stage=retries_without_end,
    ),
    BrokenGateway(
        requirement="CTX-014",
        does="sends a call four times",
        because=r"at: count: 4 is more than 3",
        stage=sends_four_times,
    ),
    BrokenGateway(
        requirement="CTX-015",
        does="takes the tenant from a label",
        because=r"tenant_is_not_the_written_one: the tenant is what the caller wrote",
        ear=ear("execute", _labelled_tenant),
    ),
    BrokenGateway(
        requirement="CTX-016",
        does="forgets labels",
        because=r"at: calls/0/context/labels/colour is absent",
        ear=ear("execute", _no_colour),
    ),
    BrokenGateway(
        requirement="CTX-017",
        does="has one counter",
        because=r"state_version_form: state_version '1'",
        ear=ear("observe", in_context(state_version="1")),
    ),
    BrokenGateway(
        requirement="CTX-018",
        does="counts backwards",
        because=r"at: state_version: 0.0.1 after",
        client=counters_go_back,
    ),
    BrokenGateway(
        requirement="CTX-019",
        does="names no version of the workflow",
        because=r"at: calls/0/context/workflow: expected",
        ear=ear("execute", _bare_workflow),
    ),
)

GATEWAYS = CONTEXT
