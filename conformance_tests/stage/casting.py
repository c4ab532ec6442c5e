"""From a case's `stage` to actors and workflows: names made unique, defaults filled in.

Every name carries the case's key, so that cases run side by side in one gateway: component
`c-KEY`, action `KEY.act`, workflow `w-KEY`.
"""

from typing import Final, cast

from conformance_tests.messages.tree import Text, Tree, Value, as_text
from conformance_tests.runner.requests import merged
from conformance_tests.stage.actors import Actor

ROLES: Final = ["PLANNER", "EXECUTOR", "OBSERVER", "REFLECTOR"]
READ: Final[Tree] = {"name": "act", "effect": "READ", "idempotency": "NATURAL"}
PAYLOADS_OF_ACTION: Final = ("input_schema", "output_schema", "semantics")

WORKFLOWS: Final = {
    "single": """\
workflow: w-KEY
version: 1.0.0
steps:
  - name: act
    role: execute
    component: c-KEY
    action: KEY.act
    input_mapping: {value: input}
output: act.output.value
""",
    "planned": """\
workflow: w-KEY
version: 1.0.0
steps:
  - {name: plan, role: plan, component: c-KEY}
  - {name: act, role: execute, plan: plan}
output: act.output
""",
    "full": """\
workflow: w-KEY
version: 1.0.0
steps:
  - {name: plan, role: plan, component: c-KEY}
  - {name: act, role: execute, plan: plan, on_error: continue}
  - {name: observe, role: observe, component: c-KEY}
  - {name: reflect, role: reflect, component: c-KEY, on: {REPLAN: plan, RETRY: act}}
output: reflect.output
limits: {max_loops: 2}
""",
}


def cast_actors(stage: Tree, key: str) -> dict[str, Actor]:
    """The actors of a case by their short names; without any it has one, `c`."""
    stated = cast("dict[str, Tree]", stage.get("actors", {"c": {}}))
    return {name: _actor(name, about, key=key) for name, about in stated.items()}


def _actor(name: str, about: Tree, *, key: str) -> Actor:
    actions = [_action(one, key) for one in cast("list[Tree]", about.get("actions", [READ]))]
    card: Tree = {
        "name": str(about.get("name", f"{name}-{key}")),
        "version": "1.0.0",
        "roles": cast("Value", about.get("roles", ROLES)),
        "actions": cast("Value", actions),
        "limits": {"max_concurrency": 64},
    }
    scripts = {
        do: [_goals_named(reply, key) for reply in replies]
        for do, replies in cast("dict[str, list[Tree]]", about.get("says", {})).items()
    }
    return Actor(merged(card, cast("Tree", about.get("card", {}))), scripts)


def _action(stated: Tree, key: str) -> Tree:
    action = {k: as_text(v) if k in PAYLOADS_OF_ACTION else v for k, v in stated.items()}
    return {**action, "name": f"{key}.{stated['name']}"}


def _goals_named(reply: Tree, key: str) -> Tree:
    """`goals: [...]` is a plan whose actions are named shortly."""
    if "goals" not in reply:
        return reply
    goals = [
        {"arguments": Text(b"{}"), **goal, "action": f"{key}.{goal.get('action', 'act')}"}
        for goal in cast("list[Tree]", reply["goals"])
    ]
    rest = {k: v for k, v in reply.items() if k != "goals"}
    return {**rest, "plan": {"sub_goals": cast("Value", goals)}}


def workflow_text(stage: Tree, key: str) -> str:
    """The workflow file of a case; empty when it stores none."""
    stated = str(stage.get("workflow", "single"))
    return WORKFLOWS.get(stated, stated).replace("KEY", key) if stated != "none" else ""
