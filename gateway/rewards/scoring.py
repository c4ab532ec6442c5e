"""A trajectory with its rewards: what was given, and what the rules that hold now make of it.

One place decides which rules hold: `Scorer.rules`, set by whoever stores them. A trajectory's
rewards depend on it and the rules alone, so `as_of` is the newest thing it knows, never a clock.
"""

from collections.abc import Iterable

import msgspec

from acp_spec.model.times import parse_rfc3339
from acp_spec.model.trajectory import Rewards, Trajectory
from gateway.rewards.given import rewards
from gateway.rewards.grounding.charging import grounding_reward
from gateway.rewards.readings import readings
from gateway.rewards.rules import RewardRules
from gateway.rewards.vector import vector


class Scorer:
    """Rewards by the rules that hold now; without rules, as given."""

    def __init__(self, rules: RewardRules | None = None) -> None:
        self.rules = rules

    def score(self, trajectory: Trajectory, *, reflect_steps: Iterable[str] = ()) -> Rewards:
        """The rewards of a trajectory whose `rewards` are not filled yet."""
        given = rewards(trajectory, reflect_steps=reflect_steps)
        found = grounding_reward(trajectory.grounding)
        given = msgspec.structs.replace(
            given,
            quality=(*given.quality, *found),
            comments=readings(trajectory.feedback),
        )
        if self.rules is None:
            return given
        made = vector(trajectory, self.rules, as_of_ms=newest_ms(trajectory))
        return msgspec.structs.replace(given, vector=made)


def newest_ms(trajectory: Trajectory) -> int:
    """When the newest thing that it tells of was known."""
    attempts = (row.ended_at for row in trajectory.calls)
    said = (row.received_at for row in trajectory.feedback)
    times = (trajectory.opened_at, trajectory.ended_at, *attempts, *said)
    return max((parse_rfc3339(text) or 0 for text in times if text), default=0)
