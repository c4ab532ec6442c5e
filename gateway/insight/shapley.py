"""Shapley values of a game: exact over all coalitions, or over drawn orders beyond some players.

Both share out v(all) - v(nobody) without a rest. A coalition is a number whose bits are players.
- L. Shapley, "A value for n-person games", 1953; orders drawn with their reverses (antithetic):
  R. Mitchell et al., "Sampling permutations for Shapley value estimation", JMLR 23, 2022.
"""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from gateway.insight.histories import Vector

Values: TypeAlias = Callable[[int], Vector]
Order: TypeAlias = tuple[int, ...]


def all_coalitions(players: int) -> range:
    return range(1 << players)


def exact(value: Values, players: int) -> list[Vector]:
    """Each player's mean share over all orders, by the weight of each coalition before it."""
    found: list[Vector] = []
    for player in range(players):
        bit, total = 1 << player, 0.0 * value(0)
        for coalition in all_coalitions(players):
            if not coalition & bit:
                before = coalition.bit_count()
                orders = math.factorial(before) * math.factorial(players - before - 1)
                gained = value(coalition | bit) - value(coalition)
                total = total + gained * (orders / math.factorial(players))
        found.append(total)
    return found


def drawn_orders(players: int, pairs: int, *, chance: np.random.Generator) -> list[Order]:
    """Orders of the players, each followed by its reverse."""
    orders: list[Order] = []
    for _ in range(pairs):
        order = tuple(int(player) for player in chance.permutation(players))
        orders += [order, order[::-1]]
    return orders


def coalitions_of(orders: Sequence[Order]) -> list[int]:
    """Every coalition that these orders pass through, once."""
    seen = {0: None}
    for order in orders:
        coalition = 0
        for player in order:
            coalition |= 1 << player
            seen[coalition] = None
    return list(seen)


def over_orders(value: Values, orders: Sequence[Order]) -> list[Vector]:
    """Each player's mean share over these orders."""
    nothing = 0.0 * value(0)
    found = [nothing] * len(orders[0])
    for order in orders:
        coalition = 0
        for player in order:
            joined = coalition | 1 << player
            gained = (value(joined) - value(coalition)) / len(orders)
            found[player] = found[player] + gained
            coalition = joined
    return found
