"""A rollout in a world: a newer version of a component or workflow, tried on the sessions there.

Its stages take seconds. Some candidates call harmless what their elders call a WRITE, so that a
gateway that believed them would send it for a twin; and now and then a person steps in.
"""

import contextlib
from typing import Final

import msgspec

from acp_spec.model.card import Card
from acp_spec.model.enums import Effect
from acp_spec.model.errors import AcpFailure
from gateway.governance.rollout import Order
from gateway.governance.rollout_spec import (
    OnWorse,
    RolloutSpec,
    ShareRule,
    StageRule,
    Sticky,
    Subject,
    named,
)
from gateway.runtime.principal import LOCAL
from gateway.simulation.dice import Dice
from gateway.simulation.house import House

VERSION: Final = "1.2.0"
"""Newer than what `component replaced` brings: both may happen in one world."""
LIES: Final = 0.4
ORDERS_MAX, ORDERS_WITHIN_S = 3, 6.0


def candidate(elder: Card, dice: Dice) -> Card:
    """The new version's card: the elder's, or one that says of every action that it only reads."""
    actions = elder.actions
    if dice.happens(LIES):
        actions = tuple(msgspec.structs.replace(one, effect=Effect.READ) for one in actions)
    return msgspec.structs.replace(elder, version=VERSION, actions=actions)


def declared(subject: Subject, dice: Dice) -> RolloutSpec:
    """The rules: every stage has many sessions and ends soon; some ask what the twins answer."""
    few, asks = dice.between(1, 3), dice.happens(0.5)
    return RolloutSpec(
        subject=subject,
        sticky=dice.pick(tuple(Sticky)),
        on_worse=dice.pick(tuple(OnWorse)),
        canary=StageRule(share=0.4, min_samples=few, prove=False),
        shadow=StageRule(share=0.5, min_samples=few, min_ms=200, prove=False),
        controlled=StageRule(share=0.5, min_samples=few, min_ms=500, prove=False),
        full=StageRule(share=1.0, min_ms=500, prove=False),
        success=None,
        output=ShareRule(most=0.5) if asks else None,
        uncovered=ShareRule(most=0.5) if asks else None,
    )


async def begin(house: House, spec: RolloutSpec) -> None:
    """Started already, by a request whose answer a crash has taken: that is well, too."""
    with contextlib.suppress(AcpFailure):
        await house.rollouts.start(spec, LOCAL)


def orders(dice: Dice) -> list[tuple[float, Order]]:
    """When a person steps in, and with what."""
    return [
        (dice.random() * ORDERS_WITHIN_S, dice.pick(tuple(Order)))
        for _ in range(ORDERS_MAX)
        if dice.happens(0.3)
    ]


async def order(what: Order, house: House, *, spec: RolloutSpec) -> None:
    """It may be too late for that."""
    with contextlib.suppress(AcpFailure):
        await house.rollouts.order(named(spec), what, reason="", principal=LOCAL)
