"""The names that expressions of a workflow may use (SPEC section 8)."""

import msgspec
import pytest

from acp_spec.model.enums import StepStatus
from acp_spec.model.errors import Reason
from gateway.engine.scope import SessionScope
from gateway.engine.tests.casting import Cast, Said, Terms
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import (
    CATALOG,
    Line,
    failed,
    gave,
    gave_text,
    goal,
    judged,
    planned,
    troupe,
    workflow_of,
)

TEXT = """
workflow: scoped
version: 1.0.0
steps:
  - {name: plan, role: plan}
  - {name: act, role: execute, plan: plan}
  - {name: fee, role: execute, action: put, output_mapping: {cents: output.cents, did: side_effect}}
  - {name: off, role: execute, action: peek, condition: "false"}
  - {name: remember, role: observe, output_mapping: {kept: stored}}
  - {name: judge, role: reflect, output_mapping: {said: verdict, why: critique}}
output: fee.output
"""


def scoped(text: str = TEXT, **lines: Line) -> SessionScope:
    terms = Terms(labels={"who": "me"})
    play = Play(workflow_of(text), CATALOG, Cast(component=troupe(**lines)), terms=terms)
    return SessionScope(play.open().run().state)


def read(scope: SessionScope, name: str) -> dict[str, object]:
    text = scope.get(name)
    assert text is not None
    found: dict[str, object] = msgspec.json.decode(text)
    return found


def test_input_and_outputs_keep_their_bytes() -> None:
    scope = scoped(put=gave_text(b'{"cents":9007199254740993,"rate":0.10}'))
    assert scope.get("input") == b'{"query":"hello"}'
    fee = scope.get("fee")
    assert fee is not None
    assert b'"output":{"cents":9007199254740993,"rate":0.10}' in fee
    assert b'"cents":9007199254740993' in (scope.get("vars") or b"")


def test_variables_are_what_output_mappings_wrote_also_from_response_fields() -> None:
    """`side_effect` is a response field of Execute; a mapping that named it failed its step."""
    scope = scoped(put=gave({"cents": 5}), judge=judged("ACCEPT", critique="well done"))
    assert read(scope, "vars") == {
        "cents": 5,
        "did": "PERFORMED",
        "kept": 1,
        "said": "ACCEPT",
        "why": "well done",
    }


def test_results_stand_in_the_plans_order_with_status_output_error_and_side_effect() -> None:
    plan = planned(
        goal("late", "put", depends_on=["bad"]), goal("bad", "read"), goal("good", "peek")
    )
    scope = scoped(plan=plan, read=failed(Reason.INVALID_REQUEST), peek=gave({"n": 1}))
    results = read(scope, "act")["results"]
    assert isinstance(results, list)
    assert [(r["id"], r["action"], r["status"], r["output"]) for r in results] == [
        ("late", "put", "SKIPPED", None),
        ("bad", "read", "FAILED", None),
        ("good", "peek", "SUCCEEDED", {"n": 1}),
    ]
    assert results[1]["error"]["reason"] == "INVALID_REQUEST"
    assert [r["side_effect"] for r in results] == ["NONE", "NONE", "NONE"]


def test_the_output_over_a_plan_is_an_object_of_what_succeeded() -> None:
    plan = planned(goal("a", "read"), goal("b", "peek"))
    scope = scoped(plan=plan, read=failed(Reason.INVALID_REQUEST), peek=gave(1))
    assert read(scope, "act")["output"] == {"b": 1}


def test_a_static_step_has_one_result_under_its_own_name() -> None:
    results = read(scoped(put=gave({"cents": 1})), "fee")["results"]
    assert isinstance(results, list)
    assert [(r["id"], r["action"]) for r in results] == [("fee", "put")]


def test_a_skipped_step_is_null_and_an_unknown_name_is_nothing() -> None:
    scope = scoped(put=gave({"cents": 1}))
    assert scope.get("off") == b"null"
    assert scope.get("nobody") is None


def test_the_output_of_a_failed_step_is_null_and_its_error_is_there() -> None:
    text = TEXT.replace("action: put,", "action: put, on_error: continue,").replace(
        "output: fee.output", "output: input"
    )
    fee = read(scoped(text, put=failed(Reason.INVALID_REQUEST)), "fee")
    assert (fee["status"], fee["output"]) == ("FAILED", None)
    assert isinstance(fee["error"], dict)
    assert fee["error"]["reason"] == "INVALID_REQUEST"


def test_response_fields_of_other_roles_stand_beside_status_and_output() -> None:
    scope = scoped(put=gave({"cents": 1}), plan=planned(goal("a", "read"), rationale="because"))
    plan = read(scope, "plan")
    assert plan["rationale"] == "because"
    assert isinstance(plan["plan"], dict)
    assert read(scope, "remember")["stored"] == 1


def test_the_session_shows_ids_labels_and_the_loop() -> None:
    session = read(scoped(put=gave({"cents": 1})), "session")
    assert session["labels"] == {"who": "me"}
    assert (session["tenant"], session["loop"], session["workflow"]) == ("t", 0, "scoped@1.0.0")


def test_memory_is_what_was_recalled() -> None:
    recall = Said(response=b'{"stored":1,"memory":[{"id":"m","data":0.10,"score":0.5}]}')
    scope = scoped(put=gave({"cents": 1}), remember=recall)
    assert scope.get("memory") == b'[{"id":"m","data":0.10,"score":0.5}]'


@pytest.mark.parametrize("name", ["signals", "vars", "memory"])
def test_names_without_content_are_empty_not_missing(name: str) -> None:
    text = "workflow: w\nversion: 1.0.0\nsteps:\n  - {name: judge, role: reflect}\n"
    assert scoped(text).get(name) in (b"{}", b"[]")


def test_a_mapping_that_fails_names_step_field_expression_and_line() -> None:
    text = TEXT.replace("cents: output.cents", "cents: output.nothing.here")
    play = Play(workflow_of(text), CATALOG, Cast(component=troupe(put=gave({"cents": 1}))))
    state = play.open().run().state
    failure = state.steps["fee"].error
    assert state.steps["fee"].status is StepStatus.FAILED
    assert failure is not None
    assert failure.reason == "CONTRACT_VIOLATION"
    for part in ("'fee'", "output_mapping.cents", "output.nothing.here", "line 7"):
        assert part in failure.message
