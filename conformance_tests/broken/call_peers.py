"""Peers that break one rule of SPEC sections 2 and 3: context, plan, execute, observe, reflect."""

from typing import Any

from conformance_tests.broken import rules
from conformance_tests.broken.http_layer import Json, Request
from conformance_tests.broken.peer import BrokenPeer
from conformance_tests.broken.rules import action, after, all_of, before, context_is, do, error, put


def _lacks(name: str) -> rules.When:
    return lambda r: bool(r.context.get("attempt")) and name not in r.context


def _goals(tree: Json) -> list[Json]:
    found: list[Json] = tree.get("plan", {}).get("sub_goals", [])
    return found


def _same_id(tree: Json) -> None:
    for goal in _goals(tree):
        goal.update(id="first", depends_on=[], bindings=[])


def _cycle(tree: Json) -> None:
    if len(_goals(tree)) > 1:
        _goals(tree)[0]["depends_on"] = ["second"]


def _forgets_depends_on(tree: Json) -> None:
    for goal in _goals(tree):
        goal["depends_on"] = []


def _recall(request: Request) -> Json:
    found: Json = request.tree.get("recall") or {}
    return found


def _observes(request: Request, count: int) -> bool:
    return request.do == "observe" and len(request.tree.get("observations", [])) == count


def _reflects(status: str) -> rules.When:
    def when(request: Request) -> bool:
        calls: list[Any] = request.tree.get("calls", [])
        return request.do == "reflect" and any(call.get("status") == status for call in calls)

    return when


CONTEXT = (
    BrokenPeer(
        requirement="CTX-007",
        does="takes a call without lineage_id",
        because=r"code: expected code INVALID_ARGUMENT, got success",
        http=before(_lacks("lineage_id"), put("context/lineage_id", "none")),
    ),
    BrokenPeer(
        requirement="CTX-008",
        does="takes a call without time",
        because=r"code: expected code INVALID_ARGUMENT, got success",
        http=before(context_is("timeout_ms", 0), put("context/timeout_ms", 5000)),
    ),
    BrokenPeer(
        requirement="CTX-009",
        does="takes attempt 0",
        because=r"code: expected code INVALID_ARGUMENT, got success",
        http=before(context_is("attempt", 0), put("context/attempt", 1)),
    ),
    BrokenPeer(
        requirement="CTX-010",
        does="takes longer than it is given",
        because=r"within_ms: answered after 4\d\d\d ms",
        http=rules.in_turn(
            rules.request_header(action("acp.test.sleep", ms=6000), "acp-timeout-ms", to=None),
            before(action("acp.test.sleep", ms=6000), put("context/timeout_ms", 4600)),
        ),
    ),
)

PLAN = (
    BrokenPeer(
        requirement="PLN-001",
        does="gives two sub-goals one id",
        because=r"ids_are_unique: \['first'\] stands twice",
        http=after(do("plan"), _same_id, ok=True),
    ),
    BrokenPeer(
        requirement="PLN-002",
        does="plans a cycle",
        because=r"depends_without_cycle: \['first', 'second'\] wait for each other",
        http=after(do("plan"), _cycle, ok=True),
    ),
    BrokenPeer(
        requirement="PLN-003",
        does="reads a sub-goal that it does not depend on",
        because=r"reads_what_it_depends_on: second reads first, not in its depends_on",
        http=after(do("plan"), _forgets_depends_on, ok=True),
    ),
    BrokenPeer(
        requirement="PLN-004",
        does="plans more than was allowed",
        because=r"not_more_sub_goals: 2 sub-goals, at most 1 were allowed",
        http=before(do("plan"), put("limits/max_sub_goals", 10)),
    ),
)

EXECUTE = (
    BrokenPeer(
        requirement="EXE-001",
        does="answers output and operation",
        because=r"output_or_operation: the answer holds output and operation",
        http=after(action("acp.test.count"), put("operation", {"poll_after_ms": 10}), ok=True),
    ),
    BrokenPeer(
        requirement="EXE-002",
        does="has its own code for an unknown action",
        because=r"code: expected code NOT_FOUND or INVALID_ARGUMENT, got .* FAILED_PRECONDITION",
        http=rules.instead(
            lambda r: r.action.endswith(".no_such_action"),
            error("FAILED_PRECONDITION", "NO_SUCH_ACTION", http=400),
        ),
    ),
    BrokenPeer(
        requirement="EXE-003",
        does="does not look at input_schema",
        because=r"code: expected code INVALID_ARGUMENT, got success",
        http=before(
            lambda r: r.action == "acp.test.sleep" and "ms" not in r.arguments,
            put("arguments", {"ms": 0}),
        ),
    ),
    BrokenPeer(
        requirement="EXE-004",
        does="answers output against its output_schema",
        because=r"output_fits_schema: output",
        http=after(action("correct.roll"), put("output", {"number": 4}), ok=True),
    ),
    BrokenPeer(
        requirement="EXE-007",
        does="performs something in a READ action",
        because=r"read_performs_nothing: a READ action answered PERFORMED",
        http=after(
            action("acp.test.echo", conformance=True), put("side_effect", "PERFORMED"), ok=True
        ),
    ),
)

OBSERVE = (
    BrokenPeer(
        requirement="OBS-001",
        does="stores a repeated call again",
        because=r"each_memory_once: .* is remembered 2 times",
        http=before(all_of(do("observe"), context_is("attempt", 2)), put("context/call_id", "x")),
    ),
    BrokenPeer(
        requirement="OBS-002",
        does="recalls before it stores",
        because=r"memory_is_there: what was just observed is missing",
        http=after(
            lambda r: _observes(r, 1) and _recall(r).get("limit") == 5,
            rules.drop("memory"),
            ok=True,
        ),
    ),
    BrokenPeer(
        requirement="OBS-003",
        does="recalls more than was asked for",
        because=r"memory_within_limit: 3 items, limit 2",
        http=before(lambda r: _recall(r).get("limit") == 2, put("recall/limit", 3)),
    ),
    BrokenPeer(
        requirement="OBS-004",
        does="counts wrongly what it stored",
        because=r"at: stored: expected 2, got 3",
        http=after(lambda r: _observes(r, 2), put("stored", 3), ok=True),
    ),
    BrokenPeer(
        requirement="OBS-005",
        does="recalls unasked",
        because=r"no_memory_unasked: memory without recall",
        http=after(
            lambda r: r.do == "observe" and not _recall(r), put("memory", [{"id": "m"}]), ok=True
        ),
    ),
    BrokenPeer(
        requirement="OBS-006",
        does="remembers numbers in its own form",
        because=r"memory_keeps_tokens: an observed payload came back as",
        http=rules.answer_text(do("observe"), b'"n":0.10', to=b'"n":0.1'),
    ),
)

REFLECT = (
    BrokenPeer(
        requirement="RFL-001",
        does="has a verdict of its own",
        because=r"at: verdict: expected one of ACCEPT",
        http=after(_reflects("SUCCEEDED"), put("verdict", "MAYBE"), ok=True),
    ),
    BrokenPeer(
        requirement="RFL-002",
        does="retries a call that was not asked about",
        because=r"retries_known_calls: \['nobody'\] are no calls of the request",
        http=after(_reflects("FAILED"), put("retry_call_ids", ["nobody"]), ok=True),
    ),
    BrokenPeer(
        requirement="RFL-003",
        does="claims with a source that leads nowhere",
        because=r"sources_resolve: /calls/nobody/output leads nowhere",
        http=after(
            _reflects("SUCCEEDED"), put("claims/0/sources", ["/calls/nobody/output"]), ok=True
        ),
    ),
    BrokenPeer(
        requirement="ANS-001",
        does="names another version than its card",
        because=r"component_names_version: 9.9.9, the card says 1.2.3",
        http=after(do("reflect"), put("component", {"version": "9.9.9"}), ok=True),
    ),
    BrokenPeer(
        requirement="ANS-002",
        does="spends more retries than it was lent",
        because=r"retries_within_budget: 99 retries spent of",
        http=after(action("correct.greet"), put("retries_spent", 99), ok=True),
    ),
)

PEERS = (*CONTEXT, *PLAN, *EXECUTE, *OBSERVE, *REFLECT)
