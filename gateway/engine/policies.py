"""Recovery policies by name, as a workflow's `recovery` block chooses them."""

import functools

import msgspec

from gateway.engine.backoff_policy import NAME as BACKOFF
from gateway.engine.backoff_policy import BackoffPolicy
from gateway.engine.definition import Workflow
from gateway.engine.recovery import Policy
from gateway.governance.backoff import Backoff

POLICY_NAMES = (BACKOFF,)


def policy_for(workflow: Workflow | None, step_name: str, *, defaults: Backoff) -> Policy:
    """The policy of a step: its own, else the workflow's, else backoff by default."""
    step = workflow.step(step_name) if workflow else None
    chosen = workflow.recovery_of(step) if workflow and step else None
    return _backoff(chosen.params if chosen else b"{}", defaults)


@functools.lru_cache(maxsize=256)
def _backoff(params: bytes, defaults: Backoff) -> Policy:
    given = msgspec.json.decode(params, type=dict[str, int])
    return BackoffPolicy(msgspec.structs.replace(defaults, **given))
