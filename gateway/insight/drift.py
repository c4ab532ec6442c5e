"""Whether components answer otherwise than in a baseline window, field by field.

Per component version and action: the mix of inputs, the outcomes (OK or which error), and each
field of the answers to like inputs. One look raises a false alarm anywhere with at most
`Looking.level` (Holm over all of it). A quarter of the baseline only fixes the bins, so that the
rest is compared exactly. Chance comes in. Pure.
"""

import enum
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec
import numpy as np

from gateway.insight.fields import Field, FieldKind, Leaves, fields_of, leaves
from gateway.insight.permuting import Compared, Groups, Table, compare, groups, holm, table_of
from gateway.insight.samples import CallSample, Side
from gateway.insight.strata import Strata, coverage, strata
from gateway.insight.taking import OK

OUTCOME = "(outcome)"
Declared: TypeAlias = Mapping[tuple[str, str], Mapping[str, Sequence[str]]]
"""(component, action) -> pointer of an output field -> its declared codes."""


class Looking(msgspec.Struct, frozen=True, kw_only=True):
    """How one look is done. `samples_max` bounds its time; beyond it records are drawn."""

    level: float = 0.05
    samples_least: int = 200
    samples_max: int = 4_000
    reference_share: float = 0.25
    coverage_least: float = 0.8
    exchanges_least: int = 999
    exchanges_max: int = 20_000


class Verdict(enum.Enum):
    """What the look says of one field."""

    DRIFT = "DRIFT"
    STEADY = "STEADY"
    TOO_FEW = "TOO_FEW"


class FieldDrift(msgspec.Struct, frozen=True, kw_only=True):
    """One field of one component version. `kl - kl_by_chance` is what is shown as drift, in nats.

    `alike_in`: what inputs that were compared have in common. The figures are None when TOO_FEW.
    """

    component: str
    version: str
    baseline_versions: tuple[str, ...]
    link: str
    side: Side
    field: str
    kind: FieldKind
    baseline: int
    new: int
    verdict: Verdict
    alike_in: tuple[str, ...] = ()
    coverage: float = 1.0
    kl: float | None = None
    kl_by_chance: float | None = None
    drift: float | None = None
    p: float | None = None
    p_adjusted: float | None = None


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """One look: all fields, those that drifted first. `tests` were corrected for; `exchanges` each.
    `only_new`: components and kinds of work that the baseline did not have."""

    fields: tuple[FieldDrift, ...]
    tests: int
    exchanges: int
    level: float
    only_new: tuple[str, ...] = ()

    @property
    def drifted(self) -> tuple[FieldDrift, ...]:
        return tuple(one for one in self.fields if one.verdict is Verdict.DRIFT)


def drift(
    baseline: Iterable[CallSample],
    new: Iterable[CallSample],
    *,
    chance: np.random.Generator,
    looking: Looking | None = None,
    declared: Declared | None = None,
) -> Drift:
    """Compare every component version of the new window with the component's baseline."""
    looking, declared = looking or Looking(), declared or {}
    before = _by_work(baseline, with_version=False)
    comparisons: list[_Comparison] = []
    only_new: list[str] = []
    for (component, link, version), calls in sorted(_by_work(new, with_version=True).items()):
        known = before.get((component, link, ""))
        if known is None:
            only_new.append(f"{component}@{version} {link}")
            continue
        work = _work(known, calls, looking=looking, chance=chance)
        comparisons += _comparisons(work, declared.get((component, link), {}))
    return _judged(comparisons, tuple(only_new), looking=looking, chance=chance)


def _by_work(
    calls: Iterable[CallSample], *, with_version: bool
) -> dict[tuple[str, str, str], list[CallSample]]:
    found: dict[tuple[str, str, str], list[CallSample]] = {}
    for one in calls:
        version = one.version if with_version else ""
        found.setdefault((one.component, one.link, version), []).append(one)
    return found


# ---- what is compared ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """One kind of work of one component version. `reference` fixes bins; `calls` are compared, the
    first `baseline` of them against the others. `about`: what all its rows have in common."""

    reference: Sequence[CallSample]
    calls: Sequence[CallSample]
    baseline: int
    looking: Looking
    about: FieldDrift


def _work(
    before: Sequence[CallSample],
    after: Sequence[CallSample],
    *,
    looking: Looking,
    chance: np.random.Generator,
) -> _Work:
    old = _drawn(before, looking.samples_max, chance=chance)
    new = _drawn(after, looking.samples_max, chance=chance)
    cut = max(1, round(len(old) * looking.reference_share))
    about = FieldDrift(
        component=new[0].component,
        version=new[0].version,
        baseline_versions=tuple(sorted({one.version for one in before})),
        link=new[0].link,
        side=Side.INPUT,
        field="",
        kind=FieldKind.CODE,
        baseline=0,
        new=0,
        verdict=Verdict.TOO_FEW,
    )
    return _Work(
        reference=old[:cut],
        calls=[*old[cut:], *new],
        baseline=len(old) - cut,
        looking=looking,
        about=about,
    )


def _drawn(
    calls: Sequence[CallSample], most: int, *, chance: np.random.Generator
) -> list[CallSample]:
    """At most so many, in an order of chance: the first ones are the reference."""
    return [calls[place] for place in chance.permutation(len(calls))[:most]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comparison:
    """Fields of the same records, under the same exchanges; nothing to exchange in too few."""

    about: FieldDrift
    fields: tuple[Field, ...]
    tables: tuple[Table, ...] = ()
    groups: Groups | None = None

    @property
    def open(self) -> tuple[int, ...]:
        """The fields that can be tested: more than one of their bins is used."""
        return tuple(place for place, table in enumerate(self.tables) if table.shape[1] > 1)


def _comparisons(work: _Work, codes: Mapping[str, Sequence[str]]) -> list[_Comparison]:
    """Inputs as they came; outcomes and answers beside those to like inputs."""
    given = [leaves(one.given) for one in work.calls]
    inputs = fields_of([leaves(one.given) for one in work.reference])
    like = strata(
        [one.given for one in work.calls],
        given,
        fields=inputs,
        baseline=work.baseline,
        coverage_least=work.looking.coverage_least,
    )
    mixed = Strata(of=(0,) * len(work.calls), by=(), coverage=1.0)
    outcomes = fields_of(list(map(_outcome, work.reference)))
    good = [one for one in work.reference if one.outcome == OK]
    answers = fields_of([leaves(one.came) for one in good], declared=codes)
    return [
        _comparison(work, _Reading(Side.INPUT, inputs, _given), like=mixed),
        _comparison(work, _Reading(Side.OUTPUT, outcomes, _outcome), like=like),
        _comparison(work, _Reading(Side.OUTPUT, answers, _came, only_good=True), like=like),
    ]


@dataclass(frozen=True, slots=True)
class _Reading:
    """What is read of each call. `only_good`: failures have no answer, their outcome tells them."""

    side: Side
    fields: Sequence[Field]
    read: Callable[[CallSample], Leaves]
    only_good: bool = False

    def takes(self, call: CallSample) -> bool:
        return not self.only_good or call.outcome == OK


def _given(call: CallSample) -> Leaves:
    return leaves(call.given)


def _outcome(call: CallSample) -> Leaves:
    return {OUTCOME: [call.outcome]}


def _came(call: CallSample) -> Leaves:
    return leaves(call.came)


def _comparison(work: _Work, reading: _Reading, *, like: Strata) -> _Comparison:
    places = [place for place, call in enumerate(work.calls) if reading.takes(call)]
    old = sum(place < work.baseline for place in places)
    before = old + sum(map(reading.takes, work.reference))
    keys = [like.of[place] for place in places]
    about = msgspec.structs.replace(
        work.about,
        side=reading.side,
        baseline=before,
        new=len(places) - old,
        alike_in=like.by,
        coverage=coverage(keys, baseline=old),
    )
    fields = tuple(reading.fields)
    by = groups(keys, baseline=old)
    if _is_too_few(work.looking, (before, len(places) - old), compared=by.sizes):
        return _Comparison(about=about, fields=fields)
    records = [reading.read(work.calls[places[at]]) for at in by.places]
    return _Comparison(
        about=about,
        fields=fields,
        tables=tuple(table_of(field, records) for field in fields),
        groups=by,
    )


def _is_too_few(looking: Looking, sizes: tuple[int, int], *, compared: tuple[int, int]) -> bool:
    """Of all, or of those with a counterpart once the reference is off."""
    left = looking.samples_least * (1 - looking.reference_share) * looking.coverage_least
    return min(sizes) < looking.samples_least or min(compared) < left


# ---- what it says ----------------------------------------------------------------------------


def _judged(
    comparisons: Sequence[_Comparison],
    only_new: tuple[str, ...],
    *,
    looking: Looking,
    chance: np.random.Generator,
) -> Drift:
    tests = sum(len(one.open) for one in comparisons)
    exchanges = exchanges_for(tests, looking)
    rows = [row for one in comparisons for row in _rows(one, exchanges=exchanges, chance=chance)]
    tested = [place for place, row in enumerate(rows) if row.p is not None]
    adjusted = holm([row.p for row in rows if row.p is not None])
    for place, p in zip(tested, adjusted, strict=True):
        verdict = Verdict.DRIFT if p <= looking.level else Verdict.STEADY
        rows[place] = msgspec.structs.replace(rows[place], p_adjusted=p, verdict=verdict)
    rows.sort(key=lambda row: (row.p_adjusted is None, row.p_adjusted or 0.0, -(row.drift or 0.0)))
    return Drift(
        fields=tuple(rows),
        tests=tests,
        exchanges=exchanges,
        level=looking.level,
        only_new=only_new,
    )


def exchanges_for(tests: int, looking: Looking) -> int:
    """So many that the least possible p-value is half of what the strictest test must reach."""
    needed = math.ceil(2 * tests / looking.level) - 1
    return max(looking.exchanges_least, min(looking.exchanges_max, needed))


def _rows(one: _Comparison, *, exchanges: int, chance: np.random.Generator) -> Iterator[FieldDrift]:
    """A row per field; those with a single bin in use are steady without a test."""
    found: dict[int, Compared] = {}
    if one.groups is not None and one.open:
        tables = [one.tables[place] for place in one.open]
        compared = compare(tables, one.groups, exchanges=exchanges, chance=chance)
        found = dict(zip(one.open, compared, strict=True))
    for place, field in enumerate(one.fields):
        row = msgspec.structs.replace(one.about, field=field.pointer, kind=field.kind)
        if place in found:
            its = found[place]
            row = msgspec.structs.replace(
                row,
                kl=its.kl,
                kl_by_chance=its.kl_by_chance,
                drift=its.kl - its.kl_by_chance,
                p=its.p,
            )
        elif one.groups is not None:
            row = msgspec.structs.replace(row, verdict=Verdict.STEADY)
        yield row
