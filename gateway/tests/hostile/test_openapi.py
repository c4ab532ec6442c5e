"""Every operation of both generated OpenAPI documents, asked what the document allows and what not.

Nobody's request is the server's fault, answers keep the document's list of statuses, and the same
request over gRPC comes to the same code and reason.
"""

import time
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings

from acp_spec.bindings.routes import COMPONENT, COMPONENT_ROUTES, GATEWAY, GATEWAY_ROUTES
from gateway.tests.hostile.conftest import Target
from gateway.tests.hostile.openapi import (
    NotSayable,
    cases,
    message_of,
    operations,
    version_of,
    wire,
)
from gateway.tests.hostile.outcomes import CONSUMING, no_fault

# Any request may be refused for these, whatever the operation.
ALWAYS: Final = (400, 404, 405, 413, 415)
ANSWER_S_MAX: Final = 10.0
HOUSE: Final = settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow,
                           HealthCheck.filter_too_much, HealthCheck.data_too_large],
)  # fmt: skip


def test_every_operation_that_is_served_is_tested() -> None:
    assert set(operations("gateway")) == {route.name for route in GATEWAY_ROUTES}
    assert set(operations("component")) == {route.name for route in COMPONENT_ROUTES}


@pytest.mark.parametrize("name", sorted(GATEWAY))
def test_an_operation_of_the_gateway_keeps_its_document(
    gateway: Target, plain: str, name: str
) -> None:
    check(gateway, "gateway", name)


@pytest.mark.parametrize("name", sorted(COMPONENT))
def test_an_operation_of_a_component_keeps_its_document(echo: Target, name: str) -> None:
    check(echo, "component", name)


def check(target: Target, document: str, name: str) -> None:
    """Ask the drawn requests; each over HTTP, and over gRPC where it can be said there."""
    operation = operations(document)[name]
    route = (GATEWAY if document == "gateway" else COMPONENT)[name]
    listed = {int(status) for status in operation.definition.raw["responses"]}
    with target.asker() as asker:

        @HOUSE
        @given(case=cases(operation))
        def story(case: object) -> None:
            sent = wire(case)  # type: ignore[arg-type]  # hypothesis shows it as it is drawn
            began = time.monotonic()
            http = asker.send(sent.method, sent.path, headers=sent.headers, body=sent.body)
            assert time.monotonic() - began < ANSWER_S_MAX
            no_fault(http, sent)
            assert http.status in {*listed, *ALWAYS}, (sent, http)
            if not route.rpc:
                return
            try:
                message = message_of(route, case)  # type: ignore[arg-type]
            except NotSayable:
                return
            grpc = asker.call(route, message, metadata=version_of(sent))
            no_fault(grpc, sent)
            if not (http.is_success and name in CONSUMING):
                assert http == grpc, (sent, http, grpc)

        story()
