"""What strikes a whole world, and when: crashes, clocks, disks, components that come and go.

A schedule is drawn before the world begins, so that a kind left out changes none of the others.
Each kind is one short story of its own, in the table at the end.
"""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, Protocol

import msgspec

from acp_spec.model.enums import Transport
from acp_spec.model.session import RegisterRequest
from gateway.governance.rollout_spec import Kind, RolloutSpec, Subject
from gateway.runtime.principal import LOCAL
from gateway.simulation import faults, random_workflows, rollout_story
from gateway.simulation.cards import CARDS
from gateway.simulation.dice import Dice
from gateway.simulation.house import House
from gateway.simulation.machine import POINTS, Machine
from gateway.simulation.town import Instance, Town

LEASE_S: Final = 3
LONG_S, LONG_CHANCE = 10.0, 0.7
"""In a long world a component is mostly down once, so that breakers have something to do."""
BEGINS: Final = {"rollout": 0.3}
"""Within what part of the openings: a rollout needs sessions that open behind it."""
UNWATCHED_S: Final = 1.0
"""A life that passes its armed point not within this time is ended anyway."""
NAMES: Final = ("planner", "memory", "judge", "tools", "bank", "yard", "model")


class Sky(Protocol):
    """What the weather may do to a world."""

    machine: Machine
    town: Town
    files: tuple[int, ...]
    """Numbers of the workflow files that it runs."""

    def after(self, delay_s: float, do: Callable[[], None]) -> None: ...

    def die(self, *, power_cut: bool, down_s: float) -> None: ...

    def stop_gracefully(self, down_s: float) -> None: ...

    def order(self, work: Callable[[House], Coroutine[Any, Any, None]]) -> None: ...

    def strikes(self, kind: str) -> None: ...

    async def store_workflow(self, house: House, number: int, *, version: str) -> None: ...

    def clock_was_set(self, by_ms: int) -> None: ...


Story = Callable[[Sky, Dice], None]
Work = Callable[[House], Coroutine[Any, Any, None]]


def schedule(
    name: str, within_s: float, *, without: frozenset[str]
) -> list[tuple[float, str, Dice]]:
    """(when, kind, its dice): what this world meets."""
    found = []
    for kind, chance in faults.WORLD.items():
        dice = Dice(name, "weather", kind)
        is_likely = kind == "component down" and within_s > LONG_S
        happens = dice.happens(LONG_CHANCE if is_likely else chance)
        at_s = dice.random() * within_s * BEGINS.get(kind, 1.0)
        if happens and kind not in without:
            found.append((at_s, kind, dice))
    return sorted(found, key=lambda one: one[:2])


def _crash(sky: Sky, dice: Dice) -> None:
    _end_life(sky, dice, power_cut=False)


def _power_cut(sky: Sky, dice: Dice) -> None:
    _end_life(sky, dice, power_cut=True)


def _end_life(sky: Sky, dice: Dice, *, power_cut: bool) -> None:
    """At a point beside something durable, or between two steps; sometimes twice in a row."""
    machine, down_s = sky.machine, 0.05 + dice.random() * 1.5
    process = machine.process
    machine.fuse.point = dice.pick(POINTS)
    machine.fuse.blow = lambda: sky.die(power_cut=power_cut, down_s=down_s)

    def anyway() -> None:
        if machine.process is process and process.is_alive:
            sky.die(power_cut=power_cut, down_s=down_s)

    sky.after(dice.random() * UNWATCHED_S, anyway)
    if dice.happens(0.35):
        sky.after(UNWATCHED_S + down_s, lambda: _again(sky, dice, power_cut=power_cut))


def _again(sky: Sky, dice: Dice, *, power_cut: bool) -> None:
    """While it recovers, or shortly after."""
    machine = sky.machine
    machine.fuse.point = dice.pick(POINTS[:5])
    machine.fuse.blow = lambda: sky.die(power_cut=power_cut, down_s=0.3)


def _graceful(sky: Sky, dice: Dice) -> None:
    sky.stop_gracefully(0.05 + dice.random())


def _clock_jump(sky: Sky, dice: Dice) -> None:
    jump_ms = dice.pick((-40_000, -3_000, -150, 150, 3_000, 40_000))
    sky.machine.clock.skew_ms += jump_ms
    sky.clock_was_set(jump_ms)


def _stopped(sky: Sky, dice: Dice) -> None:
    machine = sky.machine
    machine.process.stopped_until_s = sky.town.loop.now_s + 0.1 + dice.random() * 3.0


def _disk_full(sky: Sky, dice: Dice) -> None:
    sky.machine.disk.is_full = True
    sky.after(0.3, lambda: sky.die(power_cut=False, down_s=0.2 + dice.random()))


def _sync_failure(sky: Sky, dice: Dice) -> None:
    sky.machine.disk.loses_syncs = True
    power_cut = dice.happens(0.5)
    sky.after(0.3, lambda: sky.die(power_cut=power_cut, down_s=0.2 + dice.random()))


def _slow_disk(sky: Sky, dice: Dice) -> None:
    sky.machine.slow_disk_until_s = sky.town.loop.now_s + 0.3 + dice.random() * 1.5


def _lines_full(sky: Sky, dice: Dice) -> None:
    machine = sky.machine
    machine.lines_full = True

    def mended() -> None:
        machine.lines_full = False

    sky.after(0.5 + dice.random() * 4.0, mended)


def _place(sky: Sky, dice: Dice) -> Instance:
    name = dice.pick(NAMES)
    return next(one for one in sky.town.places.values() if one.card.name == name)


def _component_down(sky: Sky, dice: Dice) -> None:
    _down_for(sky, _place(sky, dice), seconds=0.2 + dice.random() * 4.0)


def _lease_expired(sky: Sky, dice: Dice) -> None:
    _down_for(sky, _place(sky, dice), seconds=LEASE_S + 1.0 + dice.random() * 3.0)


def _down_for(sky: Sky, place: Instance, *, seconds: float) -> None:
    place.is_up = False

    def back() -> None:
        place.is_up = True
        sky.order(lambda house: register(house, place))

    sky.after(seconds, back)


def _replaced(sky: Sky, dice: Dice) -> None:
    """A newer version comes, is made the active one, and the older one leaves."""
    name = dice.pick(NAMES)
    old = [one for one in sky.town.places.values() if one.card.name == name]
    card = next(card for card in CARDS if card.name == name)
    place = sky.town.settle(msgspec.structs.replace(card, version="1.1.0"), 1)

    async def come(house: House) -> None:
        await register(house, place)
        await house.registry.activate(name, "1.1.0")

    sky.order(come)
    for one in old:
        sky.after(0.2 + dice.random(), partial(sky.order, partial(_leaves, one)))


def _rollout(sky: Sky, dice: Dice) -> None:
    """A version that is tried: twins beside sessions, then sessions of its own, then all."""
    try_one = _try_workflow if dice.happens(0.4) else _try_component
    spec, come = try_one(sky, dice)

    async def begin(house: House) -> None:
        await come(house)
        await rollout_story.begin(house, spec)

    sky.order(begin)
    for at_s, what in rollout_story.orders(dice):
        sky.after(at_s, partial(sky.order, partial(rollout_story.order, what, spec=spec)))


def _try_component(sky: Sky, dice: Dice) -> tuple[RolloutSpec, Work]:
    name = dice.pick(NAMES)
    elder = next(card for card in CARDS if card.name == name)
    place = sky.town.settle(rollout_story.candidate(elder, dice), 1)
    spec = rollout_story.declared(Subject(name=name, candidate=place.card.version), dice)
    return spec, partial(register, place=place)


def _try_workflow(sky: Sky, dice: Dice) -> tuple[RolloutSpec, Work]:
    number, version = dice.pick(sky.files), rollout_story.VERSION
    name = f"{random_workflows.NAME}{number}"
    subject = Subject(kind=Kind.WORKFLOW, name=name, candidate=version)
    spec = rollout_story.declared(subject, dice)
    return spec, partial(sky.store_workflow, number=number, version=version)


def _drained(sky: Sky, dice: Dice) -> None:
    place = _place(sky, dice)
    sky.order(lambda house: drain(house, place))
    sky.after(0.5 + dice.random() * 2.0, lambda: sky.order(lambda house: register(house, place)))


def _deaf(sky: Sky, dice: Dice) -> None:
    sky.town.ignores_cancels = True

    def hears() -> None:
        sky.town.ignores_cancels = False

    sky.after(8.0, hears)


STORIES: Final[dict[str, Story]] = {
    "crash": _crash,
    "power cut": _power_cut,
    "graceful restart": _graceful,
    "clock jump": _clock_jump,
    "stopped process": _stopped,
    "disk full": _disk_full,
    "sync failure": _sync_failure,
    "slow disk": _slow_disk,
    "trajectories full": _lines_full,
    "component down": _component_down,
    "component replaced": _replaced,
    "component drained": _drained,
    "rollout": _rollout,
    "lease expired": _lease_expired,
    "cancels ignored": _deaf,
}
TELL_THEMSELVES: Final = frozenset({"component down", "cancels ignored", "rollout"})
"""Kinds that are counted where they meet a session, not of all that is open."""


async def register(house: House, place: Instance) -> None:
    """The component registers itself, as it does after each start."""
    request = RegisterRequest(url=place.url, transport=Transport.HTTP, lease_seconds=LEASE_S)
    component = await house.registry.register(request, LOCAL)
    place.component_id = component.component_id


async def _leaves(place: Instance, house: House) -> None:
    await house.registry.delete(place.component_id)


async def drain(house: House, place: Instance) -> None:
    await house.registry.drain(place.component_id)
