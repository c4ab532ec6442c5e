"""Recovery decisions: what is masked, what is drawn, and the record that explains both."""

import hashlib
import inspect

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.enums import SideEffect
from acp_spec.model.errors import Reason
from acp_spec.model.recovery import (
    FEATURE_SCHEMA,
    Decision,
    Option,
    OptionChance,
    PolicyRef,
    RecoveryView,
    Trigger,
)
from gateway.engine import recovery
from gateway.engine.around import Around
from gateway.engine.backoff_policy import BackoffPolicy
from gateway.engine.events import Decided
from gateway.engine.policies import POLICY_NAMES, policy_for
from gateway.engine.states import CallState, Phase
from gateway.engine.step import step
from gateway.engine.tests.casting import START_MS, Cast, Terms
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import (
    CATALOG,
    ONE_ACTION,
    Line,
    failed,
    first,
    gave,
    troupe,
    workflow_of,
)
from gateway.governance.backoff import Backoff

FROZEN_GUARDS = (2, "10ff600d3b7c")


def one(action: str, line: Line, terms: Terms | None = None, text: str = ONE_ACTION) -> Play:
    cast = Cast(component=troupe(**{action: line}))
    return Play(workflow_of(text % action), CATALOG, cast, terms=terms).open().run()


NOW = Around(at_ms=START_MS)


def decided(action: str, line: Line, terms: Terms | None = None) -> Decision:
    return one(action, line, terms).state.decisions[0]


# ---- guardrails ------------------------------------------------------------------------

UNKNOWN = failed(Reason.UNAVAILABLE, SideEffect.UNKNOWN)
HARMLESS = failed(Reason.OVERLOADED, SideEffect.NONE)


@pytest.mark.parametrize(
    ("action", "line", "masked_by"),
    [
        ("read", UNKNOWN, ""),
        ("put", UNKNOWN, ""),
        ("book", UNKNOWN, ""),
        ("pay", HARMLESS, ""),
        ("peek", failed(Reason.UNAVAILABLE), ""),
        ("pay", UNKNOWN, "idempotency"),
        ("pay", failed(Reason.UNAVAILABLE, SideEffect.PERFORMED), "idempotency"),
        ("peek", UNKNOWN, "idempotency"),
        ("read", failed(Reason.INVALID_REQUEST), "not_retryable"),
        ("read", failed(retry_after_ms=40_000), "deadline"),
        ("brief", failed(Reason.UNAVAILABLE, after_ms=300), "idempotency_ttl"),
        ("brief", failed(Reason.UNAVAILABLE, retry_after_ms=298), "idempotency_ttl"),
    ],
)
def test_a_retry_that_must_not_be_is_masked_and_the_record_says_why(
    action: str, line: Line, masked_by: str
) -> None:
    decision = decided(action, line)
    assert decision.options[0].masked_by == masked_by
    assert decision.chosen is (Option.GIVE_UP if masked_by else Option.RETRY)
    assert sum(option.probability for option in decision.options) == pytest.approx(1)


def test_a_session_without_budget_retries_nothing() -> None:
    decision = decided("read", failed(), Terms(retry_budget=0))
    assert decision.options[0].masked_by == "session_budget"


def test_none_is_sent_again_when_every_attempt_is_proven_unsent_or_undone() -> None:
    play = one("pay", first(2, HARMLESS, gave(1)))
    assert [sent.attempt for sent in play.sent] == [1, 2, 3]


def test_one_doubtful_attempt_of_none_forbids_all_later_ones() -> None:
    play = one("pay", first(1, HARMLESS, UNKNOWN))
    assert [sent.attempt for sent in play.sent] == [1, 2]
    assert play.state.decisions[1].options[0].masked_by == "idempotency"


def test_a_key_that_is_outlived_in_a_queue_is_not_sent_again() -> None:
    """The decision was in time; then the attempt waited for its slot longer than the key lives."""

    def gate(call: CallState, attempt: int, now_ms: int) -> int | None:
        waited = now_ms - call.queued_at_ms
        return 400 if attempt == 2 and waited < 400 else None

    line = failed(Reason.UNAVAILABLE, SideEffect.UNKNOWN)
    cast = Cast(component=troupe(brief=line), gate=gate)
    terms = Terms(backoff=Backoff(base_ms=10))
    play = Play(workflow_of(ONE_ACTION % "brief"), CATALOG, cast, terms=terms).open().run()
    assert len(play.sent) == 1
    (call,) = play.state.calls.values()
    assert call.error is not None
    assert call.error.reason == "RETRY_UNSAFE"
    assert call.side_effect is SideEffect.UNKNOWN


def test_a_peers_retry_after_is_the_least_that_is_waited() -> None:
    play = one("read", failed(retry_after_ms=1_234))
    first_end = START_MS + 5
    assert play.sent[1].at_ms >= first_end + 1_234


# ---- the record ------------------------------------------------------------------------


def test_a_decision_records_features_as_they_were_and_what_it_caused() -> None:
    decision = decided("read", first(1, failed(after_ms=70), gave(1)))
    assert (decision.index, decision.after_attempt, decision.caused_attempt) == (0, 1, 2)
    assert decision.trigger is Trigger.FAILED
    assert decision.feature_schema == FEATURE_SCHEMA
    assert decision.guardrails_digest
    seen = decision.features
    assert set(seen) == set(RecoveryView.__struct_fields__)
    assert (seen["last_service_ms"], seen["elapsed_ms"], seen["budget_left"]) == (70, 70, 8)
    assert (seen["effect"], seen["idempotency"], seen["reason"]) == (
        "READ",
        "NATURAL",
        "UNAVAILABLE",
    )


def test_the_record_of_giving_up_names_no_attempt() -> None:
    decision = decided("read", failed(Reason.INVALID_REQUEST))
    assert decision.caused_attempt is None


def test_decision_ids_are_the_call_and_the_index() -> None:
    play = one("read", failed())
    (call_id,) = play.state.calls
    ids = [decision.decision_id for decision in play.state.decisions]
    assert ids == [f"{call_id}.0", f"{call_id}.1", f"{call_id}.2"]


class Coin:
    """A policy that gives both options a chance."""

    ref = PolicyRef(name="coin", version="1", digest="d")

    def __init__(self, *chances: OptionChance) -> None:
        self._chances = chances

    def options(self, view: RecoveryView) -> tuple[OptionChance, ...]:
        return self._chances


def coin(retry: float, *waits: int) -> Coin:
    chances = [OptionChance(option=Option.RETRY, wait_ms=w, probability=retry) for w in waits]
    rest = 1 - retry * len(waits)
    return Coin(*chances, OptionChance(option=Option.GIVE_UP, probability=rest))


def deciding(action: str, line: Line) -> tuple[Play, CallState]:
    """A session at the moment when its call waits for a decision."""
    play = one(action, line)
    (call,) = play.state.calls.values()
    return play, msgspec.structs.replace(call, retries_left=2, decisions=0)


def test_the_draw_is_a_hash_and_can_be_computed_again() -> None:
    play, call = deciding("read", failed())
    once, again = (
        recovery.decide(
            play.state,
            call,
            policy=coin(0.5, 10),
            trigger=Trigger.FAILED,
            around=NOW,
        )
        for _ in range(2)
    )
    assert once == again
    other = msgspec.structs.replace(call, decisions=1)
    later = recovery.decide(
        play.state,
        other,
        policy=coin(0.5, 10),
        trigger=Trigger.FAILED,
        around=NOW,
    )
    assert later.draw != once.draw


def test_probabilities_of_what_is_left_are_scaled_to_one() -> None:
    play, call = deciding("read", failed())
    decision = recovery.decide(
        play.state,
        call,
        policy=coin(0.25, 10, 90_000),
        trigger=Trigger.FAILED,
        around=NOW,
    )
    assert [round(o.probability, 9) for o in decision.options] == [
        round(1 / 3, 9), 0.0, round(2 / 3, 9),
    ]  # fmt: skip
    assert decision.options[1].masked_by == "deadline"


@given(st.integers(0, 300), st.floats(0, 1))
def test_a_masked_option_is_never_drawn(index: int, retry: float) -> None:
    play, call = MASKED
    numbered = msgspec.structs.replace(call, decisions=index)
    decision = recovery.decide(
        play.state,
        numbered,
        policy=coin(retry, 10),
        trigger=Trigger.FAILED,
        around=NOW,
    )
    assert decision.chosen is Option.GIVE_UP


@given(st.integers(0, 300))
def test_the_option_drawn_is_the_one_the_draw_falls_on(index: int) -> None:
    play, call = OPEN
    numbered = msgspec.structs.replace(call, decisions=index)
    decision = recovery.decide(
        play.state,
        numbered,
        policy=coin(0.4, 10),
        trigger=Trigger.FAILED,
        around=NOW,
    )
    assert decision.chosen is (Option.RETRY if decision.draw < 0.4 else Option.GIVE_UP)


CHANCES = st.lists(
    st.tuples(st.sampled_from(list(Option)), st.floats(), st.integers(-9, 9)), max_size=5
)


@given(CHANCES, st.integers(0, 50))
def test_whatever_numbers_a_policy_gives_something_possible_is_chosen(
    chances: list[tuple[Option, float, int]], index: int
) -> None:
    """A learned policy may answer NaN; the draw then fell on nothing at all."""
    play, call = OPEN
    policy = Coin(*(OptionChance(option=o, probability=p, wait_ms=w) for o, p, w in chances))
    numbered = msgspec.structs.replace(call, decisions=index)
    decision = recovery.decide(
        play.state, numbered, policy=policy, trigger=Trigger.FAILED, around=NOW
    )
    assert sum(option.probability for option in decision.options) == pytest.approx(1)
    drawn = [o for o in decision.options if o.option is decision.chosen and o.probability > 0]
    assert drawn
    assert all(option.wait_ms >= 0 for option in decision.options)


@given(st.integers(0, 200))
def test_of_several_retries_the_one_that_was_drawn_says_how_long_to_wait(index: int) -> None:
    """The first RETRY of the list was taken, whichever of them the draw had fallen on."""
    play, call = OPEN
    numbered = msgspec.structs.replace(call, decisions=index)
    decision = recovery.decide(
        play.state,
        numbered,
        policy=coin(0.5, 10, 900),
        trigger=Trigger.FAILED,
        around=NOW,
    )
    expected = 10 if decision.draw < 0.5 else 900
    assert recovery.chosen(decision).wait_ms == expected
    deciding_call = msgspec.structs.replace(numbered, phase=Phase.DECIDING)
    state = msgspec.structs.replace(play.state, ending=None, budget_left=2)
    state.calls = {call.created.call_id: deciding_call}
    event = Decided(at_ms=state.now_ms, call_id=call.created.call_id, decision=decision)
    after, _ = step(state, event)
    waits = after.calls[call.created.call_id]
    assert waits.resume_at_ms == state.now_ms + expected


MASKED = deciding("pay", UNKNOWN)
OPEN = deciding("read", failed())


def test_the_guards_name_every_reason_once() -> None:
    names = [name for name, _ in recovery.GUARDS]
    assert len(names) == len(set(names))
    assert {
        "not_retryable",
        "idempotency",
        "idempotency_ttl",
        "call_retries",
        "session_budget",
        "retry_tokens",
    } == set(names)


# ---- the backoff policy ----------------------------------------------------------------


def test_backoff_always_proposes_a_retry_and_its_digest_names_its_parameters() -> None:
    play, call = deciding("read", failed())
    seen = recovery.view(play.state, call, trigger=Trigger.FAILED, around=NOW)
    retry, give_up = BackoffPolicy().options(seen)
    assert (retry.option, retry.probability) == (Option.RETRY, 1.0)
    assert give_up.probability == 0.0
    assert BackoffPolicy().ref == BackoffPolicy(Backoff()).ref
    assert BackoffPolicy(Backoff(base_ms=1)).ref.digest != BackoffPolicy().ref.digest


def test_a_steps_policy_goes_before_the_workflows_and_that_before_the_default() -> None:
    text = ONE_ACTION % "read" + "recovery: {policy: backoff, base_ms: 7}\n"
    own = text.replace("action: read", "action: read, recovery: {policy: backoff, base_ms: 9}")
    defaults = Backoff(base_ms=5, max_ms=50)
    expected = {own: Backoff(base_ms=9, max_ms=50), text: Backoff(base_ms=7, max_ms=50)}
    for source, backoff in expected.items():
        policy = policy_for(workflow_of(source), "act", defaults=defaults)
        assert policy.ref == BackoffPolicy(backoff).ref
    assert policy_for(None, "act", defaults=defaults).ref == BackoffPolicy(defaults).ref
    assert POLICY_NAMES == ("backoff",)


def test_whoever_changes_a_guard_raises_the_guardrails_version() -> None:
    """The digest was a constant once: rows from before and after a change looked alike."""
    guards = (recovery._unsafe, recovery._outlived, recovery.outlived, recovery._mask)
    text = "".join(inspect.getsource(guard) for guard in guards) + repr(
        [name for name, _ in recovery.GUARDS]
    )
    found = (recovery.GUARDRAILS_VERSION, hashlib.sha256(text.encode()).hexdigest()[:12])
    assert found == FROZEN_GUARDS, "raise GUARDRAILS_VERSION, then write both numbers here"
