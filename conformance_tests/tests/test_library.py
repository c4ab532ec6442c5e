"""The cases are data: what cannot be run as written is refused when it is read."""

import pytest

from conformance_tests.runner.checks import CHECKS
from conformance_tests.runner.judges import JUDGES
from conformance_tests.runner.library import Case, Step, WrongCase, library, read_cases
from conformance_tests.runner.requirements import Level, Party, musts, requirements

CASES = (*library(Party.SDK), *library(Party.GATEWAY))


def read(text: str) -> list[Case]:
    return read_cases(text, Party.COMPONENT, name="some.yaml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1", "a file is a list of cases"),
        ("[{requirement: XXX-001, name: a}]", "XXX-001 is no requirement"),
        ("[{requirement: VER-001}]", "needs a name"),
        ("[{requirement: VER-001, name: a, stepz: []}]", r"unknown keys \['stepz'\]"),
        ("[{requirement: VER-001, name: a, steps: [{do: health}]}]", "could not fail"),
        (
            "[{requirement: VER-001, name: a, steps: [{do: health, expects: {ok: true}}]}]",
            r"unknown keys \['expects'\]",
        ),
    ],
)
def test_a_case_that_could_not_run_is_refused_and_named(text: str, said: str) -> None:
    with pytest.raises(WrongCase, match=said):
        read(text)


def test_texts_and_bytes_are_taken_as_they_stand() -> None:
    (case,) = read(
        "[{requirement: PAY-001, name: a, steps: [{do: execute, arguments: !text '{\"n\":0.10}',"
        " expect: {text: {output: !hex '22ff22'}}}]}]"
    )
    assert str(case.steps[0].options["arguments"]) == "Text(data=b'{\"n\":0.10}')"
    assert str(case.steps[0].expect["text"]) == "{'output': Text(data=b'\"\\xff\"')}"


def test_every_must_of_a_component_and_of_an_sdk_has_a_case() -> None:
    held = {case.requirement.id for case in library(Party.SDK)}
    lacking = [one.id for one in musts(Party.COMPONENT, Party.SDK) if one.id not in held]
    assert lacking == []


def test_a_case_binds_whom_its_requirement_binds() -> None:
    wrong = [
        case.id
        for case in CASES
        if case.kind not in case.requirement.parties and case.requirement.level is Level.MUST
    ]
    assert wrong == []


def _keys(step: Step) -> set[str]:
    return set(step.expect).union(*(_keys(inner) for inner in step.together))


def test_every_expectation_is_in_the_vocabulary() -> None:
    known = {*CHECKS, "judge"}
    for case in library(Party.SDK):
        keys = set(case.watch.expect) if case.watch else set().union(*map(_keys, case.steps))
        assert keys <= known, case.id


def test_every_judge_is_used_by_a_case() -> None:
    text = str([library(party) for party in Party])
    assert [name for name in JUDGES if f"'{name}'" not in text] == []


def test_requirements_keep_their_level() -> None:
    assert requirements()["WIR-009"].level is Level.SHOULD
    assert requirements()["HTT-011"].level is Level.MUST
