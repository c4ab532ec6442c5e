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


def policy_problem(name: str, params: bytes) -> str | None:
    """What is wrong with a `recovery` block, for the author of the file; None when nothing is."""
    if name not in POLICY_NAMES:
        return f"there is no policy {name!r}; known: {', '.join(POLICY_NAMES)}"
    known = Backoff.__struct_fields__
    try:
        given = msgspec.json.decode(params or b"{}", type=dict[str, int])
    except msgspec.ValidationError as problem:
        return f"parameters are whole numbers of milliseconds: {problem}"
    for field, value in given.items():
        if field not in known:
            return f"{name} has no parameter {field!r}; it has {', '.join(known)}"
        if value < 1:
            return f"{field} must be at least 1"
    wanted = msgspec.structs.replace(Backoff(), **given)
    return "base_ms must not be over max_ms" if wanted.base_ms > wanted.max_ms else None


def defaults_of(params: str, otherwise: Backoff) -> Backoff:
    """The defaults that a session carries (`Opened.recovery_params`), else the gateway's."""
    return _defaults(params, otherwise) if params else otherwise


def policies_of(workflow: Workflow | None, params: str, *, defaults: Backoff) -> dict[str, str]:
    """The policies of a session, as its lineage names them."""
    ref = policy_for(workflow, "", defaults=defaults_of(params, defaults)).ref
    return {"recovery": f"{ref.name}@{ref.version}#{ref.digest}"}


@functools.lru_cache(maxsize=256)
def _defaults(params: str, otherwise: Backoff) -> Backoff:
    given = msgspec.json.decode(params, type=dict[str, int])
    return msgspec.structs.replace(otherwise, **given)


@functools.lru_cache(maxsize=256)
def _backoff(params: bytes, defaults: Backoff) -> Policy:
    given = msgspec.json.decode(params, type=dict[str, int])
    return BackoffPolicy(msgspec.structs.replace(defaults, **given))
