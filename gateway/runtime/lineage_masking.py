"""What of two runs may be shown: secrets stay secret, and that they differ is told all the same.

Runs are compared as they are; what is shown at each place comes from the masked runs. A place that
is gone there lay inside a secret.
"""

import msgspec

from acp_spec.model.payload import Payload, payload
from acp_spec.model.reward_vector import CommentReading
from acp_spec.model.trajectory import Attempt, FeedbackRow, PlanVersion, Rewards, Trajectory
from gateway.insight.differing import Difference, Facts, Place, RunDiff, difference, facts
from gateway.telemetry.masking import DEFAULT, MASK


def shown_difference(left: Trajectory, right: Trajectory) -> RunDiff:
    """Everything in which the two differ, without secrets."""
    found = difference(left, right)
    one, other = facts(masked(left)), facts(masked(right))
    return msgspec.structs.replace(
        found, differences=tuple(_shown(each, left=one, right=other) for each in found.differences)
    )


def _shown(one: Difference, *, left: Facts, right: Facts) -> Difference:
    place = Place(one.subject, one.call, one.at)
    return msgspec.structs.replace(
        one,
        left=None if one.left is None else left.get(place, MASK),
        right=None if one.right is None else right.get(place, MASK),
    )


def masked(one: Trajectory) -> Trajectory:
    """The run with every payload and all words masked that `facts` reads."""
    return msgspec.structs.replace(
        one,
        input=_payload(one.input),
        output=_payload(one.output),
        labels={
            name: MASK if DEFAULT.named(name) else DEFAULT.text(value)
            for name, value in one.labels.items()
        },
        plan=tuple(map(_plan, one.plan)),
        calls=tuple(map(_call, one.calls)),
        feedback=tuple(map(masked_feedback, one.feedback)),
    )


def masked_feedback(row: FeedbackRow) -> FeedbackRow:
    """A judgement with its words masked."""
    said = msgspec.structs.replace(row.feedback, comment=DEFAULT.text(row.feedback.comment))
    return msgspec.structs.replace(row, feedback=said)


def masked_rewards(rewards: Rewards) -> Rewards:
    """Rewards with what was understood of comments masked."""
    return msgspec.structs.replace(rewards, comments=tuple(map(_reading, rewards.comments)))


def _reading(one: CommentReading) -> CommentReading:
    corrections = tuple(
        msgspec.structs.replace(
            change, right=DEFAULT.text(change.right), wrong=DEFAULT.text(change.wrong)
        )
        for change in one.corrections
    )
    return msgspec.structs.replace(one, corrections=corrections)


def _payload(given: Payload) -> Payload:
    return payload(DEFAULT.json(bytes(given)))


def _call(row: Attempt) -> Attempt:
    return msgspec.structs.replace(
        row, arguments=_payload(row.arguments), output=_payload(row.output)
    )


def _plan(version: PlanVersion) -> PlanVersion:
    plan = version.plan
    goals = tuple(
        msgspec.structs.replace(
            goal,
            arguments=_payload(goal.arguments),
            description=DEFAULT.text(goal.description),
        )
        for goal in plan.sub_goals
    )
    masked_plan = msgspec.structs.replace(
        plan, root_goal=DEFAULT.text(plan.root_goal), sub_goals=goals
    )
    return msgspec.structs.replace(version, plan=masked_plan)
