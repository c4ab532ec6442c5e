"""The route tables agree with acp.proto, with themselves, and with what HTTP allows."""

import re

import pytest

from acp_spec.bindings.routes import (
    COMPONENT_ROUTES,
    EXECUTE_STREAM_RPC,
    GATEWAY_ROUTES,
    ROUTE_OF_ROLE,
    Route,
)
from acp_spec.codec.shapes import message_name, shape_of
from acp_spec.model.enums import Role
from acp_spec.proto.v1 import acp_pb2

ALL = COMPONENT_ROUTES + GATEWAY_ROUTES
WITH_RPC = [route for route in ALL if route.rpc]
NOT_MIRRORED = {"live", "ready", "metrics", "docs", "openapi"}


def _methods() -> dict[str, tuple[str, str]]:
    """Every unary or server-streaming method of acp.proto -> its two message names."""
    services = acp_pb2.DESCRIPTOR.services_by_name.values()
    return {
        f"/{service.full_name}/{method.name}": (method.input_type.name, method.output_type.name)
        for service in services
        for method in service.methods
        if service.name != "Attach"
    }


@pytest.mark.parametrize("route", WITH_RPC, ids=lambda route: route.name)
def test_a_route_has_the_messages_of_its_grpc_method(route: Route) -> None:
    assert _methods()[route.rpc] == (message_name(route.rpc_in), message_name(route.rpc_out))


def test_every_grpc_method_has_a_route() -> None:
    assert set(_methods()) == {route.rpc for route in WITH_RPC} | {EXECUTE_STREAM_RPC}


def test_every_call_of_the_gateway_is_mirrored() -> None:
    assert {route.name for route in ALL if not route.rpc} == NOT_MIRRORED


def test_names_and_method_path_pairs_are_unique() -> None:
    for table in (COMPONENT_ROUTES, GATEWAY_ROUTES):
        assert len({route.name for route in table}) == len(table)
        assert len({(route.method, route.path) for route in table}) == len(table)


@pytest.mark.parametrize("route", WITH_RPC, ids=lambda route: route.name)
def test_path_and_query_stand_in_the_grpc_request(route: Route) -> None:
    in_message = {field.wire for field in shape_of(route.rpc_in).fields}
    outside_body = set(re.findall(r"{(\w+)}", route.path)) | set(route.query)
    assert outside_body <= in_message


def test_a_route_says_what_it_does() -> None:
    assert [route.name for route in ALL if bool(route.about) is bool(route.rpc)] == []


def test_a_role_has_exactly_one_route() -> None:
    assert set(ROUTE_OF_ROLE) == set(Role)


@pytest.mark.parametrize("route", GATEWAY_ROUTES, ids=lambda route: route.name)
def test_a_route_that_needs_a_scope_can_answer_401(route: Route) -> None:
    assert (401 in route.errors) or not route.scope
