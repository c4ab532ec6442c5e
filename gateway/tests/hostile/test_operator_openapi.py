"""The operator API's own document: every route is in it, and nobody's request is a 5xx.

Requests are drawn from the served document, such that keep it and such that break it; half of them
are about something that is there.
"""

import time
from typing import Any, Final

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.core.result import Ok

from gateway.tests.hostile.conftest import Target
from gateway.tests.hostile.openapi import AnyCase, Operation, cases, wire
from gateway.tests.hostile.outcomes import no_fault
from gateway.tests.served import Served
from gateway.transports.operator_api import AREAS, OPERATOR_ROUTES

ANSWER_S_MAX: Final = 10.0
HOUSE: Final = settings(
    max_examples=15,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow,
                           HealthCheck.filter_too_much, HealthCheck.data_too_large],
)  # fmt: skip
# What a parameter named so may mean: ids that routes of a list gave us.
Ids = dict[str, list[str]]


@pytest.fixture(scope="module")
def document(served: Served) -> Any:
    answer = httpx.get(f"{served.url}/openapi/operator.json", trust_env=False)
    assert answer.status_code == 200
    return answer.json()


@pytest.fixture(scope="module")
def drawn(document: Any) -> dict[str, Operation]:
    """Every operation of the document, by its operationId."""
    schema = schemathesis.openapi.from_dict(document)
    found = [one.ok() for one in schema.get_all_operations() if isinstance(one, Ok)]
    return {one.definition.raw["operationId"]: one for one in found}


@pytest.fixture(scope="module")
def ids(served: Served) -> Ids:
    """A proposal that is there; other areas are asked about names that are not."""
    body = {"change": {"kind": "RETIREMENT", "subject": "component:a@1"}, "title": "t"}
    answer = httpx.post(f"{served.url}/v1/proposals", json=body, trust_env=False)
    assert answer.status_code == 201, answer.text
    return {"proposal_id": [answer.json()["proposal"]["proposal_id"]]}


def test_every_operator_route_is_described_once(drawn: dict[str, Operation]) -> None:
    names = [route.name for route in OPERATOR_ROUTES]
    assert sorted(names) == sorted(drawn)
    for area in AREAS:
        assert {route.name for route in area.routes} == set(area.builders) == set(area.operations)


def test_every_operator_route_needs_a_scope() -> None:
    assert [route.name for route in OPERATOR_ROUTES if not route.scope] == []


@pytest.mark.parametrize("name", sorted(route.name for route in OPERATOR_ROUTES))
def test_an_operation_keeps_its_document(
    gateway: Target, drawn: dict[str, Operation], ids: Ids, name: str
) -> None:
    operation = drawn[name]
    listed = {int(status) for status in operation.definition.raw["responses"]} | {405, 408}
    with gateway.asker() as asker:

        @HOUSE
        @given(case=cases(operation), data=st.data())
        def story(case: AnyCase, data: st.DataObject) -> None:
            for parameter in case.path_parameters or {}:
                if parameter in ids and data.draw(st.booleans()):
                    case.path_parameters[parameter] = data.draw(st.sampled_from(ids[parameter]))
            sent = wire(case)
            began = time.monotonic()
            http = asker.send(sent.method, sent.path, headers=sent.headers, body=sent.body)
            assert time.monotonic() - began < ANSWER_S_MAX
            no_fault(http, sent)
            assert http.status in listed, (sent, http)

        story()
