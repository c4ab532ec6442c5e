"""The gateway's own pages: alive, ready, metrics, the API's description and a page to read it by.

`/docs` is one file of ours that draws the generated OpenAPI; it loads nothing from elsewhere, and
its policy forbids it. Only `/metrics` asks for a scope: the others tell nothing of anybody.
"""

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from gateway.runtime.principal import Scope
from gateway.transports.dashboard_files import dashboard_file, dashboard_index
from gateway.transports.http_request import HttpRequest
from gateway.transports.http_response import Header, Response, text
from gateway.transports.operator_openapi import operator_openapi_text
from gateway.transports.ports import Services

_HTML: Final[Header] = (b"content-type", b"text/html; charset=utf-8")


@dataclass(frozen=True, slots=True)
class Page:
    """A path that is answered without an operation. `name` is the wire's, where it has one."""

    name: str
    path: str
    render: Callable[[Services, HttpRequest], Response]
    scope: str = ""
    method: str = "GET"


def _live(services: Services, request: HttpRequest) -> Response:
    return text(200, "ok\n")


def _ready(services: Services, request: HttpRequest) -> Response:
    """503 with the reasons, one per line, until traffic may come."""
    reasons = services.unready()
    if not reasons:
        return text(200, "ready\n")
    return text(503, "".join(f"{reason}\n" for reason in reasons), (b"retry-after", b"1"))


def _metrics(services: Services, request: HttpRequest) -> Response:
    content_type, body = services.metrics.render(request.header("accept"))
    return Response(200, body, (b"content-type", content_type.encode()))


def _openapi(services: Services, request: HttpRequest) -> Response:
    return Response(200, openapi_text())


def _operator_openapi(services: Services, request: HttpRequest) -> Response:
    return Response(200, operator_openapi_text())


def _docs(services: Services, request: HttpRequest) -> Response:
    page, policy = docs_page()
    return Response(200, page, _HTML, ((b"content-security-policy", policy),))


@cache
def openapi_text() -> bytes:
    """The generated description of this API, as it ships with the spec."""
    return resources.files("acp_spec").joinpath("openapi/gateway.v1.json").read_bytes()


@cache
def docs_page() -> tuple[bytes, bytes]:
    """The page and its content security policy: only its own script and style may run."""
    page = resources.files("gateway.transports").joinpath("pages_docs.html").read_bytes()
    script = _between(page, b"<script>", end=b"</script>")
    style = _between(page, b"<style>", end=b"</style>")
    policy = (
        f"default-src 'none'; connect-src 'self'; base-uri 'none'; frame-ancestors 'none';"
        f" script-src 'sha256-{script}'; style-src 'sha256-{style}'"
    )
    return page, policy.encode()


def _between(page: bytes, start: bytes, *, end: bytes) -> str:
    inside = page.partition(start)[2].partition(end)[0]
    return base64.b64encode(hashlib.sha256(inside).digest()).decode()


PAGES: Final = (
    Page("live", "/healthz", _live),
    Page("ready", "/readyz", _ready),
    Page("metrics", "/metrics", _metrics, scope=Scope.OPERATE),
    Page("openapi", "/openapi.json", _openapi),
    Page("operator_openapi", "/openapi/operator.json", _operator_openapi),
    Page("docs", "/docs", _docs),
    Page("dashboard", "/dashboard", dashboard_index),
    Page("dashboard_slash", "/dashboard/", dashboard_index),
    Page("dashboard_file", "/dashboard/{file}", dashboard_file),
)
