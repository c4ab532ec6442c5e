"""One session as contribution and drift see it: who was given what, what came, what it was worth.

Plain values that any source of records can fill: the trajectory reader (`taking.py`) or a query.
Nothing here computes. Texts `given` and `came` are compared for equality only.
"""

import enum

import msgspec

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class StepSample(msgspec.Struct, frozen=True, kw_only=True):
    """One settled call. `slot`: its place in the workflow, once per session (`act/fee#1`).

    `link`: what it was asked to do (the action, or role and step); components that do the same in
    the two windows are one player. `given` and `came` stand for its input and its outcome.
    """

    slot: str
    component: str
    link: str
    given: str
    came: str


class SessionSample(msgspec.Struct, frozen=True, kw_only=True):
    """One session that ended by itself. `reward` is None where nobody judged: never a 0."""

    given: str
    steps: tuple[StepSample, ...] = ()
    reward: float | None = None
    workflow: str = ""


class CallSample(msgspec.Struct, frozen=True, kw_only=True):
    """One call's input and output by value. `outcome`: OK, or the error's reason."""

    session_id: str
    component: str
    version: str
    link: str
    given: Json = None
    came: Json = None
    outcome: str = "OK"


class Side(enum.Enum):
    """Which end of a component a field stands at."""

    INPUT = "INPUT"
    OUTPUT = "OUTPUT"
