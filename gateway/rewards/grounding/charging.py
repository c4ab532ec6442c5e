"""The guard's part of the rewards: which share of what a session said and planned stands (R16)."""

from typing import Final

from acp_spec.model.grounding import Grounding, GroundingVerdict
from acp_spec.model.reward_vector import Validity
from acp_spec.model.trajectory import QualityReward

SOURCE: Final = "gateway/grounding"


def grounding_reward(found: Grounding | None) -> tuple[QualityReward, ...]:
    """The share of what could be judged that stands; null where nothing could, never a 0."""
    if found is None or not (found.claims or any(not one.excused for one in found.sub_goals)):
        return ()
    stand = sum(one.verdict is GroundingVerdict.SUPPORTED for one in found.claims)
    judged_count = stand + found.penalties
    if not judged_count:
        return (
            QualityReward(
                name="grounding",
                validity=Validity.NOT_JUDGED.value,
                reason="none of its claims could be checked",
                source=SOURCE,
            ),
        )
    return (QualityReward(name="grounding", value=stand / judged_count, source=SOURCE),)
