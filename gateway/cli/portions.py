"""What is sent or asked for in several requests, each of a bounded size."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def portions(items: Iterable[T], *, weigh: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """The items in order, as many together as weigh `most`; what is heavier goes alone."""
    some: list[T] = []
    total = 0
    for item in items:
        weight = weigh(item)
        if some and total + weight > most:
            yield some
            some, total = [], 0
        some.append(item)
        total += weight
    if some:
        yield some
