"""What of two runs may be shown: secrets stay secret, and that they differ is told all the same.

Runs are compared as they are; what is shown at each place comes from the masked runs. A place that
is gone there lay inside a secret.
"""

import msgspec

from acp_spec.model.trajectory import Trajectory
from gateway.insight.differing import Difference, Facts, Place, RunDiff, difference, facts
from gateway.stores.masked import masked
from gateway.telemetry.masking import MASK, Masker


def shown_difference(left: Trajectory, right: Trajectory, *, masker: Masker) -> RunDiff:
    """Everything in which the two differ, without secrets."""
    found = difference(left, right)
    safe = masked(left, masker), masked(right, masker)
    if safe[0] is left and safe[1] is right:
        return found  # without a secret every text is shown as it is
    one, other = facts(safe[0]), facts(safe[1])
    return msgspec.structs.replace(
        found,
        differences=tuple(_shown(each, left=one, right=other) for each in found.differences),
    )


def _shown(one: Difference, *, left: Facts, right: Facts) -> Difference:
    place = Place(one.subject, one.call, one.at)
    return msgspec.structs.replace(
        one,
        left=None if one.left is None else left.get(place, MASK),
        right=None if one.right is None else right.get(place, MASK),
    )
