"""Every session is one tree: the session, its steps below it, their attempts below those."""

from collections import Counter

import msgspec

from acp_spec.model.calls import LlmCall, Usage
from acp_spec.model.enums import Mode, StepType
from acp_spec.model.errors import Reason
from acp_spec.model.payload import payload
from acp_spec.model.session import ManualStep
from gateway.engine.events import (
    AttemptEnded,
    CallCreated,
    FinishRequested,
    Late,
    OperationEnded,
    SessionEnded,
    StepEnded,
)
from gateway.engine.manual import manual_call
from gateway.engine.tests import troubles
from gateway.engine.tests.casting import Cast, Said, Terms
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import (
    CATALOG,
    FOUR_CALLS,
    ONE_ACTION,
    by_loop,
    failed,
    gave,
    goal,
    judged,
    planned,
    troupe,
    workflow_of,
)
from gateway.runtime.context import attempt_span
from gateway.runtime.observing import Telemetry
from gateway.telemetry.metrics import Metrics
from gateway.telemetry.spans import Fate, NoSpans, SpanKind, SpanRecord, parse_traceparent

TRACE, SESSION, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"
HEADER = f"00-{TRACE}-{SESSION}-01"
SEEDS = 400


class Kept:
    """A sink that keeps what it is offered."""

    waiting = 0

    def __init__(self) -> None:
        self.fates = dict.fromkeys(Fate, 0)
        self.spans: list[SpanRecord] = []

    def offer(self, record: SpanRecord) -> None:
        self.spans.append(record)

    def close(self) -> None:
        """Nothing waits."""


def traced(play: Play, header: str = HEADER) -> list[SpanRecord]:
    """The spans of what is played from here on."""
    kept = Kept()
    telemetry = Telemetry(Metrics(), kept)
    play.terms = msgspec.structs.replace(play.terms, traceparent=header, caller_span=CALLER)
    play.on_event = lambda before, event, after: telemetry.seen(after, event)
    return kept.spans


def of_kind(spans: list[SpanRecord], word: str) -> list[SpanRecord]:
    return [one for one in spans if one.name.partition(" ")[0] == word]


def told(span: SpanRecord) -> dict[str, str | int | float | bool]:
    return dict(span.attributes)


def played(text: str, terms: Terms | None = None, **lines: Said) -> list[SpanRecord]:
    cast = Cast(component=troupe(**lines))
    play = Play(workflow_of(text), CATALOG, cast, terms=terms)
    spans = traced(play)
    play.open().run()
    return spans


def check_tree(play: Play, spans: list[SpanRecord]) -> None:
    """One root below the caller; every other span below one that is there, and none twice."""
    ids = Counter(one.at.span_id for one in spans)
    assert max(ids.values()) == 1, [one.name for one in spans if ids[one.at.span_id] > 1]
    (root,) = [one for one in spans if one.parent_span_id not in ids]
    assert (root.at.span_id, root.parent_span_id) == (SESSION, CALLER)
    assert {one.at.trace_id for one in spans} == {TRACE}
    by_id = {one.at.span_id: one for one in spans}
    for one in spans:
        assert one.start_ns <= one.end_ns, one.name
        assert {link.span_id for link in one.links} <= set(ids), one.name
        parent = by_id.get(one.parent_span_id)
        if parent is None:
            continue
        assert parent.start_ns <= one.start_ns, (parent.name, one.name)
        if one.kind is SpanKind.INTERNAL:
            assert parent is root
        else:
            assert parent.kind is SpanKind.INTERNAL
            assert told(parent)["acp.step"] == told(one)["acp.step"]
            assert told(parent)["acp.loop"] == told(one)["acp.loop"]
    happened = Counter(type(event) for event in play.journal)
    own = [one for one in spans if "acp.outcome" in told(one)]
    assert len(own) == happened[AttemptEnded]
    assert sum("acp.ended_by" in told(one) for one in spans) == happened[OperationEnded]
    assert sum("acp.late" in told(one) for one in spans) == happened[Late]
    assert len(of_kind(spans, "step")) >= happened[StepEnded]
    assert happened[SessionEnded] == 1


def test_every_troubled_session_is_one_whole_tree() -> None:
    for seed in range(SEEDS):
        play = troubles.random_play(seed)
        spans = traced(play)
        play.open().run()
        check_tree(play, spans)


def test_a_session_that_a_crash_cut_goes_on_in_its_tree() -> None:
    for seed in range(0, SEEDS, 20):
        play = troubles.random_play(seed)
        before = traced(play)
        play.open().run()
        kept = len(play.journal) // 2
        survivor = play.crashed(kept)
        after = traced(survivor)
        survivor.run()
        root = {one.at.span_id for one in after if one.parent_span_id == CALLER}
        assert root <= {SESSION}, "whatever happened, it is the same session"
        steps = {one.at.span_id for one in [*before, *after] if one.kind is SpanKind.INTERNAL}
        for one in after:
            assert one.parent_span_id in {*steps, SESSION, CALLER}, one.name


def test_the_attempts_span_is_the_one_its_component_was_told() -> None:
    spans = played(ONE_ACTION % "read")
    (attempt,) = of_kind(spans, "execute_tool")
    told_it = attempt_span(HEADER, str(told(attempt)["acp.call_id"]), attempt=1)
    assert attempt.at == told_it
    assert told_it.header() == f"00-{TRACE}-{attempt.at.span_id}-01"


def test_levels_names_and_times_of_a_session_that_went_well() -> None:
    spans = played(ONE_ACTION % "read", read=Said(response=gave(1).response, after_ms=40))
    attempt, step, session = spans
    names = [one.name for one in spans]
    assert names == ["execute_tool read", "step act", "invoke_workflow one"]
    kinds = [one.kind for one in spans]
    assert kinds == [SpanKind.CLIENT, SpanKind.INTERNAL, SpanKind.SERVER]
    assert session.end_ns - session.start_ns == 40_000_000
    assert (attempt.start_ns, attempt.end_ns) == (step.start_ns, step.end_ns)
    assert [one.error for one in spans] == ["", "", ""]
    assert told(session)["acp.status"] == "SUCCEEDED"


def test_what_failed_says_so_at_each_level_with_its_reason() -> None:
    spans = played(ONE_ACTION % "pay", pay=failed(Reason.INTERNAL))
    assert {one.error for one in spans} == {"INTERNAL"}
    assert {told(one)["error.type"] for one in spans} == {"INTERNAL"}


def test_a_cancelled_session_is_no_error_and_its_open_step_is_there() -> None:
    play = Play(workflow_of(ONE_ACTION % "read"), CATALOG, Cast(component=troupe(read=None)))
    spans = traced(play)
    play.open()
    play.cancel()
    play.run()
    (session,) = of_kind(spans, "invoke_workflow")
    (step,) = of_kind(spans, "step")
    assert (session.error, told(session)["acp.status"]) == ("", "CANCELLED")
    assert told(step)["acp.status"] == "CANCELLED"


def test_each_pass_of_a_step_is_a_span_of_its_own() -> None:
    play = Play(
        workflow_of(FOUR_CALLS),
        CATALOG,
        Cast(component=troupe(judge=by_loop(judged("REPLAN"), judged("ACCEPT", output=1)))),
    )
    spans = traced(play)
    play.open().run()
    check_tree(play, spans)
    passes = Counter(one.name for one in of_kind(spans, "step"))
    assert passes == {"step plan": 2, "step act": 2, "step remember": 2, "step judge": 2}
    loops = {told(one)["acp.loop"] for one in of_kind(spans, "step")}
    assert loops == {0, 1}


def test_a_plan_that_was_rejected_is_a_pass_that_failed() -> None:
    text = """
workflow: guarded
version: 1.0.0
steps:
  - {name: plan, role: plan}
  - {name: act, role: execute, plan: plan}
output: act.output
limits: {max_loops: 2}
contract: {plan: {max_calls: 1, on_reject: replan}}
"""
    twice = planned(goal("a", "read"), goal("b", "read"))
    once = planned(goal("a", "read"))
    cast = Cast(component=troupe(plan=by_loop(twice, once)))
    play = Play(workflow_of(text), CATALOG, cast)
    spans = traced(play)
    play.open().run()
    check_tree(play, spans)
    errors = [one.error for one in of_kind(spans, "step") if one.name == "step plan"]
    assert errors == ["PLAN_REJECTED", ""]


def test_a_hedge_is_linked_to_what_it_runs_beside_and_the_loser_to_the_winner() -> None:
    slow = Said(response=gave(1).response, after_ms=1_000)
    quick = Said(response=gave(2).response, after_ms=5)
    cast = Cast(component=troupe(read=lambda sent: slow if sent.attempt == 1 else quick))
    terms = Terms(hedge_after_ms=50)
    play = Play(workflow_of(ONE_ACTION % "read"), CATALOG, cast, terms=terms)
    spans = traced(play)
    play.open().run()
    own = [one for one in spans if "acp.outcome" in told(one)]
    by_number = {told(one)["acp.attempt"]: one for one in own}
    first, hedge = by_number[1], by_number[2]
    assert [link.span_id for link in hedge.links] == [first.at.span_id]
    assert [link.span_id for link in first.links] == [hedge.at.span_id]
    assert (told(first)["acp.outcome"], first.error) == ("SUPERSEDED", "")
    assert told(hedge)["acp.hedge"] is True


def test_a_late_answer_is_a_moment_linked_to_its_attempt() -> None:
    late = Said(response=gave(1).response, after_ms=500)
    text = (ONE_ACTION % "read").replace("action: read", "action: read, timeout_ms: 100")
    cast = Cast(component=troupe(read=lambda sent: late if sent.attempt == 1 else gave(2)))
    play = Play(workflow_of(text), CATALOG, cast)
    spans = traced(play)
    play.open().run()
    (moment,) = [one for one in spans if "acp.late" in told(one)]
    (attempt,) = [one for one in spans if told(one).get("acp.outcome") == "TIMEOUT"]
    assert [link.span_id for link in moment.links] == [attempt.at.span_id]
    assert moment.start_ns == moment.end_ns


def test_steps_taken_by_hand_are_steps_too() -> None:
    cast = Cast(component=troupe(read=gave(1)))
    play = Play(None, CATALOG, cast, terms=Terms(mode=Mode.MANUAL))
    spans = traced(play)
    play.open()
    for key in ("first", "second"):
        wanted = ManualStep(
            step_type=StepType.TOOL, payload=payload(b'{"action":"read"}'), step_key=key
        )
        made = manual_call(play.state, wanted, world=play.world())
        assert isinstance(made, CallCreated)
        play.feed(made)
        play.run(until_ms=100)
    play.feed(FinishRequested(at_ms=play.now_ms))
    play.run()
    check_tree(play, spans)
    assert {one.name for one in of_kind(spans, "step")} == {"step first", "step second"}
    assert of_kind(spans, "invoke_workflow")[0].name == "invoke_workflow"


def test_models_tokens_and_cost_are_told_when_the_component_says_them() -> None:
    play = Play(workflow_of(ONE_ACTION % "read"), CATALOG, Cast(component=troupe()))
    spans = traced(play)
    play.open()
    (call_id,) = play.state.calls
    asked = LlmCall(id="l", model="m-1", prompt_token_ids=(1, 2, 3), response_token_ids=(4,))
    play.feed(
        AttemptEnded(
            at_ms=play.now_ms,
            call_id=call_id,
            attempt=1,
            response=payload(b'{"output":1}'),
            usage=Usage(tokens=4, cost_micros=9),
            llm_calls=(asked, asked),
        )
    )
    (attempt,) = of_kind(spans, "execute_tool")
    found = {name: value for name, value in told(attempt).items() if "gen_ai" in name}
    assert found == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.provider.name": "acp",
        "gen_ai.tool.name": "read",
        "gen_ai.tool.type": "extension",
        "gen_ai.tool.call.id": call_id,
        "gen_ai.request.model": "m-1",
        "gen_ai.response.model": "m-1",
        "gen_ai.usage.input_tokens": 6,
        "gen_ai.usage.output_tokens": 2,
    }
    assert (told(attempt)["acp.usage.tokens"], told(attempt)["acp.usage.cost_micros"]) == (4, 9)


def test_a_session_that_is_not_sampled_makes_no_span() -> None:
    play = troubles.random_play(1)
    spans = traced(play, HEADER[:-1] + "0")
    play.open().run()
    assert spans == []


def test_with_tracing_off_nothing_listens_for_what_only_spans_need() -> None:
    off, on = Telemetry(Metrics(), NoSpans()), Telemetry(Metrics(), Kept())
    assert on.hears - off.hears == {StepEnded, OperationEnded, Late}
    assert parse_traceparent(HEADER) is not None
