"""The fourth golden signal: the variance of the components' contributions, asked for and kept.

It takes a look at every session of two windows, seconds to minutes of work: another process does
it, one at a time, and whoever asks gets what is known, with its time and with why where nothing
can be told. Nothing of it runs on the loop.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import msgspec

from acp_spec.model.errors import AcpFailure
from gateway.runtime.clock import Clock
from gateway.runtime.principal import DEFAULT_TENANT

FRESH_MS: Final = 600_000
"""So long an answer stands; then the next asking begins a new one, and gets the old meanwhile."""

KEPT_MAX: Final = 200
WAITING_MAX: Final = 8
AWAITED: Final = "it is being computed: ask again in a moment"
BUSY: Final = "others are being computed: ask again later"
WINDOW: Final = {"from_ms": "from", "to_ms": "to"}


class VarianceAsked(NamedTuple):
    """From which window to which: `from_ms` to `middle_ms` is the baseline, the rest is new."""

    tenant: str
    workflow: str
    from_ms: int
    middle_ms: int
    to_ms: int

    @property
    def key(self) -> tuple[str, str, int]:
        """What stands for the same question a little later."""
        return self.tenant, self.workflow, self.to_ms - self.middle_ms


class Computed(NamedTuple):
    """The figure, or why there is none."""

    value: float | None = None
    reason: str = ""


Compute = Callable[[VarianceAsked], Awaitable[Computed]]
"""Elsewhere than on the loop. Raises AcpFailure with what to do."""


class ContributionVariance(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename=WINDOW
):
    """Of one workflow, from the window before `from` to this one. `value`, or the `reason` why it
    cannot be told; `computed_at`: when that was found, absent until it was."""

    workflow: str
    value: float | None = None
    reason: str = ""
    computed_at: int | None = None
    from_ms: int | None = None
    to_ms: int | None = None


class Variances:
    """What is known. Used on the loop; `close` it with the gateway."""

    def __init__(self, compute: Compute, clock: Clock) -> None:
        self._compute = compute
        self._clock = clock
        self._known: OrderedDict[tuple[str, str, int], ContributionVariance] = OrderedDict()
        self._tasks: dict[tuple[str, str, int], asyncio.Task[None]] = {}
        self._turn = asyncio.Semaphore(1)

    def told(self, asked: VarianceAsked) -> ContributionVariance:
        """What is known now; begins to find out where that is nothing, or old."""
        known = self._known.get(asked.key)
        if known is None or self._is_old(known):
            begun = self._begin(asked)
            if known is None:
                reason = AWAITED if begun else BUSY
                return ContributionVariance(workflow=asked.workflow, reason=reason)
        return known

    def gauge(self) -> dict[str, float]:
        """The newest figure of each workflow of the default tenant, as a scrape shows it."""
        return {
            workflow: known.value
            for (tenant, workflow, _), known in self._known.items()
            if tenant == DEFAULT_TENANT and known.value is not None
        }

    async def close(self) -> None:
        """Break off what is under way."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _is_old(self, known: ContributionVariance) -> bool:
        return self._clock.now_ms() - (known.computed_at or 0) >= FRESH_MS

    def _begin(self, asked: VarianceAsked) -> bool:
        if asked.key in self._tasks:
            return True
        if len(self._tasks) >= WAITING_MAX:
            return False
        task = asyncio.create_task(self._find(asked), name="contribution variance")
        self._tasks[asked.key] = task
        task.add_done_callback(lambda _: self._tasks.pop(asked.key, None))
        return True

    async def _find(self, asked: VarianceAsked) -> None:
        async with self._turn:
            try:
                found = await self._compute(asked)
            except AcpFailure as problem:
                found = Computed(reason=problem.error.message)
        self._known[asked.key] = ContributionVariance(
            workflow=asked.workflow,
            value=found.value,
            reason=found.reason,
            computed_at=self._clock.now_ms(),
            from_ms=asked.middle_ms,
            to_ms=asked.to_ms,
        )
        self._known.move_to_end(asked.key)
        while len(self._known) > KEPT_MAX:
            self._known.popitem(last=False)
