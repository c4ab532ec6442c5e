"""The utilisation law: the least of capacity over demand is what the whole can do."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.measure.capacity import Resource, number, saturations

AMOUNTS = st.floats(0.001, 1e6, allow_nan=False)


def resource(name: str, capacity: float, *, demand: float) -> Resource:
    return Resource(name=name, unit="units", capacity_per_s=capacity, demand=demand, how="told")


def test_the_resource_with_least_room_is_named_first_with_its_arithmetic() -> None:
    cpu = resource("CPU", 1.0, demand=0.002)
    disk = resource("disk", 3_000.0, demand=3.0)
    first, second = saturations([disk, cpu], promised_per_s=600.0)
    assert (first.resource, first.sessions_per_s_max, first.busy_at_promise) == ("CPU", 500.0, 1.2)
    assert (second.resource, second.sessions_per_s_max) == ("disk", 1000.0)
    assert first.arithmetic == "1 units/s / 0.002 units a session = 500 sessions/s (told)"


def test_what_a_session_does_not_use_never_saturates() -> None:
    assert saturations([resource("idle", 5.0, demand=0.0)], promised_per_s=600.0) == []


@given(st.lists(st.tuples(AMOUNTS, AMOUNTS), min_size=1, max_size=8))
def test_at_the_first_ones_load_nothing_else_is_over_its_capacity(
    amounts: list[tuple[float, float]],
) -> None:
    every = [resource(str(n), c, demand=d) for n, (c, d) in enumerate(amounts)]
    first = min(every, key=lambda one: one.sessions_per_s)
    assert saturations(every, promised_per_s=1.0)[0].resource == first.name
    assert all(one.busy_at(first.sessions_per_s) <= 1 + 1e-9 for one in every)


def test_numbers_are_for_people() -> None:
    assert [number(value) for value in (28351.7, 999.96, 0.00086114)] == [
        "28,352",
        "1000",
        "0.0008611",
    ]
