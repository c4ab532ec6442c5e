"""Peers that break one rule of idempotency; what they must remember lives in each rule."""

from conformance_tests.broken.http_layer import Forward, Json, Reply, Request, Rule
from conformance_tests.broken.peer import BrokenPeer

COUNT = "acp.test.count"


def _elsewhere(request: Request) -> Request:
    """The same request as a call nobody has seen."""
    tree = request.tree
    fresh = f"{request.context['call_id']}-{request.context['attempt']}"
    return request.with_tree({**tree, "context": {**request.context, "call_id": fresh}})


def _in_context(request: Request, **values: object) -> Request:
    return request.with_tree({**request.tree, "context": {**request.context, **values}})


class _Seen:
    """What was seen of each call of the counting action."""

    def __init__(self) -> None:
        self.digests: dict[str, object] = {}
        self.attempts: dict[str, int] = {}
        self.replies: dict[str, Reply] = {}

    def __contains__(self, request: Request) -> bool:
        return request.context.get("call_id") in self.digests

    def note(self, request: Request) -> None:
        call_id = str(request.context.get("call_id"))
        self.digests.setdefault(call_id, request.context.get("body_digest"))
        attempt = int(request.context.get("attempt", 0))
        self.attempts[call_id] = max(self.attempts.get(call_id, 0), attempt)

    def same_body(self, request: Request) -> bool:
        return self.digests.get(request.context["call_id"]) == request.context.get("body_digest")


def _counts(request: Request) -> bool:
    return request.do == "execute" and request.action == COUNT


def _plain(arguments: Json) -> bool:
    return set(arguments) == {"key"}


def forgets_second_attempt() -> Rule:
    seen = _Seen()

    async def rule(request: Request, forward: Forward) -> Reply:
        repeated = _counts(request) and request in seen and seen.same_body(request)
        second = repeated and request.context["attempt"] == 2 and _plain(request.arguments)
        if second and seen.attempts[request.context["call_id"]] < 2:
            return await forward(_elsewhere(request))
        if _counts(request):
            seen.note(request)
        return await forward(request)

    return rule


def takes_any_body() -> Rule:
    seen = _Seen()

    async def rule(request: Request, forward: Forward) -> Reply:
        if _counts(request) and request in seen and not seen.same_body(request):
            known = seen.digests[request.context["call_id"]]
            return await forward(_in_context(request, body_digest=known))
        if _counts(request):
            seen.note(request)
        return await forward(request)

    return rule


def runs_side_by_side() -> Rule:
    seen = _Seen()

    async def rule(request: Request, forward: Forward) -> Reply:
        if _counts(request) and request.arguments.get("ms") == 250:
            if request in seen:
                return await forward(_elsewhere(request))
            seen.note(request)
        return await forward(request)

    return rule


def takes_lower_attempts() -> Rule:
    seen = _Seen()

    async def rule(request: Request, forward: Forward) -> Reply:
        if _counts(request):
            seen.note(request)
            most = seen.attempts[request.context["call_id"]]
            if request.context["attempt"] < most:
                return await forward(_in_context(request, attempt=most))
        return await forward(request)

    return rule


def forgets_errors() -> Rule:
    async def rule(request: Request, forward: Forward) -> Reply:
        told = request.arguments.get("fail")
        after_work = _counts(request) and told in {"PERFORMED", "UNKNOWN"}
        if after_work and request.context["attempt"] > 1:
            return await forward(_elsewhere(request))
        return await forward(request)

    return rule


def remembers_refusals() -> Rule:
    seen = _Seen()

    async def rule(request: Request, forward: Forward) -> Reply:
        if not _counts(request) or request.arguments.get("fail") != "NONE":
            return await forward(request)
        call_id = request.context["call_id"]
        if call_id not in seen.replies:
            seen.replies[call_id] = await forward(request)
        return seen.replies[call_id]

    return rule


def forgets_in_time() -> Rule:
    async def rule(request: Request, forward: Forward) -> Reply:
        if _counts(request) and request.context.get("attempt") == 5:
            return await forward(_elsewhere(request))
        return await forward(request)

    return rule


PEERS = (
    BrokenPeer(
        requirement="IDM-001",
        does="does a repeated call again",
        because=r"at: output: expected .*'count': 1.* got .*'count': 2",
        http=forgets_second_attempt,
    ),
    BrokenPeer(
        requirement="IDM-002",
        does="gives the remembered outcome for another body",
        because=r"code: expected code ALREADY_EXISTS, got success",
        http=takes_any_body,
    ),
    BrokenPeer(
        requirement="IDM-003",
        does="runs a repeat beside the first",
        because=r"any_of: output/count: expected 1, got 2",
        http=runs_side_by_side,
    ),
    BrokenPeer(
        requirement="IDM-004",
        does="answers a lower attempt",
        because=r"code: expected code ABORTED, got success",
        http=takes_lower_attempts,
    ),
    BrokenPeer(
        requirement="IDM-005",
        does="forgets an error after the work",
        because=r"reason: expected reason FAILED_AS_TOLD, got success",
        http=forgets_errors,
    ),
    BrokenPeer(
        requirement="IDM-006",
        does="remembers an error before the work",
        because=r"ok: expected success, got HTTP 400 FAILED_PRECONDITION FAILED_AS_TOLD",
        http=remembers_refusals,
    ),
    BrokenPeer(
        requirement="IDM-007",
        does="forgets before the time to live is over",
        because=r"at: output: expected .*'count': 1.* got .*'count': 3",
        http=forgets_in_time,
    ),
)
