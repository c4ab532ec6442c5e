"""Instruments: what they are scraped as is what the library's own would say."""

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.exposition import choose_encoder

from gateway.telemetry.instruments import CHILDREN_MAX, OTHER, Counts, Spreads

BOUNDS = (0.1, 1.0, 10.0)


def registered(instrument: Counts | Spreads) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(instrument)
    return registry


@given(values=st.lists(st.one_of(st.floats(0, 20), st.sampled_from(BOUNDS)), max_size=30))
def test_any_values_fall_between_the_bounds_as_in_the_library(values: list[float]) -> None:
    ours, theirs = Spreads("took", "Time", "who", bounds=BOUNDS), CollectorRegistry()
    library = Histogram("took", "Time", ("who",), buckets=BOUNDS, registry=theirs)
    for value in values:
        ours.at("me").add(value)
        library.labels("me").observe(value)
    mine = registered(ours)
    for bound in ("0.1", "1.0", "10.0", "+Inf"):
        labels = {"who": "me", "le": bound}
        want = theirs.get_sample_value("took_bucket", labels)
        assert mine.get_sample_value("took_bucket", labels) == want
    for name in ("took_count", "took_sum"):
        labels = {"who": "me"}
        assert mine.get_sample_value(name, labels) == theirs.get_sample_value(name, labels)


def test_the_last_example_of_a_bucket_is_its_exemplar() -> None:
    spreads = Spreads("took", "Time", bounds=BOUNDS)
    spreads.at().add(0.5, ("", "first"))
    spreads.at().add(0.6, ("", "second"))
    spreads.at().add(0.7)
    encode, _ = choose_encoder("application/openmetrics-text; version=1.0.0")
    text = encode(registered(spreads)).decode()
    assert 'took_bucket{le="1.0"} 3.0 # {lineage_id="second"} 0.6' in text
    assert "first" not in text


def test_a_metric_without_labels_is_told_before_anything_happened() -> None:
    assert registered(Counts("seen", "Seen")).get_sample_value("seen_total") == 0
    assert registered(Spreads("took", "T", bounds=BOUNDS)).get_sample_value("took_count") == 0


def test_one_with_labels_is_told_once_it_has_some() -> None:
    counts = Counts("seen", "Seen", "who")
    registry = registered(counts)
    assert registry.get_sample_value("seen_total", {"who": "me"}) is None
    counts.at("me").add(3)
    assert registry.get_sample_value("seen_total", {"who": "me"}) == 3


def test_past_the_bound_new_label_values_share_one_child() -> None:
    counts = Counts("seen", "Seen", "who")
    for number in range(CHILDREN_MAX + 3):
        counts.at(str(number)).add()
    registry = registered(counts)
    assert registry.get_sample_value("seen_total", {"who": OTHER}) == 3
    assert registry.get_sample_value("seen_total", {"who": "0"}) == 1
