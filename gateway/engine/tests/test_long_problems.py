"""What an author is told of a wrong value is short, however long the value is."""

from collections.abc import Callable

import pytest

from gateway.engine.workflow_file import parse_workflow
from gateway.expressions.field_reader import (
    MAX_PROBLEMS,
    MESSAGE_CHARACTERS_MAX,
    PATH_CHARACTERS_MAX,
)

HEAD = "workflow: w\nversion: 1.0.0\n"


@pytest.mark.parametrize(
    "source",
    [
        HEAD + "limits: {max_loops: " + "9" * 50_000 + "}\n",
        HEAD + "steps: [{name: a, role: plan, require: " + "x" * 50_000 + "}]\n",
        HEAD + "k" * 50_000 + ": 1\n",
        HEAD + "steps: [{name: " + "x" * 50_000 + ", role: plan}]\n",
        HEAD + "steps: [{name: a, role: plan}]\noutput: " + "x" * 50_000 + "\n",
    ],
)
def test_a_problem_does_not_repeat_a_long_value(source: str) -> None:
    found = parse_workflow(source.encode())
    assert isinstance(found, tuple)
    for problem in found:
        assert len(problem.message) <= MESSAGE_CHARACTERS_MAX + 3
        assert len(problem.path) <= PATH_CHARACTERS_MAX + 3


def test_hints_are_sought_for_the_problems_that_are_told_and_no_others(
    in_cpu_s: Callable[..., object],
) -> None:
    """Twenty thousand unknown keys held the gateway for two seconds, for hints nobody saw."""
    source = HEAD + "".join(f"key{n}: 1\n" for n in range(9_000))
    found = in_cpu_s(0.5, parse_workflow, source.encode())
    assert isinstance(found, tuple)
    assert len(found) == MAX_PROBLEMS
