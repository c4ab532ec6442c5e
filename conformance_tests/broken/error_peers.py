"""Peers that break one rule of SPEC section 5, of operations or of cancel."""

from conformance_tests.broken import rules
from conformance_tests.broken.http_layer import Forward, Reply, Request, Rule
from conformance_tests.broken.peer import TOKEN, BrokenPeer
from conformance_tests.broken.rules import action, after, both, error, instead, put


def _plans(request: Request) -> bool:
    """A path nobody has."""
    return request.path == "/acp/v1/plans"


def _asks_operation(request: Request) -> bool:
    return request.method == "GET" and "/operations/" in request.path


def _cancels(request: Request) -> bool:
    return "/calls/" in request.path


async def _callback_in_details(request: Request, forward: Forward) -> Reply:
    reply = await forward(request)
    callback = request.context.get("callback")
    if reply.ok or not callback:
        return reply
    tree = reply.tree
    tree["error"]["details"] = {"callback": callback}
    return reply.with_tree(tree)


def _operation_of(ms: int, then: Reply) -> Rule:
    """Once an operation that takes `ms` was seen to end, this is said of it."""
    own: set[str] = set()
    ended: set[str] = set()

    async def rule(request: Request, forward: Forward) -> Reply:
        if action("acp.test.operation", ms=ms)(request):
            own.add(request.context["call_id"])
        if _asks_operation(request) and request.do in ended:
            return then
        reply = await forward(request)
        if request.do in own and reply.tree.get("status") == "SUCCEEDED":
            ended.add(request.do)
        return reply

    return rule


def _stops(ms: int, name: str, *, say: Reply | None) -> Rule:
    """Cancel of a call of `name` that takes `ms`: answered with `say`, or not passed on."""
    own: set[str] = set()

    async def rule(request: Request, forward: Forward) -> Reply:
        if action(name, ms=ms)(request):
            own.add(request.context["call_id"])
        called = request.path.split("/")[-2]
        if _cancels(request) and called in own:
            return say if say is not None else _state("STOPPED")
        return await forward(request)

    return rule


def _state(name: str) -> Reply:
    tree = {"state": name, "side_effect": "NONE"}
    return Reply(status=200, headers={"content-type": "application/json"}).with_tree(tree)


async def _own_code(request: Request, forward: Forward) -> Reply:
    reply = await forward(request)
    if _asks_operation(request) and reply.status == 404:
        return error("FAILED_PRECONDITION", "NO_OPERATION", http=400)
    return reply


async def _cancel_unknown(request: Request, forward: Forward) -> Reply:
    reply = await forward(request)
    unknown = reply.tree.get("state") == "UNKNOWN_CALL"
    if _cancels(request) and unknown and "attempt" not in request.tree:
        return error("NOT_FOUND", "NOT_FOUND", http=404)
    return reply


async def _forgets_finished(request: Request, forward: Forward) -> Reply:
    reply = await forward(request)
    if _cancels(request) and reply.tree.get("state") == "FINISHED":
        return _state("UNKNOWN_CALL")
    return reply


ERRORS = (
    BrokenPeer(
        requirement="ERR-001",
        does="answers an error without a reason",
        because=r"error_has_its_fields: the error has no reason",
        http=after(_asks_operation, rules.drop("error/reason"), ok=False),
    ),
    BrokenPeer(
        requirement="ERR-002",
        does="has a code of its own",
        because=r"code_is_canonical: 'NO_METHOD' is no canonical code",
        http=after(
            lambda r: r.method == "DELETE",
            both(put("error/code", "NO_METHOD"), put("error/reason", "WRONG_METHOD")),
        ),
    ),
    BrokenPeer(
        requirement="ERR-003",
        does="writes a reason as a sentence",
        because=r"reason_is_upper_snake: reason 'not found'",
        http=after(_plans, put("error/reason", "not found")),
    ),
    BrokenPeer(
        requirement="ERR-004",
        does="gives a reason of the table another code",
        because=r"code_of_the_row: NOT_FOUND with ABORTED",
        http=after(_plans, put("error/code", "ABORTED")),
    ),
    BrokenPeer(
        requirement="ERR-005",
        does="says nothing",
        because=r"message_says_something: the message is empty",
        http=after(_plans, put("error/message", "")),
    ),
    BrokenPeer(
        requirement="ERR-006",
        does="answers a wrong media type with 500",
        because=r"status 500",
        http=instead(
            lambda r: r.headers.get("content-type") == "text/plain",
            error("INTERNAL", "INTERNAL", http=500),
        ),
    ),
    BrokenPeer(
        requirement="ERR-007",
        does="refuses without saying that nothing was done",
        because=r"refusal_did_nothing: side effect None",
        http=after(lambda r: r.body == b"context: yes", rules.drop("error/side_effect")),
    ),
    BrokenPeer(
        requirement="ERR-008",
        does="does not know what it has done",
        because=r"side_effect: expected side effect PERFORMED, got UNKNOWN",
        http=after(
            lambda r: action("acp.test.count", fail="PERFORMED")(r) and "until" not in r.arguments,
            put("error/side_effect", "UNKNOWN"),
            ok=False,
        ),
    ),
    BrokenPeer(
        requirement="ERR-014",
        does="tells the call-back's token",
        because=r"keeps_secrets: details hold 'secret-",
        http=lambda: _callback_in_details,
    ),
)

OPERATIONS = (
    BrokenPeer(
        requirement="OPN-004",
        does="knows its operations by another id",
        because=r"ok: expected success, got HTTP 404 NOT_FOUND",
        http=instead(
            lambda r: "/operations/" in r.path and r.method == "POST",
            error("NOT_FOUND", "NOT_FOUND", http=404),
        ),
    ),
    BrokenPeer(
        requirement="OPN-005",
        does="forgets an operation once its end was asked for",
        because=r"at: status is absent",
        http=lambda: _operation_of(1500, error("NOT_FOUND", "NOT_FOUND", http=404)),
    ),
    BrokenPeer(
        requirement="OPN-006",
        does="has its own code for an unknown operation",
        because=r"code: expected code NOT_FOUND, got HTTP 400 FAILED_PRECONDITION",
        http=lambda: _own_code,
    ),
)

ACCESS = (
    BrokenPeer(
        requirement="ACC-009",
        does="asks for no token",
        because=r"code: expected code UNAUTHENTICATED, got success",
        http=rules.request_header(lambda r: True, "authorization", to=f"Bearer {TOKEN}"),
    ),
)

CANCEL = (
    BrokenPeer(
        requirement="CAN-001",
        does="answers a state of its own",
        because=r"at: state: expected one of STOPPED",
        http=lambda: _stops(700, "acp.test.sleep", say=_state("HALTED")),
    ),
    BrokenPeer(
        requirement="CAN-002",
        does="answers an error for a call it never saw",
        because=r"at: state is absent",
        http=lambda: _cancel_unknown,
    ),
    BrokenPeer(
        requirement="CAN-003",
        does="forgets what has ended",
        because=r"at: state: expected 'FINISHED', got 'UNKNOWN_CALL'",
        http=lambda: _forgets_finished,
    ),
    BrokenPeer(
        requirement="CAN-004",
        does="says STOPPED and goes on",
        because=r"at: output/count: expected 1, got 2",
        http=lambda: _stops(2000, "acp.test.count", say=None),
    ),
    BrokenPeer(
        requirement="CAN-005",
        does="stops every attempt whatever is asked",
        because=r"ok: expected success, got HTTP 499 CANCELLED",
        http=rules.before(lambda r: _cancels(r) and r.tree.get("attempt") == 2, put("attempt", 0)),
    ),
)

PEERS = (*ACCESS, *ERRORS, *OPERATIONS, *CANCEL)
