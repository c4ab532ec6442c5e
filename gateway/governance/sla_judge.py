"""Is a component within its SLA? A breach begins on a window of samples and ends on fresh proof.

Pure: `observe(standing, sla, sample, now)` gives the next standing and what changed. Hysteresis: a
breach ends only when as many new samples as a judgement needs keep the limits with a margin, and a
new one needs a full judgement again: nothing flaps on one call.
"""

import enum
from collections.abc import Callable
from typing import Final

import msgspec

from gateway.governance.sla import OnBreach, Sla
from gateway.governance.sla_window import (
    CallSample,
    Counts,
    Sample,
    SessionSample,
    Window,
)

MARGIN: Final = 0.8
"""To end a breach, at most this part of what is allowed may go wrong."""
PROBES_PER_WINDOW: Final = 4
"""While calls are barred, the samples that end the breach come in a quarter of the window."""
_TINY: Final = 1e-9
"""0.05 of 20 calls is one call, whatever binary fractions say."""


class Demand(enum.Enum):
    """What an SLA can demand, by its key in the contract."""

    LATENCY = "max_latency_ms"
    SUCCESS = "min_success_rate"
    FALLBACK = "max_fallback_rate"


class Recent(msgspec.Struct, frozen=True, kw_only=True):
    """The newest samples since a breach began, a bit each: how many there are, which were bad."""

    calls: int = 0
    failed: int = 0
    slow: int = 0
    sessions: int = 0
    fell_back: int = 0

    def add(self, sample: Sample, most: int) -> "Recent":
        mask = (1 << most) - 1
        match sample:
            case CallSample(failed=failed, slow=slow):
                return msgspec.structs.replace(
                    self,
                    calls=min(most, self.calls + 1),
                    failed=(self.failed << 1 | failed) & mask,
                    slow=(self.slow << 1 | slow) & mask,
                )
            case SessionSample(fell_back=fell_back):
                return msgspec.structs.replace(
                    self,
                    sessions=min(most, self.sessions + 1),
                    fell_back=(self.fell_back << 1 | fell_back) & mask,
                )

    @property
    def counts(self) -> Counts:
        return Counts(
            calls=self.calls,
            failed=self.failed.bit_count(),
            slow=self.slow.bit_count(),
            sessions=self.sessions,
            fell_back=self.fell_back.bit_count(),
        )


class Breach(msgspec.Struct, frozen=True, kw_only=True):
    """Since when, which demands were broken, and the counts that showed it."""

    since_ms: int
    broken: tuple[Demand, ...]
    counts: Counts


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """One component under one contract. `recent` counts only while there is a breach."""

    window: Window
    breach: Breach | None = None
    recent: Recent = Recent()
    probed_ms: int = 0


class Change(enum.Enum):
    BEGAN = "BEGAN"
    ENDED = "ENDED"


def fresh(sla: Sla) -> Standing:
    """Of a component of which nothing is known."""
    return Standing(window=Window(window_ms=sla.window_ms))


def observe(
    standing: Standing, sla: Sla, *, sample: Sample, now_ms: int
) -> tuple[Standing, Change | None]:
    """With one more sample, and whether a breach began or ended by it."""
    window = standing.window.add(sample, now_ms)
    if standing.breach is None:
        broken = broken_by(sla, window.total)
        if not broken:
            return msgspec.structs.replace(standing, window=window), None
        breach = Breach(since_ms=now_ms, broken=broken, counts=window.total)
        return Standing(window=window, breach=breach, probed_ms=now_ms), Change.BEGAN
    recent = standing.recent.add(sample, sla.min_samples)
    if _is_proof(standing.breach, sla, recent=recent.counts):
        return fresh(sla), Change.ENDED
    return msgspec.structs.replace(standing, window=window, recent=recent), None


def is_barred(standing: Standing, sla: Sla, *, now_ms: int) -> bool:
    """May no call go to the component now? While it is barred a probe may, every so often.

    A last probe that lies ahead says that the clock was set back, and not when it was: one may go.
    """
    if standing.breach is None or sla.on_breach is OnBreach.ALARM:
        return False
    return 0 <= now_ms - standing.probed_ms < probe_every_ms(sla)


def sent(standing: Standing, *, now_ms: int) -> Standing:
    """A call went to it; while it is barred that was the probe."""
    if standing.breach is None:
        return standing
    return msgspec.structs.replace(standing, probed_ms=now_ms)


def probe_every_ms(sla: Sla) -> int:
    """The time between two probes."""
    return max(1, sla.window_ms // (PROBES_PER_WINDOW * sla.min_samples))


def broken_by(sla: Sla, counts: Counts) -> tuple[Demand, ...]:
    """The demands that these counts break; none while there are too few of them."""
    least = sla.min_samples
    if counts.calls < least and counts.sessions < least:
        return ()
    broken = []
    for demand, figures_of in _FIGURES.items():
        total, bad, allowed = figures_of(sla, counts)
        if total >= least and bad > allowed * total + _TINY:
            broken.append(demand)
    return tuple(broken)


def _is_proof(breach: Breach, sla: Sla, *, recent: Counts) -> bool:
    """All that is demanded of calls holds again, and of sessions where that was broken."""
    for demand, figures_of in _FIGURES.items():
        if demand is Demand.FALLBACK and demand not in breach.broken:
            continue
        total, bad, allowed = figures_of(sla, recent)
        if allowed >= 1:  # not stated
            continue
        if total < sla.min_samples or bad > MARGIN * allowed * total + _TINY:
            return False
    return True


_FIGURES: Final[dict[Demand, Callable[[Sla, Counts], tuple[int, int, float]]]] = {
    Demand.LATENCY: lambda sla, n: (n.calls, n.slow, 1 - sla.latency_quantile),
    Demand.SUCCESS: lambda sla, n: (n.calls, n.failed, 1 - sla.min_success_rate),
    Demand.FALLBACK: lambda sla, n: (n.sessions, n.fell_back, sla.max_fallback_rate),
}
"""(how many, how many bad, which share may be bad). What is not stated is never broken: without a
latency nothing is slow, and all calls may fail, all sessions may fall back.
"""


def told(sla: Sla, breach: Breach) -> str:
    """The breach as a sentence with its figures."""
    n = breach.counts
    words = {
        Demand.LATENCY: (
            f"{n.slow} of {n.calls} calls took over {sla.max_latency_ms} ms"
            f" ({_percent(1 - sla.latency_quantile)} may)"
        ),
        Demand.SUCCESS: (
            f"{n.failed} of {n.calls} calls failed ({_percent(1 - sla.min_success_rate)} may)"
        ),
        Demand.FALLBACK: (
            f"{n.fell_back} of {n.sessions} sessions fell back because of it"
            f" ({_percent(sla.max_fallback_rate)} may)"
        ),
    }
    sentences = "; ".join(words[demand] for demand in breach.broken)
    return f"component {sla.component!r} is outside its SLA: {sentences}"


def _percent(share: float) -> str:
    return f"{100 * share:.4g}%"
