"""Broken gateways for SPEC sections 1 and 2: version, form, payloads, bindings, context."""

import re
from collections.abc import Callable
from dataclasses import replace

from conformance_tests.broken import rules, wire_rules
from conformance_tests.broken.gateway import BrokenGateway
from conformance_tests.broken.grpc_layer import GrpcForward, GrpcReply, GrpcRequest, GrpcRule
from conformance_tests.broken.http_layer import Forward, Reply, Request
from conformance_tests.broken.meant import (
    at,
    below,
    component,
    ear,
    holds,
    opens,
    opens_with,
    under,
    with_header,
    without_header,
)
from conformance_tests.broken.rules import (
    INVALID,
    after,
    answer_text,
    before,
    do,
    error,
    instead,
    put,
    saying,
)
from conformance_tests.messages.tree import Tree, from_proto, to_proto

LISTS = at("GET", "/v1/sessions")
SUCCESS = saying({"output": {"value": 1}, "side_effect": "NONE"})


def _version(prefix: str) -> rules.When:
    return lambda r: LISTS(r) and r.headers.get("acp-version", "").startswith(prefix)


async def _read_as_success(request: Request, forward: Forward) -> Reply:
    """What is no JSON counts as an answer."""
    reply = await forward(request)
    return SUCCESS if reply.body.startswith(b"<html") else reply


async def _with_offset(request: Request, forward: Forward) -> Reply:
    reply = await forward(request)
    if not opens(request):
        return reply
    return replace(reply, body=re.sub(rb'(:\d\d\.\d+)Z"', rb'\1+00:00"', reply.body))


async def _any_size(request: Request, forward: Forward) -> Reply:
    reply = await forward(request)
    return SUCCESS if len(reply.body) > 4 * 1024 * 1024 else reply


async def _follows(request: Request, forward: Forward) -> Reply:
    reply = await forward(request)
    if reply.status == 307:
        await forward(replace(request, method="GET", path=reply.headers["location"], body=b""))
    return reply


def _rpc(rule: GrpcRule) -> Callable[[], GrpcRule]:
    return lambda: rule


def _trailer(code: str, reason: str, *, message: str = "Refused.") -> GrpcReply:
    said: Tree = {"code": code, "reason": reason, "message": message, "side_effect": "NONE"}
    trailer = to_proto({"error": said}, "ErrorBody")
    return GrpcReply(status=code, message="Refused.", trailer=trailer)


async def _demands_input(request: GrpcRequest, forward: GrpcForward) -> GrpcReply:
    tree = from_proto(request.data, "OpenSessionRequest") if request.do == "OpenSession" else None
    session = (tree or {}).get("session")
    if isinstance(session, dict) and "input" not in session and len(str(session)) < 200:
        return _trailer("INVALID_ARGUMENT", "INVALID_REQUEST")
    return await forward(request)


async def _no_trailer(request: GrpcRequest, forward: GrpcForward) -> GrpcReply:
    reply = await forward(request)
    return replace(reply, trailer=None) if request.do == "GetSession" else reply


async def _long_trailer(request: GrpcRequest, forward: GrpcForward) -> GrpcReply:
    if request.do == "OpenSession" and len(request.data) > 5000:
        return _trailer("INVALID_ARGUMENT", "INVALID_REQUEST", message="long " * 1000)
    return await forward(request)


VERSION = (
    BrokenGateway(
        requirement="VER-001",
        does="refuses a request without acp-version",
        because=r"ok: expected success",
        client=instead(
            lambda r: LISTS(r) and "acp-version" not in r.headers,
            error("FAILED_PRECONDITION", "VERSION_UNSUPPORTED", http=400),
        ),
    ),
    BrokenGateway(
        requirement="VER-002",
        does="takes any version for its own",
        because=r"code: expected code FAILED_PRECONDITION, got success",
        client=rules.request_header(_version("99"), "acp-version", to="1.0"),
    ),
    BrokenGateway(
        requirement="VER-003",
        does="does not say which versions it speaks",
        because=r"at: error/message: .* lacks '1.0'",
        client=after(_version("98"), put("error/message", "This version is not spoken.")),
    ),
    BrokenGateway(
        requirement="VER-004",
        does="refuses a higher minor version",
        because=r"ok: expected success",
        client=instead(
            _version("1.9"), error("FAILED_PRECONDITION", "VERSION_UNSUPPORTED", http=400)
        ),
    ),
    BrokenGateway(
        requirement="VER-005",
        does="cancels without acp-version",
        because=r"heard_version: heard.cancel came without acp-version",
        ear=ear("cancel", without_header("acp-version")),
    ),
)

FORM = (
    BrokenGateway(
        requirement="WIR-001",
        does="writes leaseSeconds",
        because=r"leaseSeconds should be written lease_seconds",
        client=answer_text(component, b'"lease_seconds"', to=b'"leaseSeconds"'),
    ),
    BrokenGateway(
        requirement="WIR-002",
        does="refuses fields it does not know",
        because=r"ok: expected success",
        client=instead(holds(opens, b"of_the_future"), INVALID),
    ),
    BrokenGateway(
        requirement="WIR-003",
        does="writes an enum with its prefix",
        because=r"status is 'STEP_STATUS_SUCCEEDED'",
        client=answer_text(
            below("steps"), b'"status":"SUCCEEDED"', to=b'"status":"STEP_STATUS_SUCCEEDED"'
        ),
    ),
    BrokenGateway(
        requirement="WIR-004",
        does="takes an unknown enum value for a known one",
        because=r"code: expected code INVALID_ARGUMENT, got success",
        client=rules.text(opens, b'"TURBO"', to=b'"MANUAL"'),
    ),
    BrokenGateway(
        requirement="WIR-005",
        does="reads an unknown effect as READ",
        because=r"action_reads_as_careful: the action reads as \('READ'",
        stage=answer_text(do("component"), b'"PERHAPS"', to=b'"READ"'),
    ),
    BrokenGateway(
        requirement="WIR-006",
        does="takes an unknown verdict for ACCEPT",
        because=r"at: status: expected 'FAILED', got 'SUCCEEDED'",
        stage=answer_text(do("reflect"), b'"MAYBE"', to=b'"ACCEPT"'),
    ),
    BrokenGateway(
        requirement="WIR-007",
        does="demands an input",
        because=r"status: expected status 201, got 400",
        client=instead(lambda r: opens(r) and set(r.tree) == {"workflow"}, INVALID),
    ),
    BrokenGateway(
        requirement="WIR-008",
        does="reads text as a number",
        because=r"code: expected code INVALID_ARGUMENT, got success",
        client=before(opens_with(deadline_ms="soon"), rules.drop("deadline_ms")),
    ),
    BrokenGateway(
        requirement="WIR-010",
        does="writes times with an offset",
        because=r"at: times/opened_at: .*00' is not like",
        client=rules.plainly(_with_offset),
    ),
    BrokenGateway(
        requirement="WIR-011",
        does="takes enum names in capitals only",
        because=r"status: expected status 201, got 400",
        client=instead(opens_with(mode="manual"), INVALID),
    ),
    BrokenGateway(
        requirement="WIR-012",
        does="writes an integer with a fraction",
        because=r"lease/lease_seconds is 30.0",
        client=answer_text(
            under("POST", "/v1/components/"), b'"lease_seconds":30', to=b'"lease_seconds":30.0'
        ),
    ),
    BrokenGateway(
        requirement="WIR-013",
        does="takes a page for an answer",
        because=r"at: status: expected 'FAILED', got 'SUCCEEDED'",
        stage=rules.plainly(_read_as_success),
    ),
)

PAYLOADS = (
    BrokenGateway(
        requirement="PAY-001",
        does="writes escapes in its own way",
        because=r"text: output: sent",
        client=answer_text(opens, b"\\/", to=b"/"),
    ),
    BrokenGateway(
        requirement="PAY-002",
        does="reads numbers as floating point",
        because=r"text: output: sent .*9007199254740993",
        client=answer_text(opens, b"9007199254740993", to=b"9007199254740992"),
    ),
    BrokenGateway(
        requirement="PAY-003",
        does="leaves out an output that is null",
        because=r"text: output is absent",
        client=answer_text(opens, b'"output":null,', to=b""),
    ),
    BrokenGateway(
        requirement="PAY-004",
        does="reads a payload without bytes as a wrong one",
        because=r"ok: expected success",
        rpc=_rpc(_demands_input),
    ),
    BrokenGateway(
        requirement="PAY-005",
        does="has its own code for what is no JSON",
        because=r"code: expected code INVALID_ARGUMENT, got HTTP 400 FAILED_PRECONDITION",
        client=instead(
            lambda r: opens(r) and r.body.endswith(b'{"a":'),
            error("FAILED_PRECONDITION", "BAD_BODY", http=400),
        ),
    ),
    BrokenGateway(
        requirement="PAY-006",
        does="mends what is not UTF-8",
        because=r"code: expected code INVALID_ARGUMENT, got success",
        client=rules.text(opens, b"\xff\xfe", to=b""),
    ),
    BrokenGateway(
        requirement="PAY-007",
        does="takes the last of two equal keys",
        because=r"code: expected code INVALID_ARGUMENT, got success",
        client=rules.text(opens, b'"a":1,"a":2', to=b'"a":2'),
    ),
    BrokenGateway(
        requirement="PAY-008",
        does="drops lone surrogates",
        because=r"code: expected code INVALID_ARGUMENT, got success",
        client=rules.text(opens, b'"\\ud800"', to=b'""'),
    ),
    BrokenGateway(
        requirement="PAY-009",
        does="takes any depth",
        because=r"code: expected code INVALID_ARGUMENT, got success",
        client=rules.text(opens, b"[" * 49 + b"1" + b"]" * 49, to=b"[1]"),
    ),
    BrokenGateway(
        requirement="PAY-010",
        does="takes less depth than everybody",
        because=r"ok: expected success",
        client=instead(
            lambda r: opens(r) and b"[" * 48 in r.body and b"[" * 49 not in r.body, INVALID
        ),
    ),
    BrokenGateway(
        requirement="PAY-012",
        does="has its own reason for what is too large",
        because=r"reason: expected reason PAYLOAD_TOO_LARGE, got HTTP 429",
        client=instead(
            lambda r: opens(r) and len(r.body) > 4 * 1024 * 1024,
            error("RESOURCE_EXHAUSTED", "TOO_MUCH", http=429),
        ),
    ),
    BrokenGateway(
        requirement="PAY-014",
        does="does not look at max_request_bytes",
        because=r"at: status: expected 'FAILED', got 'SUCCEEDED'",
        stage=answer_text(
            do("component"), b'"max_request_bytes":4000', to=b'"max_request_bytes":9000000'
        ),
    ),
    BrokenGateway(
        requirement="PAY-015",
        does="takes an answer of any size",
        because=r"at: status: expected 'FAILED', got 'SUCCEEDED'",
        stage=rules.plainly(_any_size),
    ),
)

BINDINGS = (
    BrokenGateway(
        requirement="GRP-011",
        does="holds on to a connection that is no HTTP/2",
        because=wire_rules.NOT_CLOSED,
        tcp=wire_rules.holds_on,
    ),
    BrokenGateway(
        requirement="GRP-012",
        does="answers a message that is longer than it says",
        because=wire_rules.ANSWERED,
        tcp=wire_rules.answers_anything,
    ),
    BrokenGateway(
        requirement="GRP-013",
        does="turns the next client away after a storm",
        because=wire_rules.NOT_SERVED,
        tcp=wire_rules.turns_away,
    ),
    BrokenGateway(
        requirement="HTT-004",
        does="answers JSON as text/plain",
        because=r"content_type: expected application/json, got text/plain",
        client=rules.header(LISTS, "content-type", to="text/plain"),
    ),
    BrokenGateway(
        requirement="HTT-005",
        does="answers an unknown path with 400",
        because=r"status: expected status 404, got 400",
        client=instead(at("GET", "/v1/no-such-thing"), INVALID),
    ),
    BrokenGateway(
        requirement="HTT-006",
        does="answers a wrong method with 404",
        because=r"status: expected status 405, got 404",
        client=instead(at("DELETE", "/v1/sessions"), error("NOT_FOUND", "NOT_FOUND", http=404)),
    ),
    BrokenGateway(
        requirement="HTT-007",
        does="answers INVALID_REQUEST with 422",
        because=r"INVALID_REQUEST \(INVALID_ARGUMENT\) with status 422, not 400",
        client=rules.status(lambda r: opens(r) and r.body == b"{}", 422, ok=False),
    ),
    BrokenGateway(
        requirement="HTT-012",
        does="observes without idempotency-key",
        because=r"heard_headers: the call has no idempotency-key",
        ear=ear("observe", without_header("idempotency-key")),
    ),
    BrokenGateway(
        requirement="HTT-013",
        does="sends another traceparent as header",
        because=r"heard_trace: header 00-other",
        ear=ear("observe", with_header("traceparent", "00-other")),
    ),
    BrokenGateway(
        requirement="HTT-015",
        does="follows redirects",
        because=r"nobody_strayed: the redirect was followed",
        stage=rules.plainly(_follows),
    ),
    BrokenGateway(
        requirement="GRP-003",
        does="does not serve grpc.health.v1.Health",
        because=r"grpc: expected OK, got UNIMPLEMENTED",
        without_health=True,
    ),
    BrokenGateway(
        requirement="GRP-005",
        does="ends a failed call without acp-error-bin",
        because=r"trailer_is_error_body: NOT_FOUND without a readable acp-error-bin",
        rpc=_rpc(_no_trailer),
    ),
    BrokenGateway(
        requirement="GRP-006",
        does="sends a trailer of 5 KiB",
        because=r"trailer_max_bytes: acp-error-bin has \d{4} bytes",
        rpc=_rpc(_long_trailer),
    ),
    BrokenGateway(
        requirement="GRP-008",
        does="sends gRPC calls without an end in sight",
        because=r"grpc_deadline_within_timeout: deadline 900000 ms",
        ear=ear(
            "execute",
            lambda h: replace(h, grpc_deadline_ms=900_000.0) if h.binding == "grpc" else h,
        ),
    ),
    BrokenGateway(
        requirement="GRP-009",
        does="sends another traceparent as metadata",
        because=r"grpc_metadata: traceparent 00-other",
        ear=ear(
            "execute",
            lambda h: with_header("traceparent", "00-other")(h) if h.binding == "grpc" else h,
        ),
    ),
)

GATEWAYS = (*VERSION, *FORM, *PAYLOADS, *BINDINGS)
