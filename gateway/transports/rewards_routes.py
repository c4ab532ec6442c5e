"""Reward rules over HTTP: `/v1/rewards`. The gateway's own, not part of ACP v1.

Rules hold for the whole gateway, whoever's sessions they score: operators read them, only an admin
changes them. The text is sent as a workflow file is, YAML or JSON.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from acp_spec.bindings.errors import invalid_request
from acp_spec.bindings.routes import Body, Route
from acp_spec.model import gateway_calls as calls
from gateway.runtime.reward_rules import RulesPage, StoredRules
from gateway.transports.http_request import HttpRequest
from gateway.transports.http_routes import Builder, HttpLimits
from gateway.transports.operations import EMPTY, Caller, Done, Operation

_RULES: Final = "/v1/rewards/rules"


class RulesText(msgspec.Struct, frozen=True, kw_only=True):
    """A rules file as it was sent."""

    source: str


class RulesName(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    version: str


REWARDS_ROUTES: Final[tuple[Route, ...]] = (
    Route(
        name="list_reward_rules",
        method="GET",
        path=_RULES,
        response=RulesPage,
        scope="operate",
    ),
    Route(
        name="get_reward_rules",
        method="GET",
        path=f"{_RULES}/{{name}}/{{version}}",
        response=StoredRules,
        scope="operate",
    ),
    Route(
        name="put_reward_rules",
        method="PUT",
        path=_RULES,
        request_body=Body.YAML,
        response=RulesPage,
        scope="admin",
    ),
    Route(
        name="drop_reward_rules",
        method="DELETE",
        path=_RULES,
        response=RulesPage,
        scope="admin",
    ),
)


async def list_reward_rules(caller: Caller, asked: calls.Empty) -> Done:
    """Which rules hold, every stored version, and the last text that was refused."""
    return Done(caller.services.rewards.page)


async def get_reward_rules(caller: Caller, asked: RulesName) -> Done:
    """One version with its text."""
    return Done(caller.services.rewards.stored(asked.name, asked.version))


async def put_reward_rules(caller: Caller, asked: RulesText) -> Done:
    """Store rules and let them hold."""
    return Done(await caller.services.rewards.put(asked.source, caller.principal))


async def drop_reward_rules(caller: Caller, asked: calls.Empty) -> Done:
    """Let no rules hold; stored versions stay."""
    return Done(await caller.services.rewards.drop(caller.principal))


def _nothing(request: HttpRequest, limits: HttpLimits) -> calls.Empty:
    return EMPTY


def _text(request: HttpRequest, limits: HttpLimits) -> RulesText:
    try:
        return RulesText(source=request.body.decode())
    except UnicodeDecodeError as problem:
        raise invalid_request(f"body: is not UTF-8 (byte {problem.start})") from None


def _name(request: HttpRequest, limits: HttpLimits) -> RulesName:
    name, version = request.params
    return RulesName(name=name, version=version)


REWARDS_OPERATIONS: Final[Mapping[str, Operation]] = {
    "list_reward_rules": list_reward_rules,
    "get_reward_rules": get_reward_rules,
    "put_reward_rules": put_reward_rules,
    "drop_reward_rules": drop_reward_rules,
}
REWARDS_BUILDERS: Final[Mapping[str, Builder]] = {
    "list_reward_rules": _nothing,
    "get_reward_rules": _name,
    "put_reward_rules": _text,
    "drop_reward_rules": _nothing,
}
