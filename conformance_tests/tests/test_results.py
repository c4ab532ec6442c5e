"""What a result means: nothing that was not seen to hold is green."""

from dataclasses import replace

import pytest

from conformance_tests.runner.known_failing import Known, WrongList, apply, read_list
from conformance_tests.runner.requirements import Level, requirements
from conformance_tests.runner.results import Outcome, Result, Run, Verdict, compare, settle


def result(outcome: Outcome = Outcome.PASSED, *, level: Level = Level.MUST) -> Result:
    return Result(
        case="VER-001/a",
        variant="http",
        requirement=requirements()["VER-001"],
        outcome=outcome,
        level=level,
        checks_planned=2,
        checks_done=2,
    )


@pytest.mark.parametrize(
    ("outcome", "level", "verdict"),
    [
        (Outcome.PASSED, Level.MUST, Verdict.OK),
        (Outcome.FAILED, Level.MUST, Verdict.FAILURE),
        (Outcome.FAILED, Level.SHOULD, Verdict.WARNING),
        (Outcome.NOT_TESTED, Level.MUST, Verdict.FAILURE),
        (Outcome.NOT_TESTED, Level.SHOULD, Verdict.WARNING),
        (Outcome.NOT_APPLICABLE, Level.MUST, Verdict.SILENT),
        (Outcome.HARNESS_ERROR, Level.SHOULD, Verdict.FAILURE),
    ],
)
def test_outcome_and_level_decide(outcome: Outcome, level: Level, verdict: Verdict) -> None:
    assert result(outcome, level=level).verdict is verdict


def test_a_case_that_did_fewer_checks_than_it_has_fails() -> None:
    short = settle(replace(result(), checks_done=1))
    assert short.outcome is Outcome.FAILED
    assert short.why == "count: only 1 of 2 checks were done"


def test_a_planned_case_without_a_result_is_a_problem_of_the_run() -> None:
    assert compare(["VER-001/a@http", "VER-001/b@http"], [result()]) == [
        "VER-001/b@http was planned and gave no result"
    ]
    assert compare(["VER-001/a@http"], [result(), result()]) == ["VER-001/a@http gave 2 results"]


def test_a_run_with_a_problem_failed() -> None:
    green = Run(target="t", kind="component", seed=1, results=(result(),))
    assert not green.failed
    assert replace(green, problems=("one is missing",)).failed


def test_a_known_failure_is_marked_and_no_longer_fails() -> None:
    marked, problems = apply([Known(pattern="VER-*", reason="soon")], [result(Outcome.FAILED)])
    assert not problems
    assert marked[0].verdict is Verdict.WARNING


def test_a_known_failure_that_passes_is_a_problem() -> None:
    _, problems = apply([Known(pattern="VER-001/a@http", reason="soon")], [result()])
    assert problems == ["known failing: VER-001/a@http passes now: take it off the list"]


def test_a_pattern_that_matches_nothing_is_a_problem() -> None:
    _, problems = apply([Known(pattern="XXX-*", reason="soon")], [result()])
    assert problems == ["known failing: 'XXX-*' matches no case"]


def test_a_line_without_a_reason_is_refused() -> None:
    assert read_list("# for people\n\nVER-001/*  # the reason\n") == [
        Known(pattern="VER-001/*", reason="the reason")
    ]
    with pytest.raises(WrongList, match="line 1"):
        read_list("VER-001/*\n")
