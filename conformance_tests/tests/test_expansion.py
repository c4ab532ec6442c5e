"""From cases to a plan: what is declared is repeated, what is not is listed with its reason."""

from conformance_tests.messages.tree import Text, Tree
from conformance_tests.runner.expansion import plan
from conformance_tests.runner.fixtures import Fixtures, SafeCall
from conformance_tests.runner.library import Case, read_cases
from conformance_tests.runner.requirements import Party
from conformance_tests.runner.results import Outcome
from conformance_tests.runner.subject import Subject


def cases(text: str) -> list[Case]:
    return read_cases(text, Party.COMPONENT, name="some.yaml")


def subject(card: Tree, *, fixtures: Fixtures | None = None, everything: bool = False) -> Subject:
    return Subject({"http": card}, fixtures or Fixtures(), allow_side_effects=everything)


EACH_CALL = (
    "[{requirement: WIR-002, name: a, each: {do: calls}, steps: [{do: $do, expect: {ok: true}}]}]"
)
EXAMPLES = (
    "[{requirement: CRD-009, name: a, each: {asked: safe_examples},"
    " steps: [{do: execute, example: $asked, expect: {ok: true}}]}]"
)
EXECUTOR: Tree = {
    "roles": ["EXECUTOR"],
    "actions": [{"name": "a.b", "examples": [{"arguments": Text(b"1")}]}],
}


def test_a_case_is_repeated_over_bindings_and_roles() -> None:
    planned = plan(
        cases(EACH_CALL), subject({"roles": ["PLANNER", "OBSERVER"]}), bindings=["http", "grpc"]
    )
    assert [entry.id for entry in planned] == [
        "WIR-002/a@http[plan]",
        "WIR-002/a@http[observe]",
        "WIR-002/a@grpc[plan]",
        "WIR-002/a@grpc[observe]",
    ]


def test_axes_are_multiplied() -> None:
    text = EACH_CALL.replace("do: calls", "do: calls, field: [x, y]")
    planned = plan(cases(text), subject({"roles": ["PLANNER"]}), bindings=["http"])
    assert [entry.variant for entry in planned] == ["http[plan,x]", "http[plan,y]"]


def test_what_is_not_declared_is_not_applicable_with_its_reason() -> None:
    text = EACH_CALL.replace("each: {do: calls}", "needs: [acp.test.echo]")
    (entry,) = plan(cases(text), subject({"roles": ["PLANNER"]}), bindings=["http", "grpc"])
    assert entry.settled is Outcome.NOT_APPLICABLE
    assert "acp.test.echo" in entry.reason


def test_what_is_declared_without_a_safe_example_is_not_tested() -> None:
    (entry,) = plan(cases(EXAMPLES), subject(EXECUTOR), bindings=["http"])
    assert entry.settled is Outcome.NOT_TESTED
    assert "safe" in entry.reason


def test_allowed_side_effects_and_fixtures_make_it_testable() -> None:
    allowed = plan(cases(EXAMPLES), subject(EXECUTOR, everything=True), bindings=["http"])
    stated = Fixtures(execute=(SafeCall(action="a.b", arguments={"x": 1}),))
    given = plan(cases(EXAMPLES), subject(EXECUTOR, fixtures=stated), bindings=["http"])
    assert [entry.settled for entry in (*allowed, *given)] == [None, None]


def test_a_binding_that_was_not_given_is_listed() -> None:
    text = EACH_CALL.replace("name: a", "name: a, over: [grpc]")
    (entry,) = plan(cases(text), subject({"roles": ["PLANNER"]}), bindings=["http"])
    assert entry.settled is Outcome.NOT_APPLICABLE
    assert entry.reason == "the target was not given over grpc"
