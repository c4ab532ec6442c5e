"""How often the gateway of a matrix was restarted: what a rule may need to know of the house."""

from dataclasses import dataclass


@dataclass(slots=True)
class Epoch:
    """Counted by whoever restarts."""

    number: int = 0


EPOCH = Epoch()
