"""The messages a suite sends: a valid one for each call, then what the case changes in it.

Every message that is not wrong on purpose is checked against `acp_spec/schema` before it leaves:
a suite that sends rubbish would test nothing (`HarnessError`).
"""

import copy
import hashlib
from functools import cache
from importlib.resources import files
from typing import Final, cast

import jsonschema_rs

from acp_spec.bindings.routes import COMPONENT
from acp_spec.codec.shapes import message_name
from acp_spec.model.ids import body_digest
from conformance_tests.messages.tree import (
    Text,
    Tree,
    Value,
    as_text,
    to_proto,
    unknown_field,
    write_value,
)
from conformance_tests.runner.scope import Scope, crockford_id, hexadecimal
from conformance_tests.runner.subject import ROLE_OF_CALL, Subject

TIMEOUT_MS: Final = 5000
RETRY_BUDGET: Final = 2


class HarnessError(Exception):
    """The suite's own message breaks the schema: a fault of the case, not of the peer."""


def build(do: str, options: Tree, *, scope: Scope, subject: Subject) -> Tree:
    """The request of one step. Raises Untestable, UnknownName."""
    tree = _BASES[do](options, scope, subject=subject) if do in _BASES else {}
    if do in ROLE_OF_CALL:
        tree["context"] = _context(scope)
    same = options.get("same")
    if isinstance(same, str):
        tree = cast("Tree", copy.deepcopy(scope.get(f"{same}/request")))
    tree = merged(tree, cast("Tree", scope.fill(options.get("message", {}))))
    if "context" in tree:
        _digest(tree, do)
        stated = cast("Tree", scope.fill(options.get("context", {})))
        tree["context"] = merged(cast("Tree", tree["context"]), stated)
    for path in cast("list[str]", scope.fill(options.get("drop", []))):
        _drop(tree, path.split("/"))
    return tree


def _context(scope: Scope) -> Tree:
    chance = scope.chance
    session = crockford_id(chance)
    return {
        "session_id": session,
        "lineage_id": f"{session}.{hexadecimal(chance, 12)}",
        "call_id": hexadecimal(chance, 32),
        "attempt": 1,
        "timeout_ms": TIMEOUT_MS,
        "retry_budget": RETRY_BUDGET,
        "traceparent": f"00-{hexadecimal(chance, 32)}-{hexadecimal(chance, 16)}-01",
        "workflow": "conformance@1.0.0",
        "step": "conformance",
        "state_version": "0.0.0",
        "tenant": "conformance",
        "labels": {"suite": "conformance"},
    }


def _digest(tree: Tree, do: str) -> None:
    """What the body says, as idempotency compares it."""
    if do == "execute":
        arguments = as_text(tree["arguments"]).data if "arguments" in tree else b""
        digest = body_digest(str(tree.get("action", "")), arguments)
    else:
        rest = {name: value for name, value in tree.items() if name != "context"}
        digest = hashlib.sha256(write_value(rest)).hexdigest()
    if isinstance(tree["context"], dict):
        tree["context"]["body_digest"] = digest


def _execute(options: Tree, scope: Scope, *, subject: Subject) -> Tree:
    stated = scope.fill(options.get("example", {}))
    chosen = {k: v for k, v in cast("Tree", stated).items() if k != "output"}
    for key in ("action", "arguments"):
        if key in options:
            chosen[key] = scope.fill(options[key])
    if "action" not in chosen:
        chosen = {**subject.safe_call().tree(), **chosen}
        chosen.pop("output", None)
    if "arguments" in chosen:
        chosen["arguments"] = as_text(chosen["arguments"])
    return chosen


def _plan(options: Tree, scope: Scope, *, subject: Subject) -> Tree:
    base: Tree = {
        "goal": "conformance",
        "input": Text(b'{"text":"conformance"}'),
        "actions": cast("Value", list(subject.actions.values())),
        "limits": {"max_sub_goals": 10},
    }
    return merged(base, cast("Tree", subject.fixtures.plan))


def _observe(options: Tree, scope: Scope, *, subject: Subject) -> Tree:
    about = {"word": scope.get("word")}
    seen: Tree = {"step": "conformance", "kind": "note", "data": as_text(about)}
    return merged({"observations": [seen]}, cast("Tree", subject.fixtures.observe))


def _reflect(options: Tree, scope: Scope, *, subject: Subject) -> Tree:
    call: Tree = {
        "call_id": hexadecimal(scope.chance, 32),
        "step": "conformance",
        "action": "acp.test.echo",
        "status": "SUCCEEDED",
        "arguments": Text(b'{"a":1}'),
        "output": Text(b'{"a":1}'),
        "side_effect": "NONE",
        "attempt": 1,
    }
    base: Tree = {"goal": "conformance", "calls": [call], "draft": Text(b'{"a":1}')}
    return merged(base, cast("Tree", subject.fixtures.reflect))


_BASES: Final = {"execute": _execute, "plan": _plan, "observe": _observe, "reflect": _reflect}


def merged(base: Tree, over: Tree) -> Tree:
    """`over` laid on `base`; objects are merged, everything else is replaced."""
    result = dict(base)
    for name, value in over.items():
        held = result.get(name)
        if isinstance(held, dict) and isinstance(value, dict):
            result[name] = merged(held, value)
        else:
            result[name] = value
    return result


def _drop(tree: Value, steps: list[str]) -> None:
    holder = tree
    for step in steps[:-1]:
        holder = holder[int(step)] if isinstance(holder, list) else cast("Tree", holder)[step]
    cast("Tree", holder).pop(steps[-1], None)


def padded(do: str, tree: Tree, *, size: int, binding: str) -> bytes:
    """The message in just `size` bytes: white space in JSON, an unknown field in protobuf."""
    if binding == "http":
        return write_value(tree).ljust(size)
    data = to_proto(tree, message_name(COMPONENT[do].rpc_in))
    overhead = len(unknown_field(b"x" * (size - len(data)))) - (size - len(data))
    return data + unknown_field(b"x" * (size - len(data) - overhead))


def check_own(do: str, tree: Tree) -> None:
    """Raises HarnessError when the message about to be sent is not valid by its schema."""
    route = COMPONENT.get(do)
    if route is None or route.request is None:
        return
    name = message_name(route.request)
    problem = next(iter(_validator(name).iter_errors(_as_plain(tree))), None)
    if problem is not None:
        raise HarnessError(f"the suite's own {name} breaks the schema: {problem.message}")


@cache
def _validator(name: str) -> "jsonschema_rs.Validator":
    text = (files("acp_spec") / "schema" / f"{name}.json").read_text(encoding="utf-8")
    return jsonschema_rs.validator_for(text)


def _as_plain(tree: Value) -> object:
    """What the schema judges; payloads are any JSON and stand as null when they cannot be read."""
    match tree:
        case Text():
            return None
        case dict():
            return {key: _as_plain(value) for key, value in tree.items()}
        case list():
            return [_as_plain(value) for value in tree]
        case _:
            return tree
