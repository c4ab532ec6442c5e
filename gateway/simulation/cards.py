"""The components of a simulated town: their cards, and one action of every kind there can be.

Effects, idempotency, key lifetimes, operations, schemas, kinds, concurrency limits: what a card can
say, some card here says. Two replicas serve `tools`; all others are alone.
"""

from typing import Final

from acp_spec.model.card import Action, Card, Limits
from acp_spec.model.enums import Effect, Idempotency, Kind, Role
from acp_spec.model.payload import payload

READ, WRITE = Effect.READ, Effect.WRITE
NATURAL, BY_KEY, NONE = Idempotency.NATURAL, Idempotency.BY_KEY, Idempotency.NONE

DAY_MS: Final = 86_400_000
BRIEF_TTL_MS: Final = 300
"""Shorter than many a retry takes: an action whose key is forgotten soon."""

_OBJECT: Final = payload(b'{"type":"object"}')
_DONE: Final = payload(b'{"type":"object","required":["done"]}')


def _action(name: str, kind: tuple[Effect, Idempotency], **fields: int) -> Action:
    return Action(
        name=name,
        effect=kind[0],
        idempotency=kind[1],
        idempotency_ttl_ms=fields.get("ttl_ms", DAY_MS),
        timeout_ms=fields.get("timeout_ms", 0),
        operation_timeout_ms=fields.get("operation_ms", 0),
        input_schema=_OBJECT,
        output_schema=_DONE,
    )


ACTIONS: Final = (
    _action("read", (READ, NATURAL), timeout_ms=800),
    _action("peek", (READ, NONE), timeout_ms=600),
    _action("put", (WRITE, NATURAL), timeout_ms=900),
    _action("book", (WRITE, BY_KEY), timeout_ms=700),
    _action("brief", (WRITE, BY_KEY), ttl_ms=BRIEF_TTL_MS, timeout_ms=250),
)
BANK_ACTIONS: Final = (
    _action("pay", (WRITE, NONE), timeout_ms=700),
    _action("hold", (WRITE, BY_KEY), timeout_ms=900),
)
YARD_ACTIONS: Final = (
    _action("grow", (WRITE, BY_KEY), operation_ms=4_000, timeout_ms=600),
    _action("print", (WRITE, NONE), operation_ms=2_500, timeout_ms=600),
)
MODEL_ACTIONS: Final = (_action("ask", (READ, NATURAL), timeout_ms=1_500),)


def _card(name: str, *actions: Action, roles: tuple[Role, ...] = (Role.EXECUTOR,)) -> Card:
    return Card(
        name=name,
        version="1.0.0",
        roles=roles,
        actions=actions,
        limits=Limits(max_concurrency=LIMITS[name], max_rate_per_s=RATES.get(name, 0.0)),
        kind=Kind.LLM if name == "model" else Kind.TOOL,
    )


LIMITS: Final = {
    "planner": 6,
    "memory": 6,
    "judge": 6,
    "tools": 5,
    "bank": 4,
    "yard": 4,
    "model": 3,
}
"""Calls at once per instance: few, so that calls queue."""

RATES: Final = {"model": 20.0}
"""Calls a second: so few that they wait for their tokens."""

CARDS: Final = (
    _card("planner", roles=(Role.PLANNER,)),
    _card("memory", roles=(Role.OBSERVER,)),
    _card("judge", roles=(Role.REFLECTOR,)),
    _card("tools", *ACTIONS),
    _card("bank", *BANK_ACTIONS),
    _card("yard", *YARD_ACTIONS),
    _card("model", *MODEL_ACTIONS),
)
REPLICAS: Final = {"tools": 2}

DECLARED: Final = {action.name: action for card in CARDS for action in card.actions}
"""Every action by name."""
