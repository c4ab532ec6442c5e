"""Where a plan's calls go: learned per workflow version and step, as a share of the sessions.

A plan names its actions when it is made; the gate must know before. So each session that went
through such a step moves the shares a little. Bounded, forgotten over a restart, wrong at first:
whoever uses it reckons with means.
"""

import msgspec

from acp_spec.model.enums import StepType

WORKFLOWS_MAX = 1_000
"""Workflow versions remembered; those that run now are few."""

PLACES_MAX = 32
"""Places remembered of one plan step; a plan has ten sub-goals by default."""

NEW_SHARE = 0.05
"""Weight of the newest session in a share: twenty sessions and the share has moved."""

SHARE_MIN = 0.01
"""A place that fewer sessions go to is forgotten."""


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where a call goes: a component's version, by the queue of its step type."""

    pin: str
    step_type: StepType


Shares = dict[Place, float]
Used = set[tuple[int, Place]]


class Habits:
    """The shares of each workflow version, by the number of the step."""

    def __init__(self) -> None:
        self._of_workflow: dict[str, dict[int, Shares]] = {}

    def shares(self, digest: str, step: int) -> Shares:
        """Where this step's calls went lately; empty while nobody knows."""
        return self._of_workflow.get(digest, {}).get(step, {})

    def note(self, digest: str, used: Used, *, position: int) -> None:
        """A session came as far as step `position` and its plans used these places."""
        steps = self._of_workflow.get(digest)
        if steps is None:
            if not used:
                return
            if len(self._of_workflow) >= WORKFLOWS_MAX:
                del self._of_workflow[next(iter(self._of_workflow))]
            steps = self._of_workflow[digest] = {}
        for step in {number for number, _ in used} | {n for n in steps if n <= position}:
            here = {place for number, place in used if number == step}
            steps[step] = moved(steps.get(step, {}), here)


def moved(shares: Shares, used: set[Place]) -> Shares:
    """The shares after one more session; the first one is believed whole."""
    first = 0.0 if shares else 1.0
    new = {
        place: share + NEW_SHARE * ((place in used) - share)
        for place, share in ((p, shares.get(p, first)) for p in [*shares, *(used - set(shares))])
    }
    kept = sorted(new, key=lambda place: -new[place])[:PLACES_MAX]
    return {place: new[place] for place in kept if new[place] >= SHARE_MIN}
