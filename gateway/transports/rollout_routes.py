"""Rollouts and replays over HTTP, for operators: `/v1/rollouts`, `/v1/replays`. Not in ACP v1.

Components, workflows and policies belong to the whole gateway, and so do their rollouts: every
operator sees and moves them; the audit log says who did.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from acp_spec.bindings.routes import Route
from acp_spec.codec import json
from acp_spec.model import gateway_calls as calls
from gateway.governance.rollout import Order
from gateway.governance.rollout_spec import RolloutSpec
from gateway.runtime.replays import ReplayRequest, ReplayResult
from gateway.runtime.rollouts import OrderRequest, RolloutPage, RolloutView
from gateway.transports.http_request import HttpRequest
from gateway.transports.http_routes import Builder, HttpLimits
from gateway.transports.operations import EMPTY, Caller, Done, Operation

_ALL, _ONE = "/v1/rollouts", "/v1/rollouts/{rollout_id}"


class RolloutId(msgspec.Struct, frozen=True, kw_only=True):
    """Which rollout, by the id in the path."""

    rollout_id: str


class GiveOrder(msgspec.Struct, frozen=True, kw_only=True):
    rollout_id: str
    request: OrderRequest


def _order_route(order: Order) -> Route:
    word = order.value.lower()
    return Route(
        name=f"{word}_rollout",
        method="POST",
        path=f"{_ONE}/{word}",
        request=OrderRequest,
        response=RolloutView,
        scope="operate",
    )


ROLLOUT_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="start_rollout",
        method="POST",
        path=_ALL,
        request=RolloutSpec,
        response=RolloutView,
        status=201,
        scope="operate",
    ),
    Route(name="list_rollouts", method="GET", path=_ALL, response=RolloutPage, scope="operate"),
    Route(name="get_rollout", method="GET", path=_ONE, response=RolloutView, scope="operate"),
    *map(_order_route, Order),
    Route(
        name="replay_session",
        method="POST",
        path="/v1/replays",
        request=ReplayRequest,
        response=ReplayResult,
        scope="operate",
    ),
)


async def start_rollout(caller: Caller, spec: RolloutSpec) -> Done:
    view = await caller.services.rollouts.start(spec, caller.principal)
    return Done(view, location=f"{_ALL}/{view.rollout_id}")


async def list_rollouts(caller: Caller, request: calls.Empty) -> Done:
    return Done(caller.services.rollouts.list())


async def get_rollout(caller: Caller, request: RolloutId) -> Done:
    return Done(caller.services.rollouts.get(request.rollout_id))


async def replay_session(caller: Caller, request: ReplayRequest) -> Done:
    return Done(await caller.services.replays.run(request, caller.principal))


def _operation_of(order: Order) -> Operation:
    async def operate(caller: Caller, given: GiveOrder) -> Done:
        return Done(
            await caller.services.rollouts.order(
                given.rollout_id, order, reason=given.request.reason, principal=caller.principal
            )
        )

    return operate


def _start(request: HttpRequest, limits: HttpLimits) -> RolloutSpec:
    return json.decode_request(
        RolloutSpec, request.body, max_bytes=limits.body_bytes, lower_case_enums=True
    )


def _replay(request: HttpRequest, limits: HttpLimits) -> ReplayRequest:
    return json.decode_request(ReplayRequest, request.body, max_bytes=limits.body_bytes)


def _list(request: HttpRequest, limits: HttpLimits) -> calls.Empty:
    return EMPTY


def _one(request: HttpRequest, limits: HttpLimits) -> RolloutId:
    return RolloutId(rollout_id=request.params[0])


def _order(request: HttpRequest, limits: HttpLimits) -> GiveOrder:
    text = request.body or b"{}"
    body = json.decode_request(OrderRequest, text, max_bytes=limits.body_bytes)
    return GiveOrder(rollout_id=request.params[0], request=body)


ROLLOUT_OPERATIONS: Final[Mapping[str, Operation]] = {
    "start_rollout": start_rollout,
    "list_rollouts": list_rollouts,
    "get_rollout": get_rollout,
    "replay_session": replay_session,
    **{f"{order.value.lower()}_rollout": _operation_of(order) for order in Order},
}
ROLLOUT_BUILDERS: Final[Mapping[str, Builder]] = {
    "start_rollout": _start,
    "list_rollouts": _list,
    "get_rollout": _one,
    "replay_session": _replay,
    **{f"{order.value.lower()}_rollout": _order for order in Order},
}
