"""The fault wall: real processes, real sockets, real kills, scored from both sides."""

import sys

import pytest

from gateway.tests.wall.__main__ import main
from gateway.tests.wall.scenarios import SCENARIOS, Scenario
from gateway.tests.wall.scoring import Score, table
from gateway.tests.wall.wall import play_all

SHORT = [one for one in SCENARIOS if one.is_short]
LONG = [one for one in SCENARIOS if not one.is_short]


def check(chosen: list[Scenario]) -> None:
    scores = play_all(chosen)
    sys.stdout.write("\n" + table(scores) + "\n")
    fell = [one for scenario, one in zip(chosen, scores, strict=True) if _fell(scenario, one)]
    assert not fell, table(fell)


def _fell(scenario: Scenario, found: Score) -> bool:
    """The negative control has to be noticed, and for what it does."""
    if scenario.must_fail:
        return not any("done 2 times" in what for what in found.broken)
    return bool(found.broken)


def test_there_are_scenarios_enough_and_both_controls_are_in_the_short_part() -> None:
    assert len(SCENARIOS) >= 16 + 2
    assert any(one.costs_nothing for one in SHORT)
    assert any(one.must_fail for one in SHORT)


def test_a_name_that_no_scenario_has_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """It played nothing, and the wall stood."""
    assert main(["control", "contorl"]) == 2
    assert "there is no scenario contorl; there are: control, " in capsys.readouterr().err


def test_the_short_wall_stands() -> None:
    check(SHORT)


@pytest.mark.long
def test_the_rest_of_the_wall_stands() -> None:
    check(LONG)
