"""Every number that an operator may send is bounded: what is made of it must stay a number.

An infinite limit is no JSON (it is stored as `null`, which nobody can read again), and a wait of
10^323 ms is no integer.
"""

from collections.abc import Iterator

import msgspec
import pytest
from msgspec import inspect

from gateway.transports.operator_api import OPERATOR_ROUTES

CHECKED = {f"FeedbackInBulk.feedback[].feedback.{n}" for n in ("score", "sampling_probability")}
"""Of ACP v1, and held to their bounds where they are taken (`gateway.runtime.judging`)."""
REQUESTS = [route.request for route in OPERATOR_ROUTES if route.request is not None]


def floats(kind: inspect.Type, place: str, seen: frozenset[type]) -> Iterator[tuple[str, bool]]:
    """Every float within, and whether it has both a least and a most."""
    match kind:
        case inspect.FloatType():
            least = kind.ge is not None or kind.gt is not None
            yield place, least and (kind.le is not None or kind.lt is not None)
        case inspect.StructType() if kind.cls not in seen:
            for field in kind.fields:
                yield from floats(field.type, f"{place}.{field.name}", seen | {kind.cls})
        case inspect.UnionType():
            for one in kind.types:
                yield from floats(one, place, seen)
        case inspect.DictType():
            yield from floats(kind.value_type, f"{place}.*", seen)
        case inspect.VarTupleType() | inspect.ListType() | inspect.SetType():
            yield from floats(kind.item_type, f"{place}[]", seen)
        case _:
            return


@pytest.mark.parametrize("request_type", REQUESTS, ids=lambda one: one.__name__)
def test_each_number_of_an_operators_request_has_a_least_and_a_most(
    request_type: type[msgspec.Struct],
) -> None:
    found = floats(inspect.type_info(request_type), request_type.__name__, frozenset())
    assert {place for place, is_bounded in found if not is_bounded} <= CHECKED


def test_the_walk_finds_numbers_deep_within() -> None:
    places = [
        place
        for one in REQUESTS
        for place, _ in floats(inspect.type_info(one), one.__name__, frozenset())
    ]
    assert "ParameterChange.parameters.components.*.actions.*.per_second" in places
    assert "RolloutSpec.latency.slack_ms" in places
