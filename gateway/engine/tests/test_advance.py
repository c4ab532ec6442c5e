"""What comes next: steps in order, plans by their graph, ends with the right output."""

from acp_spec.model.enums import SessionStatus, StepStatus
from gateway.engine.tests.casting import Cast, Said, Sent
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import CATALOG, FOUR_CALLS, gave, goal, planned, troupe, workflow_of


def four(**lines: object) -> Play:
    component = troupe(**lines)  # type: ignore[arg-type]
    return Play(workflow_of(FOUR_CALLS), CATALOG, Cast(component=component)).open().run()


def sent_goals(play: Play) -> list[str]:
    return [sent.created.sub_goal for sent in play.sent if sent.created.sub_goal]


def test_a_plan_waits_for_a_sub_goal_whose_dependency_is_slower_than_a_sibling() -> None:
    """The sibling settles first and asks what comes next while `b` has not begun: once a crash."""
    plan = planned(
        goal("slow", "read"), goal("fast", "put"), goal("b", "peek", depends_on=["slow"])
    )

    def slow(sent: Sent) -> Said:
        return Said(response=b'{"output":1}', after_ms=500)

    play = four(plan=plan, read=slow, put=gave(2))
    assert sent_goals(play) == ["slow", "fast", "b"]
    assert play.state.status is SessionStatus.SUCCEEDED
    assert play.state.steps["act"].status is StepStatus.SUCCEEDED
