"""Every component at its address, as each life of the gateway finds them, and the faults' table."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from acp_spec.model.card import Card, Limits
from acp_spec.model.enums import Idempotency
from gateway.runtime.connection import Outgoing
from gateway.simulation import faults
from gateway.simulation.cards import CARDS, REPLICAS
from gateway.simulation.component import Component
from gateway.simulation.dice import Dice
from gateway.simulation.virtual_loop import Process, VirtualLoop

NUMBER = "n"
"""The label that carries a session's number in its scenario: ids change, it does not."""


@dataclass(slots=True, eq=False)
class Instance:
    """One replica at its address. `component_id`: how the gateway calls it once registered."""

    url: str
    component: Component
    card: Card
    is_up: bool = True
    component_id: str = ""


class Judge(Protocol):
    """Looks at every attempt that leaves, and at every fault that strikes one."""

    def sent(self, outgoing: Outgoing, *, life: Process, idempotency: Idempotency) -> None: ...

    def answered(self, outgoing: Outgoing, instance: str, *, is_failure: bool) -> None: ...

    def flying(self, place: str, count: int, *, limits: Limits) -> None: ...

    def arrives(self, call_id: str, attempt: int) -> None: ...

    def struck(self, session_id: str, fault: str) -> None: ...


class Faults:
    """Draws from the tables; kinds in `without` strike nobody, and all else stays as it was."""

    def __init__(self, without: frozenset[str] = frozenset()) -> None:
        self.without = without

    def of_attempt(self, dice: Dice) -> str:
        kind = dice.weighed(faults.WIRE, "")
        return "" if kind in self.without else kind

    def of_operation(self, dice: Dice) -> str:
        kind = dice.weighed(faults.OPERATION, "")
        return "" if kind in self.without else kind


class Town:
    """`name`: what all chance in it hangs on."""

    def __init__(self, loop: VirtualLoop, judge: Judge, *, name: str, faults: Faults) -> None:
        self.loop = loop
        self.judge = judge
        self.faults = faults
        self.places: dict[str, Instance] = {}
        self.components = {card.name: Component(card.name) for card in CARDS}
        self.call_back: Callable[[str, str], None] = lambda call_id, token: None
        self.ignores_cancels = False
        self._name = name
        for card in CARDS:
            for number in range(REPLICAS.get(card.name, 1)):
                self.settle(card, number + 1)

    def settle(self, card: Card, number: int) -> Instance:
        """Another replica."""
        url = f"http://{card.name}-{card.version}-{number}"
        place = self.places[url] = Instance(url, self.components[card.name], card)
        return place

    def now_ms(self) -> float:
        return self.loop.now_s * 1000.0

    def draw(self, outgoing: Outgoing) -> tuple[Dice, str]:
        """The dice of an attempt, and the fault that strikes it: the same in every run."""
        context = outgoing.context
        number = context.labels.get(NUMBER, "")
        dice = Dice(self._name, number, context.step, context.body_digest, context.attempt)
        return dice, self.faults.of_attempt(dice)
