"""How long a session would wait and take, if everything admitted before it goes first.

A session passes stations, some a step: each has slots, work ahead of it and a mean time per call.
It comes to a step when the one before lets it go, and waits there until the work ahead is done. So
work that is admitted but has not come that far counts already; without it a gate opens and closes
a step too late and the queue swings.
"""

from collections.abc import Iterable

import msgspec

NEW_SHARE = 0.1
"""Weight of the newest time in a mean: ten calls and the mean has moved."""

FORGET = 1.01
"""A fastest time grows by so much with each call, so that a target that slowed down is believed."""

DOUBT = 0.95
"""Fourteen refusals, and half of a time is believed."""


class ServiceTime(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How long calls hold a slot: on the mean, and at their fastest lately (of those answered).

    `at_ms`: when the last one ended, by the row's clock.
    """

    mean_ms: float = 0.0
    fastest_ms: float = 0.0
    count: int = 0
    at_ms: float = 0.0


NOTHING_KNOWN = ServiceTime()


def served(before: ServiceTime, held_ms: float, *, well: bool, now_ms: float) -> ServiceTime:
    """After one more call; `well`: answered without an error, so its time counts as possible."""
    first = before.count == 0
    mean_ms = held_ms if first else before.mean_ms + NEW_SHARE * (held_ms - before.mean_ms)
    fastest_ms = before.fastest_ms * FORGET
    if well:
        fastest_ms = min(fastest_ms, held_ms) if fastest_ms else held_ms
    return ServiceTime(
        mean_ms=mean_ms, fastest_ms=min(fastest_ms, mean_ms), count=before.count + 1, at_ms=now_ms
    )


def doubted(before: ServiceTime) -> ServiceTime:
    """After a refusal because of it: what nobody tries any more may have become faster."""
    return msgspec.structs.replace(before, fastest_ms=before.fastest_ms * DOUBT)


class Station(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One place on the way, at step `step`; a session goes there with the chance `share`.

    `ahead`: calls there, waiting, or still to come of those admitted. `stalled_ms`:
    for how long nothing has ended there although calls wait: means say nothing of a hang.
    `service_ms` is the mean of a call, `fastest_ms` its fastest lately.
    """

    step: int
    limit: int
    ahead: float = 0.0
    service_ms: float = 0.0
    fastest_ms: float = 0.0
    stalled_ms: float = 0.0
    share: float = 1.0

    @property
    def free_after_ms(self) -> float:
        """When a slot is free for one who comes behind all of them."""
        over = self.ahead - self.limit + 1
        reckoned_ms = over * self.service_ms / self.limit if over > 0 else 0.0
        return reckoned_ms if reckoned_ms > self.stalled_ms else self.stalled_ms


class Forecast(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`wait_ms` of `whole_ms` is waiting; `floor_ms`: one call where it waits longest.

    `least_ms`: what it takes with nobody before it and everybody at their fastest.
    """

    wait_ms: float = 0.0
    whole_ms: float = 0.0
    floor_ms: float = 0.0
    least_ms: float = 0.0


def forecast(stations: Iterable[Station]) -> Forecast:
    """The way through these stations, ordered by step; those of one step are passed together."""
    begin_ms = end_ms = wait_ms = waits_here_ms = longest_ms = floor_ms = 0.0
    least: dict[int, float] = {}
    step = -1
    for station in stations:
        if station.step != step:
            step, begin_ms, wait_ms, waits_here_ms = (
                station.step,
                end_ms,
                wait_ms + waits_here_ms,
                0.0,
            )
        waits_ms = max(0.0, station.free_after_ms - begin_ms) * station.share
        waits_here_ms = max(waits_here_ms, waits_ms)
        if station.share >= 1:  # what may be left out takes no time at the least
            least[step] = max(least.get(step, 0.0), station.fastest_ms)
        end_ms = max(end_ms, begin_ms + waits_ms + station.service_ms * station.share)
        if waits_ms > longest_ms:
            longest_ms, floor_ms = waits_ms, station.service_ms
    return Forecast(
        wait_ms=wait_ms + waits_here_ms,
        whole_ms=end_ms,
        floor_ms=floor_ms,
        least_ms=sum(least.values()),
    )
