"""What may come of a hostile question: the same on both bindings, and no fault of the server."""

import msgspec

from acp_spec.bindings.route import Route
from gateway.tests.asking import Asker, Outcome

SERVER_FAULTS = frozenset(
    {"INTERNAL", "UNKNOWN", "DATA_LOSS", "UNIMPLEMENTED", "DEADLINE_EXCEEDED"}
)
# What a gateway says of a deadline that the work before it makes too short: nobody's fault.
TOO_SHORT = "deadline_ms: "
# Succeeds once: after it, the same question meets another state.
CONSUMING = frozenset({"finish_session", "remove_component", "delete_session", "put_workflow"})


def is_of_the_moment(outcome: Outcome) -> bool:
    """The same question may get another answer a moment later: a queue stood, or a deadline was too
    short for what was known by then."""
    too_short = outcome.reason == "TIMEOUT" and outcome.message.startswith(TOO_SHORT)
    return too_short or outcome.reason == "OVERLOADED"


def no_fault(outcome: Outcome, about: object) -> None:
    """It succeeded, or the caller was told in the one shape why not."""
    if is_of_the_moment(outcome):
        return
    assert outcome.code not in SERVER_FAULTS, (about, outcome)
    assert outcome.status < 500 or outcome.code == "UNAVAILABLE", (about, outcome)
    if not outcome.is_success:
        assert outcome.reason, (about, outcome)
        assert outcome.message, (about, outcome)


def agreed(asker: Asker, route: Route, message: msgspec.Struct) -> Outcome:
    """Ask over both bindings; they agree on code and reason, and neither is at fault."""
    http, grpc = asker.both(route, message)
    no_fault(http, message)
    no_fault(grpc, message)
    passing = is_of_the_moment(http) or is_of_the_moment(grpc)
    if not (passing or (http.is_success and route.name in CONSUMING)):
        assert http == grpc, (message, http, grpc)
    return http
