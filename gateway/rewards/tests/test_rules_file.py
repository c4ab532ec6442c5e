"""Reading rules: every fault with its place, and a potential that is none is refused."""

import pytest

from acp_spec.model.enums import FeedbackKind
from gateway.rewards.rules import Each, Part, RewardRules, RuleKind
from gateway.rewards.rules_file import parse_rules
from gateway.rewards.tests.records import HEAD, rules_of

ONE = "- {name: a, kind: outcome, value: 1.0}\n"


def _problems(rules: str, head: str = "") -> list[str]:
    found = parse_rules(f"{HEAD}{head}rules:\n{rules}".encode())
    assert not isinstance(found, RewardRules)
    return [f"{one.line}:{one.column}: {one.path}: {one.message}" for one in found]


def test_a_whole_file_is_read_with_its_digest() -> None:
    head = "penalties: {transfer: 3}\nhalf_life_hours: {validation: 2}\n"
    problems = _problems(ONE, head)
    assert problems == [
        "4:19: half_life_hours.validation: unknown key 'validation'; did you mean 'VALIDATION'?"
    ]
    head = head.replace("validation", "VALIDATION")
    text = """
- name: slow
  kind: cost
  each: attempt
  part: step
  when: attempt.service_ms > 1000
  cost: 0.5
  workflows: [hotline]
"""
    rules = rules_of(ONE + text, head)
    slow = rules.rules[1]
    assert (slow.kind, slow.each, slow.part) == (RuleKind.COST, Each.ATTEMPT, Part.STEP)
    assert (slow.holds_for("hotline@2.0.0"), slow.holds_for("other@1.0.0")) == (True, False)
    assert (rules.penalty_of("transfer"), rules.penalty_of("read")) == (3, 1)
    assert rules.half_life_ms(FeedbackKind.VALIDATION) == 7_200_000
    assert rules.half_life_ms(FeedbackKind.RATING) is None
    assert (rules.ref.name, rules.ref.version, len(rules.ref.digest)) == ("r", "1.0.0", 64)
    assert rules_of(ONE).ref.digest != rules_of(ONE + text).ref.digest


def test_ratings_and_outcomes_never_fade_unless_a_file_says_so_and_validations_do_in_hours() -> (
    None
):
    rules = rules_of(ONE)
    fading = {kind: rules.half_life_ms(kind) for kind in FeedbackKind}
    assert fading.pop(FeedbackKind.VALIDATION) == 24 * 3_600_000
    assert set(fading.values()) == {None}


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        ("- {name: a, kind: outcom, value: 1}\n", "4:19: rules[0].kind: 'outcom' is not one of"),
        (
            "- {name: a, kind: cost, cost: 1, value: 1}\n",
            "4:34: rules[0].value: a rule of kind cost",
        ),
        ("- {name: a, kind: cost}\n", "4:3: rules[0]: the key 'cost' is missing"),
        ("- {name: a, value: 1}\n", "4:3: rules[0]: the key 'kind' is missing"),
        (ONE + ONE, "5:3: rules: two rules are named 'a'"),
        (
            "- {name: a, kind: outcome, value: feedback.score}\n",
            "4:35: rules[0].value: unknown name 'feedback'; known here: end, input, output",
        ),
        (
            "- {name: a, kind: outcome, each: call, value: 1, when: 'call.suceeded'}\n",
            "4:57: rules[0].when: 'call' has no field 'suceeded'; did you mean 'succeeded'?",
        ),
        ("- {name: a, kind: cost, cost: '-0.1'}\n", "4:31: rules[0].cost: a cost is at least 0"),
        ("- {name: a, kind: cost, cost: -1}\n", "4:31: rules[0].cost: a cost is at least 0"),
        ("- {name: a, kind: outcome, value: \"'a'\"}\n", "4:35: rules[0].value: must be a number"),
        ("- {name: a, kind: outcome, value: '1.0 / 0.0'}\n", "4:35: rules[0].value: the result"),
        ("- {name: a, kind: outcome, value: 1e7}\n", "4:35: rules[0].value: 1e+07 is beyond"),
        (
            "- {name: a, kind: outcome, value: '1 +'}\n",
            "4:39: rules[0].value: expected a value, found the end",
        ),
        (
            "- {name: a, kind: outcome, part: step, value: 1}\n",
            "4:34: rules[0].part: the session's end belongs to no step",
        ),
        ("- nothing\n", "4:3: rules[0]: a rule is an object"),
        ("  {}\n", "4:3: rules: this must be a list"),
    ],
)
def test_a_fault_is_told_with_its_line_and_column(rules: str, problem: str) -> None:
    (found,) = _problems(rules)
    assert found.startswith(problem)


@pytest.mark.parametrize(
    ("potential", "fault"),
    [
        ("1.5", "a potential is 0 at the start, this is 1.5"),
        ("double(progress.calls)", "a potential is 0 at the end CANCELLED, this is 1"),
        ("progress.fell_back ? 1.0 : 0.0", "a potential is 0 at the end CANCELLED, this is 1"),
        (
            "progress.ended && progress.status == 'SUCCEEDED' ? 1.0 : 0.0",
            "a potential is 0 at the end SUCCEEDED, this is 1",
        ),
        ("progress.done / progress.planned", "at the start (progress.calls is 0)"),
        ("progress.step", "at the start (progress.calls is 0): must be a number"),
    ],
)
def test_a_potential_that_is_not_zero_at_some_end_is_refused(potential: str, fault: str) -> None:
    (found,) = _problems(f'- {{name: a, kind: shaping, potential: "{potential}"}}\n')
    assert fault in found


def test_what_is_missing_at_the_top_is_named() -> None:
    found = parse_rules(b"rewards: r\n")
    assert not isinstance(found, RewardRules)
    assert [one.path for one in found] == ["version", "rules"]
    assert not isinstance(parse_rules(b"rewards: [\n"), RewardRules)
    assert not isinstance(parse_rules(b"- a\n"), RewardRules)
    assert not isinstance(parse_rules(b"rewards: r\nversion: one\nrules: []\n"), RewardRules)


def test_more_rules_than_are_ever_wanted_are_refused() -> None:
    many = "".join(ONE.replace("name: a", f"name: a{number}") for number in range(65))
    assert _problems(many) == ["4:1: rules: 65 rules, at most 64 are taken"]
