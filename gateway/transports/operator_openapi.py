"""OpenAPI 3.1 of the operator API, made from its route tables when somebody first asks for it.

ACP's own document is generated with the spec; these routes are this gateway's own, and so is their
description: `/openapi/operator.json`. A summary is the first line of the operation's docstring.
"""

import re
from functools import cache
from typing import Any, Final

import msgspec

from acp_spec.bindings import fields
from acp_spec.bindings.errors import ERRORS
from acp_spec.bindings.routes import Body, Route
from acp_spec.model.calls import ErrorBody
from gateway.transports.operator_api import OPERATOR_OPERATIONS, OPERATOR_ROUTES
from gateway.transports.schemas_of import Schemas

_STRING: Final = {"type": "string"}
# Any operation of an operator may be refused with these; what else is raised stands in the table.
_STATUSES: Final = (400, 401, 403, 404, 409, 413, 415, 422, 429, 503)
Document = dict[str, Any]


@cache
def operator_openapi_text() -> bytes:
    """The document as JSON."""
    return msgspec.json.encode(document(OPERATOR_ROUTES))


def document(routes: tuple[Route, ...]) -> Document:
    """The document of these routes."""
    schemas = Schemas()
    paths: dict[str, Document] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "The gateway's operator API",
            "description": "Not part of ACP v1: other gateways have their own.",
            "version": fields.VERSION,
        },
        "security": [{"bearer": []}, {}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": dict(sorted(schemas.definitions.items())),
        },
    }


def _operation(route: Route, schemas: Schemas) -> Document:
    operate = OPERATOR_OPERATIONS[route.name]
    summary = (operate.__doc__ or route.name.replace("_", " ")).strip().partition("\n")[0]
    operation: Document = {
        "operationId": route.name,
        "summary": route.about or summary,
        "x-scope": route.scope,
        "parameters": [
            *(_parameter(name, "path") for name in re.findall(r"{(\w+)}", route.path)),
            *(_parameter(name, "query") for name in route.query),
        ],
        "responses": {str(route.status): _success(route, schemas), **_refusals(schemas)},
    }
    if route.request_body is Body.YAML:
        kinds = (fields.JSON, *fields.YAML_TYPES)
        operation["requestBody"] = {"required": True, "content": {kind: {} for kind in kinds}}
    elif route.request is not None:
        content = {fields.JSON: {"schema": schemas.ref(route.request)}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameter(name: str, place: str) -> Document:
    return {"name": name, "in": place, "required": place == "path", "schema": _STRING}


def _success(route: Route, schemas: Schemas) -> Document:
    if route.status == 204:
        return {"description": "Done; no body."}
    schema = schemas.ref(route.response) if route.response else {}
    return {"description": "Done.", "content": {route.response_body.value: {"schema": schema}}}


def _refusals(schemas: Schemas) -> Document:
    content = {fields.JSON: {"schema": schemas.ref(ErrorBody)}}
    return {
        str(status): {"description": _reasons(status), "content": content} for status in _STATUSES
    }


def _reasons(status: int) -> str:
    return ", ".join(sorted(one.value for one, row in ERRORS.items() if row.http == status))
