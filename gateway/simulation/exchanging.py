"""Putting a bug into the gateway by exchanging a function or table of it, and taking it out again.

Nothing in the gateway knows of this; a place that is not there any more fails at once.
"""

import contextlib
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Made = Callable[[Any], Any]
"""From what stands there to what takes its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """`place`: `module:attribute` or `module:Class.attribute`."""

    place: str
    make: Made


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant(Exchange):
    """A bug. `laws`: which of them it breaks."""

    laws: tuple[str, ...]
    story: str


@contextlib.contextmanager
def exchanged(one: Exchange | None) -> Iterator[None]:
    """The gateway with this in it, until the block ends."""
    if one is None:
        yield
        return
    module, _, path = one.place.partition(":")
    owner: Any = importlib.import_module(module)
    *parents, attribute = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    before = owner.__dict__[attribute]
    setattr(owner, attribute, one.make(before))
    try:
        yield
    finally:
        setattr(owner, attribute, before)


def every_second(before: Callable[..., Any], wrong: Callable[..., Any]) -> Callable[..., Any]:
    """Every second time the wrong thing."""
    count = 0

    def now_and_then(*args: Any, **named: Any) -> Any:
        nonlocal count
        count += 1
        return (before if count % 2 else wrong)(*args, **named)

    return now_and_then


def without(*names: str) -> Made:
    """A table of guards (name, function) without these."""

    def make(guards: tuple[tuple[str, Any], ...]) -> Any:
        assert {name for name, _ in guards} >= set(names), "the guards have other names now"
        return tuple(guard for guard in guards if guard[0] not in names)

    return make


def handling(event: type, wrap: Made) -> Made:
    """The engine's table of handlers with another one for this event."""

    def make(handlers: dict[type, Any]) -> Any:
        handler, shard = handlers[event]
        return {**handlers, event: (wrap(handler), shard)}

    return make
