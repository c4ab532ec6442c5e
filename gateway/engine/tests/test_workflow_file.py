"""Workflow files: the protocol's own, and many broken ones with all their problems."""

from importlib import resources
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_spec.model.enums import StepRole, Verdict
from gateway.engine.definition import (
    Limits,
    OnError,
    PinMode,
    Recovery,
    Require,
    Workflow,
)
from gateway.engine.workflow_file import parse_workflow
from gateway.expressions.field_reader import closest, distance

HOTLINE: Final = (
    resources.files("gateway.engine.tests").joinpath("workflows/hotline.yaml").read_text()
)
HEAD: Final = "workflow: w\nversion: 1.0.0\n"
PLAN: Final = "  - {name: plan, role: plan}\n"


def parsed(source: str) -> Workflow:
    workflow = parse_workflow(source.encode())
    assert isinstance(workflow, Workflow), workflow
    return workflow


def problems(source: str) -> list[tuple[int, int, str]]:
    found = parse_workflow(source.encode())
    assert isinstance(found, tuple)
    return [(p.line, p.column, p.message) for p in found]


def test_the_protocols_own_file_is_read_as_it_means() -> None:
    workflow = parsed(HOTLINE)
    assert (workflow.name, workflow.version) == ("hotline", "1.0.0")
    assert [(step.name, step.role) for step in workflow.steps] == [
        ("plan", StepRole.PLAN),
        ("act", StepRole.EXECUTE),
        ("fee", StepRole.EXECUTE),
        ("remember", StepRole.OBSERVE),
        ("judge", StepRole.REFLECT),
    ]
    plan, act, fee, remember, judge = workflow.steps
    assert (plan.component, act.plan, fee.component, fee.action) == (
        "hotline-planner",
        "plan",
        "fees",
        "quote",
    )
    goal = plan.mapped("goal")
    assert goal is not None
    assert (goal.expression.text, goal.line, goal.column) == ("input.query", 8, 27)
    assert fee.condition is not None
    assert (fee.condition.line, fee.condition.column) == (16, 16)
    assert fee.condition.expression.names == {"act", "input"}
    assert [m.field for m in fee.output_mapping] == ["fee_cents"]
    assert judge.target(Verdict.REPLAN) == "plan"
    assert judge.target(Verdict.RETRY) is None
    assert workflow.output is not None
    assert workflow.output.expression.is_path
    assert workflow.limits == Limits(max_loops=3, max_sub_goals=10, deadline_ms=30000)
    assert workflow.recovery == Recovery(policy="backoff")
    assert workflow.recovery_of(remember) == workflow.recovery
    assert (plan.line, plan.column) == (5, 5)
    assert len(workflow.source_digest) == 64


def test_json_says_the_same_as_yaml() -> None:
    source = """{"workflow": "w", "version": "1.0.0", "steps": [
      {"name": "a", "role": "EXECUTE", "action": "do", "input_mapping": {"x": "input.x"}},
      {"name": "r", "role": "reflect", "on": {"RETRY": "a"}}], "output": "r.output"}"""
    workflow = parsed(source)
    assert workflow.steps[1].target(Verdict.RETRY) == "a"


def test_every_option_is_read() -> None:
    workflow = parsed(
        HEAD
        + """description: all of it
contract: {allowed_actions: [acp.test.*, do]}
steps:
  - name: p
    role: plan
    component: planner@^1.2
    pin: strict
    timeout_ms: 500
    recovery: {policy: backoff, base_ms: 50}
  - {name: e, role: execute, plan: p, require: all, on_error: continue}
  - {name: f, role: execute, action: acp.test.echo, repeat: true, condition: true}
  - name: g
    role: execute
    action: do
    input_mapping: {n: 0.10, big: 9007199254740993, t: "'x'", l: [1, {a: b}], none: null, yes: no_}
    output_mapping: {total: output.total, all: results, own: g.status}
  - {name: r, role: reflect, on: {replan: p, RETRY: e}, input_mapping: {draft: vars.total}}
output: "{'a': r.output}"
fallback: {output: {message: sorry}}
pin: prefer
""".replace("yes: no_", "on: \"'yes'\"")
    )
    p, e, f, g, r = workflow.steps
    assert (p.version_range, p.timeout_ms, workflow.pin_of(p)) == ("^1.2", 500, PinMode.STRICT)
    assert p.recovery == Recovery(policy="backoff", params=b'{"base_ms":50}')
    assert (e.require, e.on_error) == (Require.ALL, OnError.CONTINUE)
    assert f.repeat
    assert f.condition is not None
    assert f.condition.expression.evaluate_bool({})
    values = {m.field: m.expression.evaluate({}) for m in g.input_mapping}
    assert values == {
        "n": b"0.10",
        "big": b"9007199254740993",
        "t": b'"x"',
        "l": b'[1,{"a":"b"}]',
        "none": b"null",
        "on": b'"yes"',
    }
    assert r.on == ((Verdict.REPLAN, "p"), (Verdict.RETRY, "e"))
    assert workflow.contract.allowed_actions == ("acp.test.*", "do")
    assert workflow.fallback is not None
    assert workflow.fallback.output.expression.evaluate({}) == b'{"message":"sorry"}'
    assert (workflow.index("g"), workflow.step("nobody")) == (3, None)


BROKEN = [
    ("", [(1, 1, "the file is empty")]),
    ("- 1", [(1, 1, "an object with workflow, version and steps, not a list")]),
    ("workflow: [", [(1, 12, "this is not YAML")]),
    (
        "a: 1",
        [
            (1, 1, "unknown key 'a'"),
            (1, 1, "'workflow' is missing"),
            (1, 1, "'version' is missing"),
            (1, 1, "'steps' is missing"),
        ],
    ),
    (
        "workflow: w\nversion: 1.0\nsteps:\n" + PLAN,
        [(2, 10, "write major.minor.patch, such as 1.0.0")],
    ),
    ("workflow: w\nversion: true\nsteps:\n" + PLAN, [(2, 10, "must be text, not a boolean")]),
    ("workflow: a b\nversion: 1.0.0\nsteps:\n" + PLAN, [(1, 11, "'a b' is not a name")]),
    (HEAD + "steps: []", [(3, 8, "1 to 100 steps, this one has 0")]),
    (HEAD + "steps: {}", [(3, 8, "must be a list, not an object")]),
    (HEAD + "steps:", [(3, 7, "must be a list, not nothing")]),
    (HEAD + "steps: [1]", [(3, 9, "must be an object (key: value), not a number")]),
    (HEAD + "stpes: []\nsteps:\n" + PLAN, [(3, 1, "did you mean 'steps'?")]),
    (HEAD + "steps:\n  - {name: a}", [(4, 5, "'role' is missing")]),
    (HEAD + "steps:\n  - {name: A, role: plan}", [(4, 12, "'A' is not a step's name")]),
    (HEAD + "steps:\n  - {name: input, role: plan}", [(4, 12, "'input' means something else")]),
    (HEAD + "steps:\n  - {name: a, role: plna}", [(4, 21, "did you mean 'plan'?")]),
    (HEAD + "steps:\n" + PLAN + PLAN, [(5, 12, "the name 'plan' is already used in line 4")]),
    (
        HEAD + "steps:\n  - {name: a, role: plan, component: x@latest}",
        [(4, 38, "'latest' is not a range")],
    ),
    (
        HEAD + "steps:\n  - {name: a, role: plan, component: a b}",
        [(4, 38, "'a b' is not a component's name")],
    ),
    (HEAD + "steps:\n  - {name: a, role: execute}", [(4, 5, "needs 'plan'")]),
    (
        HEAD + "steps:\n" + PLAN + "  - {name: a, role: execute, plan: plan, action: b}",
        [(5, 42, "a plan or an action, not both")],
    ),
    (HEAD + "steps:\n  - {name: a, role: execute, plan: b}", [(4, 36, "there is no step 'b'")]),
    (
        HEAD + "steps:\n  - {name: a, role: execute, plan: plan}\n" + PLAN,
        [(4, 36, "the step 'plan' does not come before")],
    ),
    (
        HEAD + "steps:\n  - {name: o, role: observe}\n  - {name: a, role: execute, plan: o}",
        [(5, 36, "'o' is not a plan step")],
    ),
    (
        HEAD + "steps:\n" + PLAN + "  - {name: a, role: execute, plan: pln}",
        [(5, 36, "did you mean 'plan'?")],
    ),
    (
        HEAD + "steps:\n  - {name: a, role: plan, plan: a, on: {}, require: all, repeat: true}",
        [
            (4, 27, "'plan' is for execute steps only"),
            (4, 33, "does not come before"),
            (4, 36, "'on' is for reflect steps only"),
            (4, 44, "'require' is for execute steps only"),
            (4, 58, "'repeat' is for execute steps only"),
        ],
    ),
    (
        HEAD
        + "steps:\n"
        + PLAN
        + "  - {name: e, role: execute, plan: plan, input_mapping: {a: input}}",
        [(5, 42, "arguments come from the plan")],
    ),
    (
        HEAD + "steps:\n  - {name: e, role: execute, action: a, require: all}",
        [(4, 41, "over a plan only")],
    ),
    (
        HEAD + "steps:\n  - {name: a, role: plan, input_mapping: {gaol: input.q, context: input}}",
        [(4, 43, "did you mean 'goal'?"), (4, 58, "unknown key 'context'; known here:")],
    ),
    (
        HEAD
        + "steps:\n"
        + PLAN
        + "  - {name: j, role: reflect, on: {REPLAN: plna, ACCEPT: plan, SO: plan}}",
        [
            (5, 43, "did you mean 'plan'?"),
            (5, 49, "ACCEPT ends the session"),
            (5, 63, "'so' is not one of accept, retry"),
        ],
    ),
    (
        HEAD + "steps:\n  - {name: j, role: reflect, on: {REPLAN: j}}",
        [(4, 43, "does not come before this one")],
    ),
    (
        HEAD + 'steps:\n  - {name: a, role: plan, condition: "input.x > && 1"}',
        [(4, 49, "expected a value, found '&&'")],
    ),
    (
        HEAD + "steps:\n  - {name: a, role: plan, condition: \"'it' == inptu.x\"}",
        [(4, 47, "unknown name 'inptu'; did you mean 'input'?; known here: input, memory")],
    ),
    (
        HEAD + "steps:\n  - name: a\n    role: plan\n    condition: 'x == ''q'' && y.z'",
        [(6, 17, "unknown name 'x'"), (6, 31, "unknown name 'y'")],
    ),
    (
        HEAD + "steps:\n" + PLAN + "  - {name: b, role: plan, condition: plan.staus == 'X'}",
        [(5, 38, "'plan' has no field 'staus'; did you mean 'status'?")],
    ),
    (
        HEAD
        + "steps:\n  - {name: a, role: plan, condition: b.status == 'X'}\n"
        + "  - {name: b, role: plan}",
        [(4, 38, "the step 'b' does not come before")],
    ),
    (
        HEAD + "steps:\n  - {name: a, role: plan, condition: now()}",
        [(4, 38, "there is no function 'now' here")],
    ),
    (HEAD + "steps:\n  - {name: a, role: plan, condition: 1 == 1}", [(4, 38, "names nothing")]),
    (
        HEAD + "steps:\n  - {name: a, role: plan, condition: " + "x" * 2050 + "}",
        [(4, 38, "at most 2048 bytes")],
    ),
    (
        HEAD + "steps:\n  - {name: a, role: plan, input_mapping: {goal: vars.x}}",
        [(4, 49, "no output_mapping writes vars.x")],
    ),
    (
        HEAD + "steps:\n  - {name: a, role: plan, output_mapping: {a b: output, c: other}}",
        [(4, 44, "'a b' is not a variable's name"), (4, 60, "unknown name 'other'")],
    ),
    (
        HEAD + "steps:\n  - {name: a, role: plan, timeout_ms: 0, on_error: stop, pin: x}",
        [
            (4, 39, "a whole number from 1 to 604800000, not 0"),
            (4, 52, "'stop' is not one of fail, continue"),
            (4, 63, "'x' is not one of prefer, strict"),
        ],
    ),
    (
        HEAD + "steps:\n  - {name: a, role: execute, action: b, repeat: yes}",
        [(4, 49, "must be true or false, not yes")],
    ),
    (
        HEAD + "steps:\n" + PLAN + "limits: {max_loops: 1000, max_sub_goals: 1.5, deadline: 1}",
        [
            (5, 21, "from 0 to 100, not 1000"),
            (5, 42, "from 1 to 1000, not 1.5"),
            (5, 47, "unknown key 'deadline'"),
        ],
    ),
    (HEAD + "steps:\n" + PLAN + "recovery: backoff", [(5, 11, "must be an object")]),
    (HEAD + "steps:\n" + PLAN + "recovery: {max: 1}", [(5, 11, "name a policy")]),
    (HEAD + "steps:\n" + PLAN + "recovery: {policy: magic}", [(5, 20, "no policy 'magic'")]),
    (
        HEAD + "steps:\n" + PLAN + "recovery: {policy: backoff, tries: 3}",
        [(5, 20, "no parameter 'tries'")],
    ),
    (
        HEAD + "steps:\n" + PLAN + "recovery: {policy: backoff, base_ms: soon}",
        [(5, 20, "whole numbers of milliseconds")],
    ),
    (HEAD + "steps:\n" + PLAN + "fallback: {}", [(5, 11, "write fallback: {output: ...}")]),
    (HEAD + "steps:\n" + PLAN + "output: plan.output +", [(5, 22, "expected a value")]),
    (HEAD + "steps:\n" + PLAN + "output: judge.output", [(5, 9, "unknown name 'judge'")]),
    (HEAD + "steps:\n" + PLAN + "output: *x", [(5, 9, "aliases")]),
    (HEAD + "steps:\n" + PLAN + "version: 2.0.0", [(5, 1, "already set in line 2")]),
]  # fmt: skip


@pytest.mark.parametrize(("source", "expected"), BROKEN, ids=range(len(BROKEN)))
def test_a_broken_file_gives_all_its_problems_with_places(
    source: str, expected: list[tuple[int, int, str]]
) -> None:
    found = problems(source)
    assert [(line, column) for line, column, _ in found] == [(x, y) for x, y, _ in expected]
    for (_, _, message), (_, _, part) in zip(found, expected, strict=True):
        assert part in message


def test_problems_name_the_path_to_the_value() -> None:
    found = parse_workflow(
        (HEAD + "steps:\n  - {name: a, role: plan, input_mapping: {goal: x}}").encode()
    )
    assert isinstance(found, tuple)
    assert [problem.path for problem in found] == ["steps[0].input_mapping.goal"]


def test_problems_of_many_kinds_do_not_hide_each_other_and_are_bounded() -> None:
    lines = "".join(f"  - {{name: s, role: x{i}, y: 1}}\n" for i in range(99))
    found = problems("workflow: 1 2\nversion: x\nsteps:\n" + lines)
    assert len(found) == 100


def test_a_source_is_known_by_its_bytes() -> None:
    assert parsed(HOTLINE).source_digest != parsed(HOTLINE + "\n").source_digest


@given(
    st.integers(0, len(HOTLINE) - 1),
    st.sampled_from(["", "x", ":", "{", "}", '"', "\n", "- ", "*a ", "é", "\t"]),
)
@settings(max_examples=300)
def test_a_damaged_file_is_a_workflow_or_problems_inside_the_file(place: int, change: str) -> None:
    damaged = HOTLINE[:place] + change + HOTLINE[place + 1 :]
    found = parse_workflow(damaged.encode())
    if isinstance(found, Workflow):
        return
    assert found
    lines = damaged.count("\n") + 2
    assert all(1 <= p.line <= lines and p.column >= 1 for p in found)


@pytest.mark.parametrize(
    ("word", "known", "near"),
    [
        ("gaol", ["goal", "input"], "goal"),
        ("stpes", ["steps"], "steps"),
        ("Role", ["role"], "role"),
        ("x", ["y"], ""),
        ("ab", ["ac"], "ac"),
        ("timeout", ["timeout_ms"], ""),
        ("timeout_s", ["timeout_ms"], "timeout_ms"),
        ("anything", [], ""),
    ],
)
def test_a_typo_is_recognised(word: str, known: list[str], near: str) -> None:
    assert closest(word, known) == near


@given(st.text("abc", max_size=5), st.text("abc", max_size=5))
def test_distance_is_symmetric_and_zero_for_equals_only(one: str, other: str) -> None:
    assert distance(one, other) == distance(other, one)
    assert (distance(one, other) == 0) == (one == other)
