"""The record of a session with its grounding and rewards: what the outbox writes and clients read.

Made anew each time it is asked for, so late feedback is in the next one without anybody waiting.
"""

from dataclasses import dataclass, field

import msgspec

from acp_spec.model.enums import StepRole
from acp_spec.model.trajectory import Trajectory
from gateway.engine.states import SessionState
from gateway.engine.trajectories import trajectory
from gateway.rewards.grounding.judging import grounding
from gateway.rewards.scoring import Scorer


@dataclass(frozen=True, slots=True)
class Scored:
    """Trajectories by the rules that hold when they are made."""

    scorer: Scorer = field(default_factory=Scorer)

    def record(self, state: SessionState) -> Trajectory:
        found = trajectory(state)
        found = msgspec.structs.replace(found, grounding=grounding(found))
        steps = state.workflow.steps if state.workflow else ()
        judges = [step.name for step in steps if step.role is StepRole.REFLECT]
        rewards = self.scorer.score(found, reflect_steps=judges)
        return msgspec.structs.replace(found, rewards=rewards)
