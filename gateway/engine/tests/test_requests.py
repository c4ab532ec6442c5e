"""The exact bytes of requests: mapped fields, defaults of each role, large items cut (SPEC 9.2)."""

import msgspec

from acp_spec.bindings.fields import SETTLED_CALL_BYTES
from acp_spec.codec.json import decode_request
from acp_spec.codec.json_text import splice
from acp_spec.model.calls import ExecuteRequest, ObserveRequest, PlanRequest, ReflectRequest
from acp_spec.model.context import Context
from acp_spec.model.enums import StepRole
from acp_spec.model.errors import Reason
from gateway.engine import requests
from gateway.engine.tests.casting import Cast, Sent
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import (
    ACCEPTED,
    CATALOG,
    FOUR_CALLS,
    Line,
    by_loop,
    failed,
    gave,
    gave_text,
    goal,
    judged,
    planned,
    troupe,
    workflow_of,
)

CONTEXT = Context(
    session_id="s", lineage_id="l", call_id="c", attempt=1, body_digest="d", timeout_ms=1
)
TYPES: dict[StepRole, type[msgspec.Struct]] = {
    StepRole.PLAN: PlanRequest,
    StepRole.EXECUTE: ExecuteRequest,
    StepRole.OBSERVE: ObserveRequest,
    StepRole.REFLECT: ReflectRequest,
}


def four(text: str = FOUR_CALLS, **lines: Line) -> Play:
    return Play(workflow_of(text), CATALOG, Cast(component=troupe(**lines))).open().run()


def of(play: Play, step: str, loop: int = 0) -> Sent:
    return next(s for s in play.sent if s.created.step == step and s.created.loop == loop)


def body(play: Play, step: str, loop: int = 0) -> dict[str, object]:
    found: dict[str, object] = msgspec.json.decode(of(play, step, loop).body)
    return found


def test_every_role_has_its_defaults() -> None:
    assert set(requests.DEFAULTS) == set(StepRole)


def test_every_request_that_leaves_is_one_of_the_protocol() -> None:
    play = four(judge=by_loop(judged("REPLAN", critique="c"), ACCEPTED))
    for sent in play.sent:
        context = msgspec.json.encode(CONTEXT)
        whole = splice(sent.body, "/context", value=context)
        decode_request(TYPES[sent.created.role], whole)


def test_a_planner_is_told_goal_input_actions_and_limits() -> None:
    asked = body(four(), "plan")
    assert asked["goal"] == "hello"
    assert asked["input"] == {"query": "hello"}
    assert asked["limits"] == {"max_sub_goals": 10}
    names = [action["name"] for action in asked["actions"]]  # type: ignore[attr-defined]
    assert names == sorted(action.name for action in CATALOG.exact("tools@1.0.0").card.actions)  # type: ignore[union-attr]
    assert not {"calls", "memory", "previous_plan", "critique"} & asked.keys()


def test_a_mapping_goes_before_the_default() -> None:
    text = FOUR_CALLS.replace("{goal: input.query}", "{goal: input.query, input: input.query}")
    assert body(four(text), "plan")["input"] == "hello"


def test_a_planner_gets_the_bytes_of_what_was_done() -> None:
    exact = b'{"n":9007199254740993,"m":0.10}'
    play = four(read=gave_text(exact), judge=by_loop(judged("REPLAN"), ACCEPTED))
    assert b'"output":' + exact in of(play, "plan", 1).body


def test_an_observer_sees_every_result_also_failures() -> None:
    plan = planned(goal("a", "read", arguments={"n": 1}), goal("b", "put"))
    play = four(plan=plan, put=failed(Reason.INVALID_REQUEST))
    seen = body(play, "remember")["observations"]
    assert isinstance(seen, list)
    assert [(o["step"], o["kind"], o["data"]["status"]) for o in seen] == [
        ("act", "result", "SUCCEEDED"),
        ("act", "result", "FAILED"),
    ]
    assert seen[0]["data"]["arguments"] == {"n": 1}
    assert seen[1]["data"]["output"] is None
    assert seen[1]["data"]["error"]["reason"] == "INVALID_REQUEST"


def test_in_a_later_loop_an_observer_sees_what_was_done_in_that_loop() -> None:
    plans = by_loop(planned(goal("a", "read")), planned(goal("b", "put")))
    play = four(plan=plans, judge=by_loop(judged("REPLAN"), ACCEPTED))
    seen = body(play, "remember", 1)["observations"]
    assert [o["data"]["action"] for o in seen] == ["put"]  # type: ignore[attr-defined]


def test_a_reflector_sees_goal_plan_and_the_settled_calls_of_all_loops() -> None:
    play = four(judge=by_loop(judged("REPLAN"), ACCEPTED))
    asked = body(play, "judge", 1)
    assert asked["goal"] == "hello"
    assert asked["plan"]["sub_goals"][0]["id"] == "a"  # type: ignore[index]
    calls = asked["calls"]
    assert isinstance(calls, list)
    assert len(calls) == 2
    assert calls[0]["call_id"] != calls[1]["call_id"]


def test_an_item_over_64_kib_is_cut_and_marked_and_the_session_keeps_it_whole() -> None:
    large = "x" * SETTLED_CALL_BYTES
    play = four(read=gave(large))
    calls = body(play, "judge")["calls"]
    assert isinstance(calls, list)
    (call,) = calls
    assert call["truncated"] is True
    assert call["output"] == {"truncated": True, "bytes": len(large) + 2}
    executed = next(c for c in play.state.calls.values() if c.created.action == "read")
    assert len(bytes(executed.output)) == len(large) + 2


def test_a_static_step_without_mapping_sends_an_empty_object() -> None:
    text = "workflow: w\nversion: 1.0.0\nsteps:\n  - {name: a, role: execute, action: read}\n"
    assert four(text).sent[0].body == b'{"action":"read","arguments":{}}'


def test_a_sub_goal_without_arguments_sends_an_empty_object_too() -> None:
    assert of(four(), "act").body == b'{"action":"read","arguments":{}}'


def test_strange_action_names_are_escaped() -> None:
    assert requests.execute_body('a"\\\n', b"1") == b'{"action":"a\\"\\\\\\n","arguments":1}'
