"""Peers that break one rule of SPEC section 1: version, JSON form, payloads, HTTP."""

from dataclasses import replace

from conformance_tests.broken import rules
from conformance_tests.broken.http_layer import Forward, Reply, Request
from conformance_tests.broken.peer import BrokenPeer
from conformance_tests.broken.rules import INVALID, action, after, before, do, error, instead, put

ECHO = "acp.test.echo"


def _version(prefix: str) -> rules.When:
    return lambda request: request.headers.get("acp-version", "").startswith(prefix)


async def _escapes(request: Request, forward: Forward) -> Reply:
    reply = await forward(request)
    if request.action != ECHO or b"\\u00e9" not in request.body:
        return reply
    return replace(reply, body=reply.body.replace(b"\\u00e9", "é".encode()))


async def _progress_after(request: Request, forward: Forward) -> Reply:
    reply = await forward(request)
    if "ndjson" not in reply.headers.get("content-type", ""):
        return reply
    return replace(reply, body=reply.body + b'{"message":"still going"}\n')


async def _ndjson_unasked(request: Request, forward: Forward) -> Reply:
    reply = await forward(request)
    if not action("correct.greet")(request) or "ndjson" in request.headers.get("accept", ""):
        return reply
    return replace(reply, headers={**reply.headers, "content-type": "application/x-ndjson"})


async def _whole_as_fraction(request: Request, forward: Forward) -> Reply:
    reply = await forward(request)
    if request.do != "observe" or not reply.ok or "recall" in request.tree:
        return reply
    tree = reply.tree
    return reply.with_tree({**tree, "stored": float(tree.get("stored", 0))})


def _strict_about_trace(request: Request) -> bool:
    stated = request.context.get("traceparent")
    return bool(stated) and request.headers.get("traceparent", stated) != stated


def _deeper_than_47(request: Request) -> bool:
    return request.do == "execute" and b"[" * 48 in request.body and b"[" * 49 not in request.body


VERSION = (
    BrokenPeer(
        requirement="VER-001",
        does="refuses a request without acp-version",
        because=r"ok: expected success",
        http=instead(
            lambda r: r.do == "component" and "acp-version" not in r.headers,
            error("FAILED_PRECONDITION", "VERSION_UNSUPPORTED", http=400),
        ),
    ),
    BrokenPeer(
        requirement="VER-002",
        does="takes any version for its own",
        because=r"code: expected code FAILED_PRECONDITION, got success",
        http=rules.request_header(_version("99"), "acp-version", to="1.0"),
    ),
    BrokenPeer(
        requirement="VER-003",
        does="does not say which versions it speaks",
        because=r"names_versions: 1.0 is not named",
        http=after(_version("98"), put("error/message", "This version is not spoken.")),
    ),
    BrokenPeer(
        requirement="VER-004",
        does="refuses a higher minor version",
        because=r"ok: expected success",
        http=instead(
            _version("1.9"), error("FAILED_PRECONDITION", "VERSION_UNSUPPORTED", http=400)
        ),
    ),
)

JSON_FORM = (
    BrokenPeer(
        requirement="WIR-001",
        does="writes pollAfterMs",
        because=r"operation/pollAfterMs should be written poll_after_ms",
        http=after(
            action("acp.test.operation"), rules.rename("operation/poll_after_ms", "pollAfterMs")
        ),
    ),
    BrokenPeer(
        requirement="WIR-002",
        does="refuses fields it does not know",
        because=r"ok: expected success",
        http=instead(lambda r: b"of_the_future" in r.body, INVALID),
    ),
    BrokenPeer(
        requirement="WIR-003",
        does="writes an enum with its prefix",
        because=r"status is 'HEALTH_STATUS_SERVING'",
        http=after(do("health"), put("status", "HEALTH_STATUS_SERVING")),
    ),
    BrokenPeer(
        requirement="WIR-004",
        does="takes an unknown enum value for a known one",
        because=r"code: expected code INVALID_ARGUMENT, got success",
        http=rules.text(lambda r: r.do == "plan", b'"PERHAPS"', to=b'"READ"'),
    ),
    BrokenPeer(
        requirement="WIR-007",
        does="demands retry_budget",
        because=r"ok: expected success",
        http=instead(
            lambda r: bool(r.context.get("attempt")) and "workflow" not in r.context, INVALID
        ),
    ),
    BrokenPeer(
        requirement="WIR-008",
        does="reads a number as text",
        because=r"code: expected code INVALID_ARGUMENT, got HTTP 404 NOT_FOUND",
        http=before(lambda r: r.tree.get("action") == 5, put("action", "5")),
    ),
    BrokenPeer(
        requirement="WIR-012",
        does="writes an integer with a fraction",
        because=r"stored is 1.0",
        http=rules.plainly(_whole_as_fraction),
    ),
)

PAYLOADS = (
    BrokenPeer(
        requirement="PAY-001",
        does="writes escapes in its own way",
        because=r"text: output: sent",
        http=rules.plainly(_escapes),
    ),
    BrokenPeer(
        requirement="PAY-002",
        does="reads numbers as floating point",
        because=r"text: output: sent .*9007199254740993",
        http=rules.answer_text(action(ECHO), b"9007199254740993", to=b"9007199254740992"),
    ),
    BrokenPeer(
        requirement="PAY-003",
        does="leaves out an output that is null",
        because=r"text: output is absent",
        http=after(
            lambda r: action(ECHO)(r) and r.tree.get("arguments", 0) is None, rules.drop("output")
        ),
        fails_with=("EXE-001",),
        why_with="an answer without its null output holds no output",
    ),
    BrokenPeer(
        requirement="PAY-005",
        does="has its own code for what is no JSON",
        because=r"code: expected code INVALID_ARGUMENT, got HTTP 400 FAILED_PRECONDITION",
        http=instead(
            lambda r: r.body == b"context: yes", error("FAILED_PRECONDITION", "BAD_BODY", http=400)
        ),
    ),
    BrokenPeer(
        requirement="PAY-006",
        does="mends what is not UTF-8",
        because=r"code: expected code INVALID_ARGUMENT, got success",
        http=rules.text(do("execute"), b"\xff\xfe", to=b""),
    ),
    BrokenPeer(
        requirement="PAY-007",
        does="takes the last of two equal keys",
        because=r"code: expected code INVALID_ARGUMENT, got success",
        http=rules.text(do("execute"), b'"a":1,"a":2', to=b'"a":2'),
    ),
    BrokenPeer(
        requirement="PAY-008",
        does="drops lone surrogates",
        because=r"code: expected code INVALID_ARGUMENT, got success",
        http=rules.text(do("execute"), b'"\\ud800"', to=b'""'),
    ),
    BrokenPeer(
        requirement="PAY-009",
        does="takes any depth",
        because=r"code: expected code INVALID_ARGUMENT, got success",
        http=rules.text(do("execute"), b"[" * 49 + b"1" + b"]" * 49, to=b"[1]"),
    ),
    BrokenPeer(
        requirement="PAY-010",
        does="takes less depth than everybody",
        because=r"text: output is absent",
        http=instead(_deeper_than_47, INVALID),
    ),
    BrokenPeer(
        requirement="PAY-012",
        does="has its own reason for what is too large",
        because=r"reason: expected reason PAYLOAD_TOO_LARGE, got HTTP 429",
        http=instead(
            lambda r: len(r.body) > 64 * 1024, error("RESOURCE_EXHAUSTED", "TOO_MUCH", http=429)
        ),
    ),
    BrokenPeer(
        requirement="PAY-013",
        does="takes less than its card says",
        because=r"ok: expected success, got HTTP 413",
        http=instead(
            lambda r: len(r.body) == 64 * 1024,
            error("RESOURCE_EXHAUSTED", "PAYLOAD_TOO_LARGE", http=413),
        ),
    ),
)

HTTP = (
    BrokenPeer(
        requirement="HTT-001",
        does="answers its card with 203",
        because=r"status: expected status 200, got 203",
        http=rules.status(lambda r: r.method == "GET" and r.do == "component", 203),
    ),
    BrokenPeer(
        requirement="HTT-002",
        does="answers health with 201",
        because=r"status: expected status 200, got 201",
        http=rules.status(do("health"), 201),
    ),
    BrokenPeer(
        requirement="HTT-003",
        does="has no path for a role of its card",
        because=r"status: status 404",
        http=instead(
            lambda r: r.do == "reflect" and r.body == b"{}",
            error("NOT_FOUND", "NOT_FOUND", http=404),
        ),
    ),
    BrokenPeer(
        requirement="HTT-004",
        does="answers JSON as text/plain",
        because=r"content_type: expected .* got text/plain",
        http=rules.header(do("health"), "content-type", to="text/plain"),
    ),
    BrokenPeer(
        requirement="HTT-005",
        does="answers an unknown path with 400",
        because=r"status: expected status 404, got 400",
        http=instead(lambda r: r.path == "/acp/v1/plans", INVALID),
    ),
    BrokenPeer(
        requirement="HTT-006",
        does="answers a wrong method with 404",
        because=r"status: expected status 405, got 404",
        http=instead(lambda r: r.method == "DELETE", error("NOT_FOUND", "NOT_FOUND", http=404)),
    ),
    BrokenPeer(
        requirement="HTT-007",
        does="answers INVALID_REQUEST with 422",
        because=r"INVALID_REQUEST \(INVALID_ARGUMENT\) with status 422, not 400",
        http=rules.status(rules.context_is("timeout_ms", 0), 422, ok=False),
    ),
    BrokenPeer(
        requirement="HTT-008",
        does="does not look at idempotency-key",
        because=r"code: expected code INVALID_ARGUMENT, got success",
        http=rules.request_header(lambda r: True, "idempotency-key", to=None),
    ),
    BrokenPeer(
        requirement="HTT-009",
        does="demands that traceparent equals the context's",
        because=r"ok: expected success",
        http=instead(_strict_about_trace, INVALID),
    ),
    BrokenPeer(
        requirement="HTT-010",
        does="tells progress after the response",
        because=r"lines_are_progress: line \d of \d already holds the response",
        http=rules.plainly(_progress_after),
    ),
    BrokenPeer(
        requirement="HTT-011",
        does="answers NDJSON unasked",
        because=r"content_type: expected application/json, got application/x-ndjson",
        http=rules.plainly(_ndjson_unasked),
    ),
    BrokenPeer(
        requirement="HTT-014",
        does="answers an accepted operation with 202",
        because=r"status: expected status 200, got 202",
        http=rules.status(action("acp.test.operation"), 202),
    ),
)

PEERS = (*VERSION, *JSON_FORM, *PAYLOADS, *HTTP)
