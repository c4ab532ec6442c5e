"""What must hold in every session, whatever happens: checked at each event and at the end."""

import copy

from acp_spec.model.enums import Effect, Idempotency, SideEffect
from gateway.engine import replay, shards, views
from gateway.engine.events import (
    AnyEvent,
    AttemptEnded,
    AttemptStarted,
    CallCreated,
    Late,
    OperationEnded,
    SessionEnded,
)
from gateway.engine.states import RETRIES_PER_CALL, Phase, SessionState
from gateway.engine.step import step
from gateway.engine.tests.playing import Play
from gateway.engine.trajectories import trajectory


def watch(play: Play) -> Play:
    """Check the laws at every event of this play."""
    play.on_event = check_event
    return play


def check_event(before: SessionState, event: AnyEvent, after: SessionState) -> None:
    assert after.sequence == before.sequence + 1 == sum(after.version)
    assert all(new >= old for new, old in zip(after.version, before.version, strict=True))
    assert after.now_ms >= before.now_ms
    assert 0 <= after.budget_left <= after.opened.retry_budget, "the budget is lent, never made"
    if before.terminal:
        assert after.status is before.status
        assert after.error == before.error
    if isinstance(event, AttemptStarted):
        check_start(before, event)
    for call_id, old in before.calls.items():
        new = after.calls[call_id]
        assert len(new.attempts) <= 1 + RETRIES_PER_CALL
        assert [a.number for a in new.attempts] == list(range(1, len(new.attempts) + 1))
        if old.phase is Phase.SETTLED and new is not old:
            outcome = (old.status, bytes(old.output), old.error)
            assert (new.status, bytes(new.output), new.error) == outcome, "one outcome per call"
            assert isinstance(event, Late), "only a late answer touches a settled call"


def check_start(before: SessionState, event: AttemptStarted) -> None:
    assert before.ending is None, "nothing is sent once the session is ending"
    assert not before.terminal
    assert event.timeout_ms > 0
    call = before.calls[event.call_id]
    created = call.created
    earlier = [a for a in call.attempts if a.started and not (a.ended and a.ended.not_sent)]
    if event.hedge:
        assert (created.effect, created.idempotency) == (Effect.READ, Idempotency.NATURAL)
        assert len(call.in_flight) == 1, "a hedge stands beside one attempt that is out"
        first = call.in_flight[0].started
        assert first is not None
        assert event.instance != first.instance, "it goes elsewhere"
    else:
        assert not call.in_flight, "only a hedge stands beside another attempt"
    if created.idempotency is Idempotency.NONE:
        for attempt in earlier:
            assert attempt.side_effect is SideEffect.NONE, (
                "NONE is sent again only if proven undone"
            )
    if created.idempotency is Idempotency.BY_KEY and call.first_sent_ms is not None:
        assert event.at_ms - call.first_sent_ms < created.idempotency_ttl_ms, "the key is forgotten"
    leases = [a.started.lease for a in call.attempts if a.started]
    assert all(event.lease <= lease for lease in leases), "a later attempt never carries more"


def check_end(play: Play) -> None:
    """The laws of a session that is over."""
    state = play.state
    assert state.terminal, f"the session never ends: {[c.phase for c in state.open_calls()]}"
    assert not state.open_calls()
    ended = [(e.call_id, e.attempt) for e in play.journal if isinstance(e, AttemptEnded)]
    assert len(ended) == len(set(ended)), "one terminal event per attempt"
    started = {(e.call_id, e.attempt) for e in play.journal if isinstance(e, AttemptStarted)}
    assert set(ended) == started, "every attempt that began has its end"
    created = [e.call_id for e in play.journal if isinstance(e, CallCreated)]
    assert len(created) == len(set(created)), "a call id names one call"
    retries = sum(max(0, len(call.attempts) - 1) for call in state.calls.values())
    spent = sum(e.retries_spent for e in play.journal if isinstance(e, AttemptEnded))
    assert retries + spent <= state.opened.retry_budget
    assert play.ended <= 1
    check_told(play)


def check_told(play: Play) -> None:
    """The error of a session never says less than what its answers said was done."""
    last: dict[tuple[str, int], SideEffect] = {}
    for event in play.journal:
        if isinstance(event, SessionEnded):
            break
        if not isinstance(event, (AttemptEnded, OperationEnded, Late)):
            continue
        attempt = (event.call_id, event.attempt)
        if not isinstance(event, Late) or last[attempt] is SideEffect.UNKNOWN:
            last[attempt] = event.side_effect
    failure = play.state.error
    if failure is None:
        return
    if SideEffect.PERFORMED in last.values():
        assert failure.side_effect is SideEffect.PERFORMED
    elif SideEffect.UNKNOWN in last.values():
        assert failure.side_effect is SideEffect.UNKNOWN
    else:
        assert failure.side_effect is SideEffect.NONE


def check_replay(play: Play) -> None:
    """The journal alone gives the same state and the same commands."""
    found = replay.check(play.journal, play.workflow)
    assert found.same, found.difference
    state, _ = replay.play(play.journal, play.workflow)
    assert state == play.state


def check_views(state: SessionState) -> None:
    """Whatever happened, it can be shown."""
    assert trajectory(state).session_id == state.session_id
    views.session_view(state)
    views.lineage_page(state)
    shards.changed(None, state)


def check_purity(state: SessionState, event: AnyEvent) -> None:
    """`step` leaves its argument as it was."""
    kept = {id(state.workflow): state.workflow, id(state.opened): state.opened}
    before = copy.deepcopy(state, kept)
    step(state, event)
    assert state == before
