"""What a component did lately, counted in a window that slides over time in slices.

Pure: a window is a value, `add` gives the next one. Only counts are kept, so a window is small
however busy the component: how many calls, how many failed, how many were slower than allowed; how
many sessions, how many of them fell back.
"""

import msgspec

SLICES = 12
"""A sample leaves its window one slice early at most: after 11/12 of it."""


class CallSample(msgspec.Struct, frozen=True, kw_only=True):
    """One call that counts: did it fail, was it served slower than allowed?"""

    failed: bool = False
    slow: bool = False


class SessionSample(msgspec.Struct, frozen=True, kw_only=True):
    """One session in which the component was called: did it fall back because of it?"""

    fell_back: bool = False


Sample = CallSample | SessionSample


class Counts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sums over samples."""

    calls: int = 0
    failed: int = 0
    slow: int = 0
    sessions: int = 0
    fell_back: int = 0

    def plus(self, sample: Sample) -> "Counts":
        match sample:
            case CallSample(failed=failed, slow=slow):
                return Counts(
                    calls=self.calls + 1,
                    failed=self.failed + failed,
                    slow=self.slow + slow,
                    sessions=self.sessions,
                    fell_back=self.fell_back,
                )
            case SessionSample(fell_back=fell_back):
                return Counts(
                    calls=self.calls,
                    failed=self.failed,
                    slow=self.slow,
                    sessions=self.sessions + 1,
                    fell_back=self.fell_back + fell_back,
                )

    def minus(self, other: "Counts") -> "Counts":
        return Counts(
            calls=self.calls - other.calls,
            failed=self.failed - other.failed,
            slow=self.slow - other.slow,
            sessions=self.sessions - other.sessions,
            fell_back=self.fell_back - other.fell_back,
        )


NOTHING = Counts()


class Slice(msgspec.Struct, frozen=True):
    """The samples of one slice of time, by its number since the epoch."""

    number: int
    counts: Counts


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """The slices that are not over, oldest first, and their sum."""

    window_ms: int
    slices: tuple[Slice, ...] = ()
    total: Counts = NOTHING

    def add(self, sample: Sample, now_ms: int) -> "Window":
        """With one more sample, without those whose time is over."""
        current = self.at(now_ms)
        number = max(self._number(now_ms), current.slices[-1].number if current.slices else 0)
        slices, counts = current.slices, NOTHING
        if slices and slices[-1].number == number:
            slices, counts = slices[:-1], slices[-1].counts
        return Window(
            window_ms=self.window_ms,
            slices=(*slices, Slice(number, counts.plus(sample))),
            total=current.total.plus(sample),
        )

    def at(self, now_ms: int) -> "Window":
        """As it is at this time: old slices have left."""
        oldest = self._number(now_ms) - SLICES + 1
        if not self.slices or self.slices[0].number >= oldest:
            return self
        total, kept = self.total, self.slices
        while kept and kept[0].number < oldest:
            total, kept = total.minus(kept[0].counts), kept[1:]
        return Window(window_ms=self.window_ms, slices=kept, total=total)

    def _number(self, now_ms: int) -> int:
        return now_ms * SLICES // self.window_ms
