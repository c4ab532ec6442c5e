"""What may come of a hostile question: the same on both bindings, and no fault of the server."""

import msgspec

from acp_spec.bindings.route import Route
from gateway.tests.asking import Asker, Outcome

SERVER_FAULTS = frozenset(
    {"INTERNAL", "UNKNOWN", "DATA_LOSS", "UNIMPLEMENTED", "DEADLINE_EXCEEDED"}
)
# Succeeds once: after it, the same question meets another state.
CONSUMING = frozenset({"finish_session", "remove_component", "delete_session", "put_workflow"})


def no_fault(outcome: Outcome, about: object) -> None:
    """It succeeded, or the caller was told in the one shape why not."""
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
    if not (http.is_success and route.name in CONSUMING):
        assert http == grpc, (message, http, grpc)
    return http
