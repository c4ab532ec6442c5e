"""When a workflow's rules answer instead of its components: N failures in a row (mission R15).

One `Track` per workflow and tenant, with hysteresis: `after_failures` in a row lead to the rules,
then one session in `probe_every` tries the components again, and `return_after` successes of those
in a row lead back. Pure: `check` asks, `take` counts who was asked, `observe` hears how it ended.
A session that began before the last change says nothing about what holds now; which one it began
under is told by `trips`, never by a clock, which may be set back.
"""

from typing import Final

import msgspec

from acp_spec.model.enums import Boundary, SessionStatus, Word
from acp_spec.model.errors import AcpError, Reason

AFTER_FAILURES: Final = 5
"""A row of five by chance needs a success rate far under what anybody would run."""
PROBE_EVERY: Final = 10
"""A tenth of the traffic finds the way back within seconds and hurts few."""
RETURN_AFTER: Final = 3
"""One success may be luck."""
FELL_BACK: Final = "FELL_BACK"
"""In `counts`: a session that its own reflector sent to the workflow's fallback."""


class Terms(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The thresholds of a contract."""

    after_failures: int = AFTER_FAILURES
    probe_every: int = PROBE_EVERY
    return_after: int = RETURN_AFTER


class Standing(Word):
    """Who answers now."""

    AGENTIC = "AGENTIC"
    RULES = "RULES"


class Route(Word):
    """Which way one session goes. PROBE: by the components, to see whether they are well again."""

    AGENTIC = "AGENTIC"
    PROBE = "PROBE"
    RULES = "RULES"


class Outcome(Word):
    """How a session of the components ended, as far as it says something about them."""

    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"
    NEITHER = "NEITHER"


class Track(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """How one workflow stands for one tenant. `asked`: sessions since the rules took over; `trips`:
    how often they did. `since_ms` is for people."""

    standing: Standing = Standing.AGENTIC
    failures: int = 0
    successes: int = 0
    asked: int = 0
    trips: int = 0
    since_ms: int = 0


class Ended(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The end of a session that went by `route`. `trips`: of the track when it opened."""

    route: Route
    outcome: Outcome
    trips: int
    at_ms: int


def check(track: Track, terms: Terms) -> Route:
    """The way of the next session."""
    if track.standing is Standing.AGENTIC:
        return Route.AGENTIC
    is_turn = (track.asked + 1) % terms.probe_every == 0
    return Route.PROBE if is_turn else Route.RULES


def take(track: Track) -> Track:
    """A session goes the way that `check` said."""
    if track.standing is Standing.AGENTIC:
        return track
    return msgspec.structs.replace(track, asked=track.asked + 1)


def observe(track: Track, terms: Terms, *, ended: Ended) -> Track:
    """What the end of a session changes."""
    before = track.standing
    counts = Route.AGENTIC if before is Standing.AGENTIC else Route.PROBE
    stale = ended.trips != track.trips or ended.route is not counts
    if stale or ended.outcome is Outcome.NEITHER:
        return track
    failed = ended.outcome is Outcome.FAILURE
    if before is Standing.AGENTIC:
        return _agentic(track, terms, failed=failed, at_ms=ended.at_ms)
    return _probed(track, terms, failed=failed, at_ms=ended.at_ms)


def _agentic(track: Track, terms: Terms, *, failed: bool, at_ms: int) -> Track:
    if not failed:
        return msgspec.structs.replace(track, failures=0) if track.failures else track
    failures = track.failures + 1
    if failures < terms.after_failures:
        return msgspec.structs.replace(track, failures=failures)
    return Track(standing=Standing.RULES, failures=failures, trips=track.trips + 1, since_ms=at_ms)


def _probed(track: Track, terms: Terms, *, failed: bool, at_ms: int) -> Track:
    if failed:
        return msgspec.structs.replace(track, successes=0) if track.successes else track
    successes = track.successes + 1
    if successes < terms.return_after:
        return msgspec.structs.replace(track, successes=successes)
    return Track(trips=track.trips, since_ms=at_ms)


class SessionEnd(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is known of a session's end. `shortened`: its client gave it less time than it needs."""

    status: SessionStatus
    error: AcpError | None = None
    fell_back: bool = False
    shortened: bool = False


def outcome_of(end: SessionEnd, counts: frozenset[str] | None) -> Outcome:
    """Does this end count as a failure? `counts`: the declared reasons; None: the default rule.

    Never what the client did: a cancel, a fault at boundary CLIENT, a deadline of its own that was
    shorter. By default neither what an expression or a mapping of the gateway refused, which may be
    the client's data; everything else that failed counts.
    """
    if end.status is SessionStatus.CANCELLED:
        return Outcome.NEITHER
    if end.status is SessionStatus.SUCCEEDED:
        fell = end.fell_back and counts is not None and FELL_BACK in counts
        return Outcome.FAILURE if fell else Outcome.SUCCESS
    failure = end.error
    if failure is None or failure.boundary is Boundary.CLIENT:
        return Outcome.NEITHER
    if failure.reason == Reason.TIMEOUT.value and end.shortened:
        return Outcome.NEITHER
    if counts is not None:
        return Outcome.FAILURE if failure.reason in counts else Outcome.NEITHER
    own = failure.boundary is Boundary.GATEWAY and failure.reason in _MAYBE_THE_DATA
    return Outcome.NEITHER if own else Outcome.FAILURE


_MAYBE_THE_DATA: Final = frozenset(
    {Reason.CONTRACT_VIOLATION.value, Reason.SEMANTIC_MISMATCH.value}
)
