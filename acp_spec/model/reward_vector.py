"""What rules make of a trajectory: a vector of rewards for a step, a session and the long term.

`quality` may be null, with `validity` and `reason`: something other than what is judged prevented
judging. `operational` never is. `shaped` stands beside it: the same with a potential's differences,
which sum to nothing over an ended session. No event is charged twice (`entries`).
"""

import msgspec

from acp_spec.model.enums import FeedbackKind
from acp_spec.model.session import FeedbackTarget


class RaterSpread(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far those who judged one thing in one way are apart; there are at least two of them."""

    kind: FeedbackKind
    target: FeedbackTarget = FeedbackTarget()
    raters: int
    mean: float
    lowest: float
    highest: float
