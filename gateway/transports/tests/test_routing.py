"""The route tree, and that every route of the wire is served by both bindings."""

import pytest

from acp_spec.bindings.routes import GATEWAY_ROUTES
from gateway.transports import pages
from gateway.transports.admin import ADMIN_OPERATIONS
from gateway.transports.http_routes import BUILDERS
from gateway.transports.operations import SESSION_OPERATIONS
from gateway.transports.routing import NoRoute, Router, WrongMethod

ROUTER = Router(
    [
        ("GET", "/v1/things", "list"),
        ("POST", "/v1/things", "make"),
        ("GET", "/v1/things/{id}", "one"),
        ("POST", "/v1/things/{id}/stop", "stop"),
        ("POST", "/v1/things:check", "check"),
        ("POST", "/v1/jobs/{id}:done", "done"),
    ]
)


@pytest.mark.parametrize(
    ("method", "path", "target", "taken"),
    [
        ("GET", ("v1", "things"), "list", ()),
        ("HEAD", ("v1", "things"), "list", ()),
        ("GET", ("v1", "things", "a/b"), "one", ("a/b",)),
        ("POST", ("v1", "things", "7", "stop"), "stop", ("7",)),
        ("POST", ("v1", "things:check"), "check", ()),
        ("POST", ("v1", "jobs", "c:done"), "done", ("c",)),
        ("POST", ("v1", "jobs", "c:done:done"), "done", ("c:done",)),
    ],
)
def test_a_path_leads_to_its_route(
    method: str, path: tuple[str, ...], target: str, taken: tuple[str, ...]
) -> None:
    assert ROUTER.find(method, path) == (target, taken)


@pytest.mark.parametrize(
    "path",
    [
        ("v1",),
        ("v1", "things", ""),
        ("v1", "things", "7", "start"),
        ("v1", "jobs", ":done"),
        ("v1", "jobs", "c"),
        ("",),
        (),
        ("v1", "things", "7", "stop", ""),
    ],
)
def test_any_other_path_has_no_route(path: tuple[str, ...]) -> None:
    with pytest.raises(NoRoute):
        ROUTER.find("GET", path)


def test_a_known_path_with_another_method_names_those_allowed() -> None:
    with pytest.raises(WrongMethod) as caught:
        ROUTER.find("PATCH", ("v1", "things"))
    assert caught.value.allowed == ("GET", "HEAD", "POST")


def test_every_route_of_the_wire_has_an_operation_and_a_builder() -> None:
    served = SESSION_OPERATIONS.keys() | ADMIN_OPERATIONS.keys() | {"stream_events"}
    own = {page.name for page in pages.PAGES}
    for route in GATEWAY_ROUTES:
        assert route.name in own or route.name in served, route.name
        assert route.name in own or route.name in BUILDERS, route.name
    assert served | own >= {route.name for route in GATEWAY_ROUTES}
    assert BUILDERS.keys() == served
