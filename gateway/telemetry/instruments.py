"""Counters and histograms that cost half a microsecond, turned into Prometheus' form when scraped.

A counter is a number in a dict, a histogram a list of numbers; the library's own take a lock, a
clock and checks at every use (8 us an attempt in a busy gateway). Used on one thread, the loop's.
A value may bring an example of itself, two texts that are held as they are and read when scraped.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

# Label values per metric: far over any sane set of files, under what hurts a scraper.
CHILDREN_MAX = 2_000
OTHER = "other"

Child = TypeVar("Child")

Example = tuple[str, str]
"""`traceparent` and lineage id of the session that a value is of; the ids are no labels (R23)."""
RECORDED = "01"
# `00-`, 32 digits of the trace, `-`, 16 of the span, `-01`
TRACE_DIGITS = slice(3, 35)


def _newer(held: Example | None, example: Example) -> Example:
    """The one to keep: the newest, but none that no trace was recorded of over one that has one."""
    unseen = held is not None and held[0].endswith(RECORDED) and not example[0].endswith(RECORDED)
    return held if held is not None and unseen else example


def _exemplar(example: Example, value: float) -> Exemplar:
    """A trace is named only where it was recorded: a link that leads nowhere is worse than none."""
    traceparent, lineage_id = example
    labels = {"lineage_id": lineage_id}
    if traceparent.endswith(RECORDED):
        labels["trace_id"] = traceparent[TRACE_DIGITS]
    return Exemplar(labels, value)


class _Family(Collector, Generic[Child]):
    """Children by their label values; past the bound all new ones share one named `other`."""

    def __init__(self, name: str, help_text: str, *labels: str) -> None:
        self._name = name
        self._help = help_text
        self._labels = labels
        self._children: dict[tuple[str, ...], Child] = {}
        if not labels:
            self.at()  # without labels it is told from the start, as 0

    def at(self, *labels: str) -> Child:
        """The child with these label values."""
        child = self._children.get(labels)
        if child is None:
            if len(self._children) >= CHILDREN_MAX:
                labels = (OTHER,) * len(labels)
            child = self._children.setdefault(labels, self._child())
        return child

    def _child(self) -> Child:
        raise NotImplementedError


class Count:
    """How often something happened, and one example of it."""

    __slots__ = ("example", "value")

    def __init__(self) -> None:
        self.value = 0
        self.example: Example | None = None

    def add(self, amount: int = 1, example: Example | None = None) -> None:
        """`example`: by which this one can be looked up."""
        self.value += amount
        if example is not None:
            self.example = _newer(self.example, example)


class Counts(_Family[Count]):
    """A counter."""

    def _child(self) -> Count:
        return Count()

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(self._name, self._help, labels=self._labels)
        for labels, count in self._children.items():
            example = count.example
            shown = _exemplar(example, 1.0) if example is not None else None
            family.add_metric(labels, count.value, exemplar=shown)
        yield family


class Spread:
    """How many values fell between the bounds, their sum, and one example of each."""

    __slots__ = ("_bounds", "counts", "examples", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.examples: list[tuple[Example, float] | None] = [None] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float, example: Example | None = None) -> None:
        """`example`: by which this value can be looked up."""
        place = bisect_left(self._bounds, value)
        self.counts[place] += 1
        self.total += value
        if example is None:
            return
        held = self.examples[place]
        if held is None or _newer(held[0], example) is example:
            self.examples[place] = (example, value)


class Spreads(_Family[Spread]):
    """A histogram; the examples of its buckets become their exemplars."""

    def __init__(self, name: str, help_text: str, *labels: str, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._shown = [*(str(float(bound)) for bound in bounds), "+Inf"]
        super().__init__(name, help_text, *labels)

    def _child(self) -> Spread:
        return Spread(self._bounds)

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(self._name, self._help, labels=self._labels)
        for labels, spread in self._children.items():
            family.add_metric(labels, list(self._buckets(spread)), spread.total)
        yield family

    def _buckets(self, spread: Spread) -> Iterator[tuple[str, float] | tuple[str, float, Exemplar]]:
        below = 0
        for shown, count, held in zip(self._shown, spread.counts, spread.examples, strict=True):
            below += count
            if held is None:
                yield shown, below
            else:
                yield shown, below, _exemplar(*held)


class Labelled(Collector):
    """Gauges, or a counter that others keep, by one label, asked for at each scrape; what is not
    there is not told."""

    def __init__(
        self,
        name: str,
        help_text: str,
        *,
        label: str,
        read: Callable[[], Mapping[str, float]],
        family: type[GaugeMetricFamily | CounterMetricFamily] = GaugeMetricFamily,
    ) -> None:
        self._name = name
        self._help = help_text
        self._label = label
        self._read = read
        self._family = family

    def collect(self) -> Iterator[Metric]:
        family = self._family(self._name, self._help, labels=(self._label,))
        for value, figure in list(self._read().items())[:CHILDREN_MAX]:
            family.add_metric((value,), figure)
        yield family


class Figures(Collector):
    """Gauges by component and figure, asked for at each scrape; what is not there is not told."""

    def __init__(
        self, name: str, help_text: str, *, read: Callable[[], dict[str, dict[str, float]]]
    ) -> None:
        self._name = name
        self._help = help_text
        self._read = read

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(self._name, self._help, labels=("component", "figure"))
        for component, figures in list(self._read().items())[:CHILDREN_MAX]:
            for figure, value in figures.items():
                family.add_metric((component, figure), value)
        yield family
