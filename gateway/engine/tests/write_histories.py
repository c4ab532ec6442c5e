"""Writes the histories that do not exist yet; files that do are never touched.

python -m gateway.engine.tests.write_histories
"""

from collections.abc import Callable

from msgspec.structs import replace

from acp_spec.bindings.errors import error
from acp_spec.model.calls import OperationState
from acp_spec.model.enums import (
    FeedbackKind,
    Mode,
    OperationStatus,
    SideEffect,
    StepType,
)
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.payload import payload
from acp_spec.model.session import Deviation, Feedback, ManualStep
from acp_spec.model.trajectory import FallbackRow
from gateway.engine.events import AttemptStarted, CallCreated, FeedbackGiven, FinishRequested
from gateway.engine.manual import manual_call
from gateway.engine.tests import histories
from gateway.engine.tests.casting import Cast, Component, Said, Sent, Terms, operation_ended
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import (
    ACCEPTED,
    CATALOG,
    FOUR_CALLS,
    JUDGED_ACTION,
    ONE_ACTION,
    Line,
    accepted,
    by_loop,
    failed,
    first,
    gave,
    gave_text,
    goal,
    judged,
    planned,
    troupe,
    workflow_of,
)

EXACT = b'{"big":9007199254740993,"money":0.10}'
REPLAN_ONCE = by_loop(judged("REPLAN", critique="once more"), ACCEPTED)
MAPPED = (
    ONE_ACTION.replace('n: "1"', "n: input.query") % "read"
    + """
contract:
  semantics:
    domains: {greeting: {values: {HELLO: [hi], BYE: []}}}
    fields: [{in: arguments, action: read, at: /n, domain: greeting}]
"""
)
FALLING = JUDGED_ACTION + "fallback: {output: input.query}\n"


def mapped() -> Play:
    return opened(MAPPED, Terms(input=b'{"query":"Hi"}'), read=gave({"ok": True})).run()


def answered_by_rules() -> Play:
    row = FallbackRow(rule="small", version="r1")
    return opened(ONE_ACTION % "read", Terms(fallback=row, fallback_output=b'{"to":"clerk"}')).run()


def opened(text: str, terms: Terms | None = None, **lines: Line) -> Play:
    cast = Cast(component=troupe(**lines), operation=_ends_at_third_poll)
    return Play(workflow_of(text), CATALOG, cast, terms=terms).open()


def _ends_at_third_poll(call_id: str, nth: int) -> OperationState | AcpError | None:
    if nth < 3:
        return OperationState(status=OperationStatus.RUNNING, poll_after_ms=200)
    return OperationState(status=OperationStatus.SUCCEEDED, output=payload(b"0.10"))


def again(*actions: str) -> Component:
    """RETRY of the calls of these actions in the first pass, then ACCEPT."""

    def judge(sent: Sent) -> Said:
        named = [c.call_id for c in _asked(sent) if c.action in actions]
        return judged("RETRY", retry_call_ids=named, critique="again")

    return by_loop(judge, ACCEPTED)


def _asked(sent: Sent) -> tuple[histories.AskedCall, ...]:
    return histories.asked_calls(sent.body)


def happy() -> Play:
    return opened(FOUR_CALLS, read=gave_text(EXACT)).run()


def bindings() -> Play:
    binding = {"to": "/money", "from": "a", "pointer": "/money"}
    plan = planned(
        goal("a", "read"),
        goal("b", "put", depends_on=["a"], arguments={"x": 1}, bindings=[binding]),
        goal("c", "pay", depends_on=["a"], when=[{"from": "a", "pointer": "/no", "op": "EXISTS"}]),
        goal("d", "peek", depends_on=["c"]),
        goal("e", "read", depends_on=["a"], bindings=[{**binding, "pointer": "/nowhere"}]),
    )
    return opened(FOUR_CALLS, plan=plan, read=gave_text(EXACT)).run()


def retried() -> Play:
    return opened(ONE_ACTION % "read", read=first(1, failed(), gave(1))).run()


def gives_up() -> Play:
    return opened(ONE_ACTION % "pay", pay=None).run()


def loop_with_reuse() -> Play:
    plan = planned(goal("a", "pay", arguments={"n": 1}), goal("b", "read"))
    return opened(FOUR_CALLS, plan=plan, judge=REPLAN_ONCE).run()


def retry_verdict() -> Play:
    plan = planned(goal("a", "pay"), goal("b", "read"))
    return opened(FOUR_CALLS, plan=plan, judge=again("read")).run()


def retry_unsafe() -> Play:
    return opened(JUDGED_ACTION % "pay", judge=again("pay")).run()


def fallback() -> Play:
    return opened(FALLING % "read", judge=judged("FALLBACK", critique="I give up")).run()


def aborted() -> Play:
    return opened(JUDGED_ACTION % "read", judge=judged("ABORT", critique="never")).run()


def failure_judged() -> Play:
    return opened(JUDGED_ACTION % "read", read=failed(Reason.INVALID_REQUEST)).run()


def cancelled() -> Play:
    play = opened(ONE_ACTION % "pay", pay=Said(response=b'{"output":1}', after_ms=4_000))
    play.run(until_ms=100)
    play.cancel()
    return play.run()


def overdue() -> Play:
    return opened(ONE_ACTION % "read", Terms(deadline_ms=800), read=None).run()


def polled() -> Play:
    return opened(ONE_ACTION % "grow", Terms(deadline_ms=300), grow=accepted(400)).run()


def called_back() -> Play:
    play = opened(ONE_ACTION % "grow", grow=accepted(9_000)).run(until_ms=500)
    (call,) = play.state.open_calls()
    play.feed(operation_ended(call, play.now_ms, output=b'{"done":true}'))
    return play.run()


def operation_fails() -> Play:
    play = opened(ONE_ACTION % "grow", grow=accepted(9_000)).run(until_ms=500)
    (call,) = play.state.open_calls()
    failure = error(Reason.INTERNAL, "it broke", side_effect=SideEffect.UNKNOWN)
    ended = operation_ended(call, play.now_ms, failure=failure, effect=SideEffect.UNKNOWN)
    play.feed(ended)
    return play.run()


def manual() -> Play:
    terms = Terms(mode=Mode.MANUAL)
    play = Play(None, CATALOG, Cast(component=troupe(read=gave_text(EXACT))), terms=terms).open()
    wanted = ManualStep(
        step_type=StepType.TOOL, payload=payload(b'{"action":"read"}'), step_key="first"
    )
    made = manual_call(play.state, wanted, world=play.world())
    assert isinstance(made, CallCreated), made
    play.feed(made)
    play.run(until_ms=100)
    play.feed(FinishRequested(at_ms=play.now_ms, output=payload(b"0.10")))
    return play


def deviating() -> Play:
    play = opened(ONE_ACTION % "read")
    served = "tools@2.0.0"
    deviation = Deviation(step="act", role="EXECUTE", intended="tools@1.0.0", served=served)
    place = next(n for n, e in enumerate(play.journal) if isinstance(e, AttemptStarted))
    started = play.journal[place]
    assert isinstance(started, AttemptStarted)
    again = Play(play.workflow, CATALOG, play.cast)
    again.journal = play.journal[:place]
    again.state = histories.folded(again.journal, play.workflow)
    again.now_ms = play.now_ms
    again.feed(histories.deviated(started, deviation))
    return again.run()


def judged_later() -> Play:
    play = opened(ONE_ACTION % "read").run()
    for score, time in ((0.2, "2026-01-02T00:00:00.000Z"), (0.9, "2026-01-01T00:00:00.000Z")):
        feedback = Feedback(kind=FeedbackKind.RATING, score=score, author="a", time=time)
        play.feed(FeedbackGiven(at_ms=play.now_ms, feedback=feedback, feedback_id=time))
    return play


def restarted() -> Play:
    play = opened(ONE_ACTION % "book", book=first(1, None, gave(1))).run(until_ms=50)
    return play.crashed(len(play.journal), after_ms=500).run()


def refused_and_deferred() -> Play:
    def gate(call: object, attempt: int, now_ms: int) -> AcpError | int | None:
        if attempt == 1:
            return error(Reason.OVERLOADED, "full", retry_after_ms=50)
        return 30 if gate_asked.pop() else None

    gate_asked = [False, True]
    cast = Cast(component=troupe(), gate=gate)
    return Play(workflow_of(ONE_ACTION % "pay"), CATALOG, cast).open().run()


def many_loops() -> Play:
    plan = planned(*(goal(f"g{number}", "read") for number in range(8)))
    judge = by_loop(judged("REPLAN"), judged("REPLAN"), judged("ACCEPT"))
    return opened(FOUR_CALLS, plan=plan, judge=judge).run()


def hedged(*lines: Said) -> Play:
    """One call that is hedged after 50 ms; attempt n is answered by line n."""

    def component(sent: Sent) -> Said:
        return lines[sent.attempt - 1]

    terms = Terms(hedge_after_ms=50)
    text = workflow_of(ONE_ACTION % "read")
    return Play(text, CATALOG, Cast(component=component), terms=terms).open().run()


def hedge_wins() -> Play:
    return hedged(replace(gave("slow"), after_ms=900), replace(gave("quick"), after_ms=10))


def hedge_loses() -> Play:
    return hedged(replace(gave("first"), after_ms=80), replace(gave("hedge"), after_ms=500))


def hedge_fails_too() -> Play:
    first, hedge = failed(Reason.TIMEOUT), failed(Reason.UNAVAILABLE)
    return hedged(replace(first, after_ms=200), replace(hedge, after_ms=10), gave("third"))


STORIES: dict[str, tuple[str, str, Callable[[], Play]]] = {
    "happy_four_calls": ("plan, act, remember, judge", FOUR_CALLS, happy),
    "plan_bindings_and_when": ("data by pointer, skips, a broken binding", FOUR_CALLS, bindings),
    "retry_then_success": ("one failure, one retry", ONE_ACTION % "read", retried),
    "none_lost_answer_gives_up": ("never sent twice", ONE_ACTION % "pay", gives_up),
    "replan_reuses_what_was_done": ("a second plan", FOUR_CALLS, loop_with_reuse),
    "retry_verdict": ("one safe call is done again", FOUR_CALLS, retry_verdict),
    "retry_unsafe": ("what was paid is not paid again", JUDGED_ACTION % "pay", retry_unsafe),
    "fallback": ("the workflow's own answer", FALLING % "read", fallback),
    "abort": ("the reflector stops it", JUDGED_ACTION % "read", aborted),
    "failure_judged": ("a failed step is accepted", JUDGED_ACTION % "read", failure_judged),
    "cancel_with_late_answer": ("reset, then the truth", ONE_ACTION % "pay", cancelled),
    "deadline": ("no time left", ONE_ACTION % "read", overdue),
    "operation_by_poll": ("the clock stands still", ONE_ACTION % "grow", polled),
    "operation_by_callback": ("faster than the poll", ONE_ACTION % "grow", called_back),
    "operation_fails": ("it ends unknown", ONE_ACTION % "grow", operation_fails),
    "manual": ("a client runs its own step", "", manual),
    "deviation": ("another version serves", ONE_ACTION % "read", deviating),
    "feedback_after_the_end": ("the last word by its time", ONE_ACTION % "read", judged_later),
    "restart": ("a lost attempt is repeated by key", ONE_ACTION % "book", restarted),
    "values_mapped": ("an argument is brought into its domain", MAPPED, mapped),
    "answered_by_rules": ("a business fallback answers", ONE_ACTION % "read", answered_by_rules),
    "hashed_in_blocks": ("more commands than a block of their hash", FOUR_CALLS, many_loops),
    "hedge_wins": ("the second attempt answers first", ONE_ACTION % "read", hedge_wins),
    "hedge_loses": ("the first attempt answers first", ONE_ACTION % "read", hedge_loses),
    "hedge_fails_too": ("both fail, and one decision", ONE_ACTION % "read", hedge_fails_too),
    "refused_and_deferred": (
        "the gateway itself says no",
        ONE_ACTION % "pay",
        refused_and_deferred,
    ),
}


def main() -> None:
    for name, (story, text, make) in STORIES.items():
        play = make()
        assert play.state.terminal, f"{name} does not come to its end"
        written = histories.write_new(name, histories.of_play(story, text, play))
        print(f"{'wrote' if written else 'kept '} {name}")  # noqa: T201


if __name__ == "__main__":
    main()
