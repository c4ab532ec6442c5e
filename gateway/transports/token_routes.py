"""API tokens over HTTP, for administrators: `/v1/tokens`. The gateway's own, not part of ACP v1.

The spec's table has no tokens: how a gateway hands them out is its own business. The CLI uses these
while the gateway runs, and the data directory while it does not. A caller sees, makes and revokes
tokens of its own tenant only.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from acp_spec.bindings.routes import Route
from acp_spec.codec import json
from acp_spec.model import gateway_calls as calls
from gateway.runtime.tokens import TokenCreated, TokenPage, TokenRequest
from gateway.transports.http_request import HttpRequest
from gateway.transports.http_routes import Builder, HttpLimits
from gateway.transports.operations import EMPTY, Caller, Done, Operation

TOKEN_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="create_token",
        method="POST",
        path="/v1/tokens",
        request=TokenRequest,
        response=TokenCreated,
        status=201,
        scope="admin",
    ),
    Route(
        name="list_tokens",
        method="GET",
        path="/v1/tokens",
        response=TokenPage,
        scope="admin",
    ),
    Route(
        name="revoke_token",
        method="DELETE",
        path="/v1/tokens/{token_id}",
        status=204,
        scope="admin",
    ),
)


class TokenId(msgspec.Struct, frozen=True, kw_only=True):
    """Which token, by the id in the path."""

    token_id: str


async def create_token(caller: Caller, request: TokenRequest) -> Done:
    principal = caller.principal
    return Done(
        await caller.services.tokens.create(request, tenant=principal.tenant, by=principal.subject)
    )


async def list_tokens(caller: Caller, request: calls.Empty) -> Done:
    return Done(TokenPage(tokens=caller.services.tokens.list(tenant=caller.principal.tenant)))


async def revoke_token(caller: Caller, request: TokenId) -> Done:
    principal = caller.principal
    await caller.services.tokens.revoke(
        request.token_id, tenant=principal.tenant, by=principal.subject
    )
    return Done(EMPTY)


def _create(request: HttpRequest, limits: HttpLimits) -> TokenRequest:
    return json.decode_request(TokenRequest, request.body, max_bytes=limits.body_bytes)


def _list(request: HttpRequest, limits: HttpLimits) -> calls.Empty:
    return EMPTY


def _revoke(request: HttpRequest, limits: HttpLimits) -> TokenId:
    return TokenId(token_id=request.params[0])


TOKEN_OPERATIONS: Final[Mapping[str, Operation]] = {
    "create_token": create_token,
    "list_tokens": list_tokens,
    "revoke_token": revoke_token,
}
TOKEN_BUILDERS: Final[Mapping[str, Builder]] = {
    "create_token": _create,
    "list_tokens": _list,
    "revoke_token": _revoke,
}
