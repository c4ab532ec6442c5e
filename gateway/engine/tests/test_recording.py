"""A twin's calls are answered from the record: by place, action and meaning, each once."""

import json

import msgspec

from acp_spec.model.card import Action, Card
from acp_spec.model.enums import Effect, Role, SessionStatus, SideEffect, StepRole
from acp_spec.model.payload import payload
from acp_spec.model.trajectory import Attempt, Trajectory
from gateway.engine.catalog import Catalog, Offer
from gateway.engine.events import CallCreated, Opened
from gateway.engine.pins import swapped
from gateway.engine.recording import Recording, matched, recording
from gateway.engine.states import CallState, SessionState
from gateway.engine.workflow_file import parse_stored

PRIMARY, TWIN = "01J0000000000000000000000A", "01J0000000000000000000000B"
AT = ("2026-11-29T10:00:00.000Z", "2026-11-29T10:00:00.250Z")


def row(call_id: str, step: str, arguments: str, **more: object) -> Attempt:
    given: dict[str, object] = {
        "attempt": 1,
        "role": "EXECUTE",
        "action": "pay",
        "effect": Effect.WRITE,
        "output": payload(b'"' + call_id.encode() + b'"'),
        "side_effect": SideEffect.PERFORMED,
        "queued_at": AT[0],
        "sent_at": AT[0],
        "ended_at": AT[1],
        **more,
    }
    text = payload(arguments.encode())
    return Attempt(call_id=call_id, step=step, arguments=text, **given)  # type: ignore[arg-type]


def record(*rows: Attempt) -> Recording:
    return recording(
        Trajectory(
            schema_version="1.0",
            session_id=PRIMARY,
            lineage_id=f"{PRIMARY}.0123456789ab",
            status=SessionStatus.SUCCEEDED,
            calls=rows,
        )
    )


def twin(*calls: tuple[str, str]) -> SessionState:
    """A twin that made these calls (step and sub-goal as `step/goal`, arguments)."""
    opened = Opened(at_ms=0, session_id=TWIN, lineage_id=f"{TWIN}.ba9876543210", twin_of=PRIMARY)
    state = SessionState(workflow=None, opened=opened)
    for number, (place, arguments) in enumerate(calls):
        step, _, goal = place.partition("/")
        created = CallCreated(
            at_ms=0,
            call_id=f"t{number}",
            step=step,
            sub_goal=goal,
            role=StepRole.OBSERVE if step == "remember" else StepRole.EXECUTE,
            action="" if step == "remember" else "pay",
            body=payload(b"{}"),
            body_digest="",
            arguments=payload(arguments.encode()),
        )
        state.calls[created.call_id] = CallState(created=created)
    return state


def answers(found: Recording, state: SessionState) -> list[str]:
    """Which recorded call answers each of the twin's calls; - for none."""
    matches = [matched(found, state, call=call) for call in state.calls.values()]
    return [one.call_id if one else "-" for one in matches]


def test_arguments_are_compared_by_what_they_mean() -> None:
    found = record(row("a", "fee", '{"amount": 1.0, "to": "x"}'))
    assert answers(found, twin(("fee", '{"to":"x","amount":1}'))) == ["a"]
    assert answers(found, twin(("fee", '{"to":"x","amount":2}'))) == ["-"]


def test_the_same_place_comes_before_any_other() -> None:
    same = '{"amount": 1}'
    found = record(
        row("elsewhere", "other", same),
        row("goal_b", "act", same, sub_goal="b"),
        row("goal_a", "act", same, sub_goal="a"),
    )
    assert answers(found, twin(("act/a", same))) == ["goal_a"]
    assert answers(found, twin(("act/z", same))) == ["goal_b"]
    assert answers(found, twin(("renamed", same))) == ["elsewhere"]


def test_each_recorded_call_answers_one_call() -> None:
    same = '{"amount": 1}'
    found = record(row("first", "act", same), row("second", "act", same))
    assert answers(found, twin(*[("act", same)] * 3)) == ["first", "second", "-"]


def test_the_twins_own_ids_are_the_primarys() -> None:
    found = record(row("a", "fee", json.dumps({"session": PRIMARY})))
    assert answers(found, twin(("fee", json.dumps({"session": TWIN})))) == ["a"]


def test_observe_calls_are_matched_by_their_step() -> None:
    observed = row(
        "seen", "remember", "{}", role="OBSERVE", action="", output=payload(b'{"stored": 1}')
    )
    state = twin(("remember", '{"time": "another"}'))
    call = state.calls["t0"]
    found = matched(record(observed), state, call=call)
    assert found is not None
    assert bytes(found.answer(1).response) == b'{"stored": 1}'


def test_each_attempt_gets_its_own_end_and_then_the_last_again() -> None:
    failed = msgspec.structs.replace(row("a", "fee", "{}"), attempt=1)
    done = msgspec.structs.replace(row("a", "fee", "{}"), attempt=2, output=payload(b"2"))
    (call,) = record(failed, done).calls
    assert [json.loads(bytes(call.answer(n).response))["output"] for n in (1, 2, 3)] == ["a", 2, 2]
    assert call.answer(1).took_ms == 250


def test_what_never_ended_and_what_was_taken_over_is_no_answer() -> None:
    open_row = row("open", "fee", "{}", ended_at="")
    taken_over = row("reused", "fee", "{}", ended_at="", sent_at="", reused=True)
    assert record(open_row, taken_over).calls == ()


def test_actions_that_were_writes_may_not_be_sent() -> None:
    read = row("r", "look", "{}", action="look", effect=Effect.READ)
    assert record(row("w", "fee", "{}"), read).writes == {"pay"}


# ---- whose pins a candidate takes --------------------------------------------------------------

WORKFLOW = b"""
workflow: town
version: 1.0.0
steps:
  - {name: plan, role: plan, component: mayor}
  - {name: act, role: execute, plan: plan}
  - {name: fee, role: execute, component: bank@^1, action: fee}
  - {name: any, role: execute, component: bank, action: fee}
  - {name: audit, role: execute, component: bank, action: audit}
"""


def offer(name: str, version: str, *actions: str) -> Offer:
    card = Card(
        name=name,
        version=version,
        acp_versions=("1.0",),
        roles=(Role.EXECUTOR,),
        actions=tuple(Action(name=action) for action in actions),
    )
    return Offer(card=card, digest=version)


def test_a_candidate_takes_the_pins_that_its_card_and_their_range_allow() -> None:
    workflow, _ = parse_stored(WORKFLOW)
    catalog = Catalog((offer("bank", "1.0.0", "fee", "audit"), offer("bank", "2.0.0", "fee")))
    old = "bank@1.0.0"
    pinned = {"step:fee": old, "step:any": old, "step:audit": old, "action:fee": old} | {
        "action:audit": old,
        "step:plan": "mayor@1.0.0",
    }
    found = swapped(pinned, workflow, catalog=catalog, to=(old, "bank@2.0.0"))
    assert {key for key, pin in found.items() if pin == "bank@2.0.0"} == {"step:any", "action:fee"}
    assert swapped(pinned, workflow, catalog=catalog, to=(old, "bank@9.0.0")) is pinned
