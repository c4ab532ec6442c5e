"""Every operation of both generated OpenAPI documents, asked what the document allows and what not.

Nobody's request is the server's fault, answers keep the document's list of statuses, and the same
request over gRPC comes to the same code and reason.
"""

import time
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_spec.bindings.routes import COMPONENT, COMPONENT_ROUTES, GATEWAY, GATEWAY_ROUTES
from gateway.tests.e2e.client import Client
from gateway.tests.hostile.conftest import Target
from gateway.tests.hostile.openapi import (
    AnyCase,
    NotSayable,
    cases,
    message_of,
    operations,
    version_of,
    wire,
)
from gateway.tests.hostile.outcomes import CONSUMING, is_of_the_moment, no_fault

# Any request may be refused for these, whatever the operation.
ALWAYS: Final = (400, 404, 405, 413, 415)
# These would take away what the others ask about.
ENDING: Final = ("remove_component", "drain_component", "delete_session")
ANSWER_S_MAX: Final = 10.0
HOUSE: Final = settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow,
                           HealthCheck.filter_too_much, HealthCheck.data_too_large],
)  # fmt: skip


def test_every_operation_that_is_served_is_tested() -> None:
    assert set(operations("gateway")) == {route.name for route in GATEWAY_ROUTES}
    assert set(operations("component")) == {route.name for route in COMPONENT_ROUTES}


@pytest.fixture(scope="module")
def ids(client: Client, plain: str) -> dict[str, list[str]]:
    """What is there, by the name of the path's parameter."""
    view = client.run(plain, "1").json
    manual = client.open(plain, "1", mode="MANUAL")
    (row,) = client.trajectory(view["session_id"])["calls"]
    return {
        "session_id": [view["session_id"], manual],
        "lineage_id": [view["lineage_id"]],
        "name": [plain],
        "version": ["1.0.0"],
        "call_id": [row["call_id"]],
        "component_id": [client.get("/v1/components").json["components"][0]["component_id"]],
    }


@pytest.mark.parametrize("name", sorted(GATEWAY))
def test_an_operation_of_the_gateway_keeps_its_document(
    gateway: Target, ids: dict[str, list[str]], name: str
) -> None:
    check(gateway, "gateway", name, ids={} if name in ENDING else ids)


@pytest.mark.parametrize("name", sorted(COMPONENT))
def test_an_operation_of_a_component_keeps_its_document(echo: Target, name: str) -> None:
    check(echo, "component", name, ids={})


def check(target: Target, document: str, name: str, *, ids: dict[str, list[str]]) -> None:
    """Ask the drawn requests; each over HTTP, and over gRPC where it can be said there.

    Half of them are about something that is there (`ids`).
    """
    operation = operations(document)[name]
    route = (GATEWAY if document == "gateway" else COMPONENT)[name]
    listed = {int(status) for status in operation.definition.raw["responses"]}
    with target.asker() as asker:

        @HOUSE
        @given(case=cases(operation), data=st.data())
        def story(case: AnyCase, data: st.DataObject) -> None:
            for parameter in case.path_parameters or {}:
                if data.draw(st.booleans()) and parameter in ids:
                    case.path_parameters[parameter] = data.draw(st.sampled_from(ids[parameter]))
            sent = wire(case)
            began = time.monotonic()
            http = asker.send(sent.method, sent.path, headers=sent.headers, body=sent.body)
            assert time.monotonic() - began < ANSWER_S_MAX
            no_fault(http, sent)
            assert http.status in {*listed, *ALWAYS}, (sent, http)
            if not route.rpc:
                return
            try:
                message = message_of(route, case)
            except NotSayable:
                return
            grpc = asker.call(route, message, metadata=version_of(sent))
            no_fault(grpc, sent)
            passing = is_of_the_moment(http) or is_of_the_moment(grpc)
            if not (passing or (http.is_success and name in CONSUMING)):
                assert http == grpc, (sent, http, grpc)

        story()
