"""Who answers: components, rules, and the way there and back, over any order of ends."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary, SessionStatus
from acp_spec.model.errors import Reason
from gateway.governance.fallback_track import (
    FELL_BACK,
    Ended,
    Outcome,
    Route,
    SessionEnd,
    Standing,
    Terms,
    Track,
    check,
    observe,
    outcome_of,
    take,
)

TERMS = Terms(after_failures=3, probe_every=4, return_after=2)


def ended(track: Track, outcome: Outcome, *, at_ms: int, trips: int = -1) -> Track:
    """A session of the way that counts now ends so."""
    route = Route.AGENTIC if track.standing is Standing.AGENTIC else Route.PROBE
    trips = track.trips if trips < 0 else trips
    end = Ended(route=route, outcome=outcome, trips=trips, at_ms=at_ms)
    return observe(track, TERMS, ended=end)


def tripped(at_ms: int = 100) -> Track:
    track = Track()
    for _ in range(TERMS.after_failures):
        track = ended(track, Outcome.FAILURE, at_ms=at_ms)
    assert track.standing is Standing.RULES
    return track


def test_only_failures_in_a_row_lead_to_the_rules() -> None:
    track = Track()
    for outcome in (Outcome.FAILURE, Outcome.FAILURE, Outcome.SUCCESS) * 3:
        track = ended(track, outcome, at_ms=1)
        assert track.standing is Standing.AGENTIC
    for at_ms in (1, 1, 2):
        track = ended(track, Outcome.FAILURE, at_ms=at_ms)
    assert (track.standing, track.since_ms, track.trips) == (Standing.RULES, 2, 1)


def test_what_says_nothing_neither_counts_nor_forgives() -> None:
    track = Track()
    for outcome in (Outcome.FAILURE, Outcome.NEITHER, Outcome.FAILURE, Outcome.NEITHER):
        track = ended(track, outcome, at_ms=1)
    assert ended(track, Outcome.FAILURE, at_ms=1).standing is Standing.RULES


def test_one_session_in_k_tries_the_components() -> None:
    track, routes = tripped(), []
    for _ in range(12):
        routes.append(check(track, TERMS))
        track = take(track)
    assert [place for place, route in enumerate(routes, 1) if route is Route.PROBE] == [4, 8, 12]
    assert set(routes) == {Route.PROBE, Route.RULES}


def test_successes_in_a_row_lead_back_and_one_failure_begins_anew() -> None:
    track = ended(tripped(), Outcome.SUCCESS, at_ms=200)
    track = ended(track, Outcome.FAILURE, at_ms=210)
    track = ended(track, Outcome.SUCCESS, at_ms=220)
    assert track.standing is Standing.RULES
    track = ended(track, Outcome.SUCCESS, at_ms=230)
    assert (track.standing, track.failures, track.since_ms) == (Standing.AGENTIC, 0, 230)


def test_a_session_from_before_the_change_says_nothing() -> None:
    back = ended(ended(tripped(), Outcome.SUCCESS, at_ms=200), Outcome.SUCCESS, at_ms=300)
    assert back.standing is Standing.AGENTIC
    for _ in range(10):
        back = ended(back, Outcome.FAILURE, at_ms=400, trips=0)
    assert back.standing is Standing.AGENTIC
    late_probe = Ended(route=Route.PROBE, outcome=Outcome.FAILURE, trips=1, at_ms=400)
    assert observe(back, TERMS, ended=late_probe) is back


def test_answers_of_the_rules_never_count_as_success() -> None:
    track = tripped()
    by_rules = Ended(route=Route.RULES, outcome=Outcome.SUCCESS, trips=1, at_ms=200)
    for _ in range(10):
        track = observe(track, TERMS, ended=by_rules)
    assert (track.standing, track.successes) == (Standing.RULES, 0)


FAILED = SessionStatus.FAILED


@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (SessionEnd(status=SessionStatus.SUCCEEDED), Outcome.SUCCESS),
        (SessionEnd(status=SessionStatus.SUCCEEDED, fell_back=True), Outcome.SUCCESS),
        (SessionEnd(status=SessionStatus.CANCELLED), Outcome.NEITHER),
        (SessionEnd(status=FAILED, error=error(Reason.UNAVAILABLE, "")), Outcome.FAILURE),
        (SessionEnd(status=FAILED, error=error(Reason.TIMEOUT, "")), Outcome.FAILURE),
        (
            SessionEnd(status=FAILED, error=error(Reason.TIMEOUT, ""), shortened=True),
            Outcome.NEITHER,
        ),
        (SessionEnd(status=FAILED, error=error(Reason.INVALID_REQUEST, "")), Outcome.NEITHER),
        (SessionEnd(status=FAILED, error=error(Reason.CONTRACT_VIOLATION, "")), Outcome.FAILURE),
        (
            SessionEnd(
                status=FAILED,
                error=error(Reason.CONTRACT_VIOLATION, "", boundary=Boundary.GATEWAY),
            ),
            Outcome.NEITHER,
        ),
        (
            SessionEnd(status=FAILED, error=error(Reason.INTERNAL, "", boundary=Boundary.CLIENT)),
            Outcome.NEITHER,
        ),
    ],
)
def test_the_clients_faults_never_count(end: SessionEnd, outcome: Outcome) -> None:
    assert outcome_of(end, None) is outcome


def test_declared_reasons_count_and_no_others_but_never_a_clients_fault() -> None:
    counts = frozenset({"TIMEOUT", FELL_BACK})

    def of(**fields: Any) -> Outcome:
        return outcome_of(SessionEnd(**fields), counts)

    assert of(status=FAILED, error=error(Reason.UNAVAILABLE, "")) is Outcome.NEITHER
    assert of(status=FAILED, error=error(Reason.TIMEOUT, "")) is Outcome.FAILURE
    client = error(Reason.TIMEOUT, "", boundary=Boundary.CLIENT)
    assert of(status=FAILED, error=client) is Outcome.NEITHER
    assert of(status=SessionStatus.SUCCEEDED, fell_back=True) is Outcome.FAILURE


class Traffic(RuleBasedStateMachine):
    """Sessions open and end in any order, whatever the clock says meanwhile; the track is compared
    with a plain account of it."""

    @initialize(n=st.integers(1, 4), k=st.integers(1, 4), m=st.integers(1, 3))
    def begin(self, n: int, k: int, m: int) -> None:
        self.terms = Terms(after_failures=n, probe_every=k, return_after=m)
        self.track, self.now_ms = Track(), 0
        self.open: list[tuple[Route, int, int]] = []
        self.period = 0
        self.row: list[Outcome] = []
        self.asked = 0

    @rule(now_ms=st.integers(0, 1_000))
    def sets_the_clock(self, now_ms: int) -> None:
        self.now_ms = now_ms

    @rule()
    def opens(self) -> None:
        route = check(self.track, self.terms)
        if self.track.standing is Standing.RULES:
            self.asked += 1
            assert (route is Route.PROBE) is (self.asked % self.terms.probe_every == 0)
        else:
            assert route is Route.AGENTIC
        self.track = take(self.track)
        self.open.append((route, self.track.trips, self.period))

    @rule(data=st.data(), outcome=st.sampled_from(Outcome))
    def ends(self, data: st.DataObject, outcome: Outcome) -> None:
        if not self.open:
            return
        which = data.draw(st.integers(0, len(self.open) - 1))
        route, trips, period = self.open.pop(which)
        end = Ended(route=route, outcome=outcome, trips=trips, at_ms=self.now_ms)
        before, self.track = self.track, observe(self.track, self.terms, ended=end)
        wanted = Route.AGENTIC if before.standing is Standing.AGENTIC else Route.PROBE
        if period == self.period and route is wanted and outcome is not Outcome.NEITHER:
            self.row.append(outcome)
        if self._turns(before.standing):
            assert self.track.standing is not before.standing
            self.period, self.row, self.asked = self.period + 1, [], 0
        else:
            assert self.track.standing is before.standing

    def _turns(self, standing: Standing) -> bool:
        """Is the end of the account a row long enough to change who answers?"""
        agentic = standing is Standing.AGENTIC
        length = self.terms.after_failures if agentic else self.terms.return_after
        what = Outcome.FAILURE if agentic else Outcome.SUCCESS
        return self.row[-length:] == [what] * length

    @invariant()
    def counts_stay_within_the_terms(self) -> None:
        if not hasattr(self, "track"):
            return
        assert self.track.successes < self.terms.return_after
        if self.track.standing is Standing.AGENTIC:
            assert self.track.failures < self.terms.after_failures


TestTraffic = Traffic.TestCase
TestTraffic.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
