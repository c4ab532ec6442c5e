"""Governance parameters: everything an operator may change while the gateway runs (R09).

One frozen document with a default and a reason for each figure; a change makes a new version, and
each attempt's row names the version it went by. Parts may be overridden per component. The document
is checked by its types; what types cannot say is checked by `problem`.
"""

import math
import re
from typing import Annotated, Final

import msgspec

from acp_spec.model.card import Card
from acp_spec.model.enums import StepType
from gateway.governance.backoff import Backoff
from gateway.governance.queue_delay import QueueDelay
from gateway.governance.rules import (
    PER_SECOND_LEAST,
    PER_SECOND_MOST,
    BreakerRules,
    HedgeRules,
    RateRules,
    RetryTokenRules,
    Rules,
    Slots,
)

Budget = Annotated[int, msgspec.Meta(ge=0, le=1_000)]

BURSTS_PER_S = 10
"""A card's rate may come in bursts of a tenth of a second."""

BACKOFF_MAX_MS = 3_600_000
"""An hour: no session waits longer for anything."""

COMPONENTS_MAX = 10_000
"""Overrides are written by people."""

COMPONENT_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
ACTION_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
"""As on cards: what is written for another name would hold for nobody, ever."""
SHOWN_CHARACTERS: Final = 100


class Queues(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Slots of the whole gateway by step type, so that a slow model server starves no tool."""

    plan: Slots = Slots(limit=128, max_waiting=4_096)
    """Planners answer in 10-1000 ms; one plan per session and loop."""
    tool: Slots = Slots(limit=512, max_waiting=16_384)
    """Most calls are tools, short and many; reflect and observe queue here too."""
    llm: Slots = Slots(limit=64, max_waiting=2_048)
    """Model servers batch tens of requests; more in flight only waits there."""

    def of(self) -> dict[str, Slots]:
        """By the names of the step types."""
        return {
            StepType.PLAN.value: self.plan,
            StepType.TOOL.value: self.tool,
            StepType.LLM.value: self.llm,
        }


class Override(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What holds for one component instead; what is left out is as for all. `actions`: the calls
    per second of single actions; `rate`: of one instance, instead of what its card says."""

    breaker: BreakerRules | None = None
    retry_tokens: RetryTokenRules | None = None
    target: Slots | None = None
    rate: RateRules | None = None
    actions: dict[str, RateRules] = {}
    backoff: Backoff | None = None
    hedge: HedgeRules | None = None


class Parameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole document. `retry_budget`: retries a session may spend in all, from its opening."""

    breaker: BreakerRules = BreakerRules()
    retry_tokens: RetryTokenRules = RetryTokenRules()
    target: Slots = Slots()
    queues: Queues = Queues()
    backoff: Backoff = Backoff()
    hedge: HedgeRules = HedgeRules()
    overload: QueueDelay = QueueDelay()
    retry_budget: Budget = 8
    components: dict[str, Override] = {}


def problem(parameters: Parameters) -> str | None:
    """What is wrong with a document whose types are right, or None."""
    if len(parameters.components) > COMPONENTS_MAX:
        return f"components: at most {COMPONENTS_MAX} may be overridden"
    places = [("", parameters.backoff, parameters.breaker)]
    for name, override in parameters.components.items():
        misnamed = _misnamed(name, override)
        if misnamed is not None:
            return misnamed
        backoff = override.backoff or parameters.backoff
        places.append((f"components.{name}.", backoff, override.breaker or parameters.breaker))
    for place, backoff, breaker in places:
        if not 1 <= backoff.base_ms <= backoff.max_ms <= BACKOFF_MAX_MS:
            return f"{place}backoff: 1 <= base_ms <= max_ms <= {BACKOFF_MAX_MS} must hold"
        if breaker.open_ms > breaker.max_open_ms:
            return f"{place}breaker: open_ms must not be over max_open_ms"
    return None


def _misnamed(name: str, override: Override) -> str | None:
    """What is wrong with the names that an override goes by."""
    if not COMPONENT_NAME.fullmatch(name):
        shown = name[:SHOWN_CHARACTERS]
        return f"components: {shown!r} is no component's name, as `acp components list` shows them"
    for action in override.actions:
        if not ACTION_NAME.fullmatch(action):
            return f"components.{name}.actions: {action[:SHOWN_CHARACTERS]!r} is no action's name"
    return None


def backoff_for(parameters: Parameters, component: str) -> Backoff:
    """The waits between attempts at this component, where its workflow says nothing."""
    override = parameters.components.get(component)
    return (override.backoff if override else None) or parameters.backoff


def rules_for(parameters: Parameters, card: Card, *, version: int) -> Rules:
    """What holds for instances of this card: an operator's override, then what the card says of
    itself, then what holds for all."""
    override = parameters.components.get(card.name, _NOTHING)
    target = override.target or parameters.target
    if override.target is None and card.limits.max_concurrency:
        target = msgspec.structs.replace(target, limit=card.limits.max_concurrency)
    return Rules(
        version=version,
        queues=parameters.queues.of(),
        target=target,
        breaker=override.breaker or parameters.breaker,
        retries=override.retry_tokens or parameters.retry_tokens,
        rate=override.rate or _rate_of(card),
        actions=override.actions,
        hedge=override.hedge or parameters.hedge,
    )


def _rate_of(card: Card) -> RateRules | None:
    stated = card.limits.max_rate_per_s
    if stated <= 0:
        return None
    per_second = min(max(stated, PER_SECOND_LEAST), PER_SECOND_MOST)  # its word; we have to divide
    return RateRules(per_second=per_second, burst=max(1, math.ceil(per_second / BURSTS_PER_S)))


_NOTHING = Override()
