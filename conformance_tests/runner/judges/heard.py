"""Rules over what a gateway sends to components: each request, and several of one case."""

import re
from itertools import pairwise
from typing import Final, cast

from acp_spec.model.ids import body_digest
from conformance_tests.messages.tree import Text, Tree
from conformance_tests.runner.answers import Exchange
from conformance_tests.runner.judges.judging import NotSeen
from conformance_tests.runner.judges.messages import misspelt
from conformance_tests.runner.subject import Subject

_CROCKFORD: Final = r"[0-7][0-9A-HJKMNP-TV-Z]{25}"
TRAVEL_MS: Final = 500
"""What a deadline may have shrunk between its writing and its reading."""
DEADLINE_ROOM_MS: Final = 60_000
_REQUESTS: Final = {
    "heard.plan": "PlanRequest",
    "heard.execute": "ExecuteRequest",
    "heard.observe": "ObserveRequest",
    "heard.reflect": "ReflectRequest",
}


def _headers(tree: Tree) -> dict[str, str]:
    return cast("dict[str, str]", tree.get("@headers", {}))


def _calls(seen: Exchange) -> list[Tree]:
    """What a `heard` step holds."""
    found = cast("list[Tree]", (seen.answer.tree or {}).get("calls", []))
    if not found:
        raise NotSeen("the component was sent nothing")
    return found


def _about(call: Tree) -> Tree:
    return cast("Tree", call.get("context", {}))


# ---- each request -------------------------------------------------------------------------------


def heard_version(seen: Exchange, subject: Subject) -> str | None:
    if seen.request.get("@binding") == "attach":
        raise NotSeen("over attach the version was settled by hello and welcome")
    stated = _headers(seen.request).get("acp-version")
    return None if stated else f"{seen.answer.do} came without acp-version"


def heard_names(seen: Exchange, subject: Subject) -> str | None:
    message = _REQUESTS.get(seen.answer.do)
    if message is None or seen.request.get("@binding") != "http":
        raise NotSeen("no call over HTTP")
    known = {**seen.request}
    return misspelt({k: v for k, v in known.items() if not k.startswith("@")}, message)


def heard_headers(seen: Exchange, subject: Subject) -> str | None:
    if seen.request.get("@binding") != "http":
        raise NotSeen("no call over HTTP")
    headers = _headers(seen.request)
    lacking = [h for h in ("idempotency-key", "acp-timeout-ms", "acp-version") if h not in headers]
    if lacking:
        return f"the call has no {', '.join(lacking)}"
    stated, call_id = headers["idempotency-key"], seen.context.get("call_id")
    return None if stated == call_id else f"idempotency-key {stated}, call_id {call_id}"


def heard_trace(seen: Exchange, subject: Subject) -> str | None:
    stated = seen.context.get("traceparent")
    if not stated or seen.request.get("@binding") != "http":
        raise NotSeen("no context had a traceparent")
    header = _headers(seen.request).get("traceparent")
    return None if header == stated else f"header {header}, context {stated}"


def session_id_form(seen: Exchange, subject: Subject) -> str | None:
    stated = str(seen.context.get("session_id"))
    return None if re.fullmatch(_CROCKFORD, stated) else f"session_id {stated!r}"


def lineage_id_form(seen: Exchange, subject: Subject) -> str | None:
    stated, session = str(seen.context.get("lineage_id")), str(seen.context.get("session_id"))
    right = re.fullmatch(re.escape(session) + r"\.[0-9a-f]{12}", stated)
    return None if right else f"lineage_id {stated!r} of session {session}"


def state_version_form(seen: Exchange, subject: Subject) -> str | None:
    stated = str(seen.context.get("state_version"))
    return None if re.fullmatch(r"\d+\.\d+\.\d+", stated) else f"state_version {stated!r}"


def digest_of_the_body(seen: Exchange, subject: Subject) -> str | None:
    arguments = seen.request.get("arguments")
    data = arguments.data if isinstance(arguments, Text) else b""
    wanted = body_digest(str(seen.request.get("action")), data)
    stated = seen.context.get("body_digest")
    return None if stated == wanted else f"body_digest {stated}, of the bytes sent {wanted}"


# ---- several of one case ------------------------------------------------------------------------


def attempts_of_one_call(seen: Exchange, subject: Subject) -> str | None:
    for name in ("call_id", "body_digest"):
        found = {str(_about(call).get(name)) for call in _calls(seen)}
        if len(found) != 1:
            return f"{len(_calls(seen))} attempts with {len(found)} different {name}"
    return None


def attempts_grow(seen: Exchange, subject: Subject) -> str | None:
    numbers = [cast("int", _about(call).get("attempt", 0)) for call in _calls(seen)]
    grows = numbers[0] == 1 and all(a < b for a, b in pairwise(numbers))
    return None if grows else f"attempts {numbers}"


def budget_does_not_grow(seen: Exchange, subject: Subject) -> str | None:
    budgets = [cast("int", _about(call).get("retry_budget", 0)) for call in _calls(seen)]
    shrinks = all(a >= b for a, b in pairwise(budgets))
    return None if shrinks else f"retry_budget {budgets}"


def retries_within_eight(seen: Exchange, subject: Subject) -> str | None:
    calls = _calls(seen)
    retries = len(calls) - len({str(_about(call).get("call_id")) for call in calls})
    return f"{retries} retries in one session" if retries > 8 else None


def tenant_is_not_the_written_one(seen: Exchange, subject: Subject) -> str | None:
    stated = _about(_calls(seen)[0]).get("tenant")
    if stated == "somebody-else":
        return "the tenant is what the caller wrote"
    return None if stated else "the context names no tenant"


def two_call_ids(seen: Exchange, subject: Subject) -> str | None:
    found = {str(_about(call).get("call_id")) for call in _calls(seen)}
    return None if len(found) == 2 else f"{len(found)} call_id in {len(_calls(seen))} calls"


def _later_by(seen: Exchange, least_ms: int) -> str | None:
    times = [cast("int", call.get("@at_ms", 0)) for call in _calls(seen)]
    if len(times) < 2:
        return "there was no second call"
    waited = times[1] - times[0]
    return None if waited >= least_ms else f"the second came {waited} ms after the first"


def second_waited(seen: Exchange, subject: Subject) -> str | None:
    """The first takes 80 ms or more in these cases."""
    return _later_by(seen, 75)


def retried_after_600_ms(seen: Exchange, subject: Subject) -> str | None:
    return _later_by(seen, 595)


def spliced_bytes(seen: Exchange, subject: Subject) -> str | None:
    arguments = _calls(seen)[1].get("arguments") if len(_calls(seen)) > 1 else None
    data = arguments.data if isinstance(arguments, Text) else b""
    part = b'{"n":0.10,"u":"\\u00e9"}'
    return None if part in data and b'"y":2' in data else f"arguments {data!r}"


def nobody_strayed(seen: Exchange, subject: Subject) -> str | None:
    strays = (seen.answer.tree or {}).get("strays", 0)
    return f"the redirect was followed {strays} times" if strays else None


# ---- gRPC ---------------------------------------------------------------------------------------


def grpc_deadline_within_timeout(seen: Exchange, subject: Subject) -> str | None:
    call = _calls(seen)[0]
    deadline, timeout = call.get("@deadline_ms"), _about(call).get("timeout_ms")
    if not isinstance(deadline, int) or not isinstance(timeout, int):
        return f"deadline {deadline}, timeout_ms {timeout}"
    right = timeout - TRAVEL_MS <= deadline <= timeout + DEADLINE_ROOM_MS
    return None if right else f"deadline {deadline} ms, timeout_ms {timeout}"


def grpc_metadata(seen: Exchange, subject: Subject) -> str | None:
    call = _calls(seen)[0]
    headers, stated = _headers(call), _about(call).get("traceparent")
    if "acp-version" not in headers:
        return "no acp-version in the metadata"
    if stated and headers.get("traceparent") != stated:
        return f"traceparent {headers.get('traceparent')}, context {stated}"
    return None
