"""Random valid workflow files over the whole format: every key of it stands in some of them.

A file is a function of its number, so a number is all that a scenario has to keep. `recovery` is
the block that `--policy` gives; where it is empty some files name a policy of their own.
"""

import functools
from collections.abc import Mapping
from typing import Final

import msgspec

from gateway.engine.definition import Workflow
from gateway.engine.workflow_file import parse_workflow
from gateway.simulation.dice import Dice
from gateway.simulation.random_contracts import contract

Step = dict[str, object]

STATIC: Final = (
    *(("tools", "read"), ("tools", "book"), ("tools", "put"), ("tools", "peek")),
    *(("tools", "brief"), ("bank", "pay"), ("bank", "hold"), ("model", "ask")),
    *(("yard", "grow"), ("yard", "print"), ("tools", "read"), ("bank", "hold")),
)
CONDITIONS: Final = (
    "input.n > 2",
    "session.loop == 0",
    "has(input.deep) && size(input.deep.list) > 0",
    "input.query.startsWith('q')",
)
VALUES: Final = ("input.n", "input.deep.list[0]", "1", "input.n * 2", "input.query", "session.loop")
NAME: Final = "sim"
FIRST_VERSION: Final = "1.0.0"


def reference(number: int) -> str:
    """How a session asks for it."""
    return f"{NAME}{number}@^1.0"


def workflow_text(
    number: int, recovery: Mapping[str, object], *, version: str = FIRST_VERSION
) -> bytes:
    """The file as bytes (JSON is YAML too); a later version has little in common with the first."""
    dice = Dice("workflow", number, *(() if version == FIRST_VERSION else (version,)))
    steps = _steps(dice)
    if recovery:
        for step in steps:
            step.pop("recovery", None)
    file: dict[str, object] = {
        "workflow": f"{NAME}{number}",
        "version": version,
        "description": "made by chance",
        "steps": steps,
        "limits": _limits(dice),
        "output": _output(steps, dice),
    }
    if dice.happens(0.6):
        file["fallback"] = {"output": dice.pick(("input", "input.n", "{'sorry': true}"))}
    if dice.happens(0.2):
        file["pin"] = dice.pick(("strict", "prefer"))
    chosen = dict(recovery) or (_recovery(dice) if dice.happens(0.5) else {})
    if chosen:
        file["recovery"] = chosen
    if dice.happens(0.4):
        file["contract"] = contract(steps, dice, has_fallback="fallback" in file)
    return msgspec.json.encode(file)


@functools.lru_cache(maxsize=4096)
def parsed(text: bytes) -> Workflow:
    """The file as the engine reads it; by chance or not, it must be valid."""
    found = parse_workflow(text)
    assert isinstance(found, Workflow), f"{text!r} is not valid: {found}"
    return found


def _steps(dice: Dice) -> list[Step]:
    steps: list[Step] = []
    has_plan = dice.happens(0.65)
    if has_plan:
        steps += _planned(dice)
    count = dice.between(0, 1) if has_plan else dice.between(2, 4)
    for number in range(count):
        steps.append(_static(f"s{number}", steps, dice=dice))
    if dice.happens(0.8):
        steps.append(_plain("remember", "observe", dice=dice, component="memory"))
        if dice.happens(0.3):
            steps[-1]["input_mapping"] = {"recall": "{'query': 'x', 'limit': 2}"}
    if dice.happens(0.85):
        judge = _plain("judge", "reflect", dice=dice, component="judge")
        back = ("plan", "act") if has_plan else ("s0", "s0")
        judge["on"] = {"REPLAN": back[0], "RETRY": back[1]}
        if dice.happens(0.3):
            judge["input_mapping"] = {"draft": "input"}
        steps.append(judge)
    return steps


def _planned(dice: Dice) -> list[Step]:
    plan = _plain("plan", "plan", dice=dice, component="planner")
    plan["input_mapping"] = {"goal": dice.pick(("input.query", "'do ' + input.query"))}
    act = _plain("act", "execute", dice=dice)
    act["plan"] = "plan"
    if dice.happens(0.3):
        act["require"] = "all"
    return [plan, act]


def _static(name: str, before: list[Step], *, dice: Dice) -> Step:
    component, action = dice.pick(STATIC)
    step = _plain(name, "execute", dice=dice, component=component)
    step["action"] = action
    mapping = {"n": dice.pick(VALUES)}
    earlier = [one for one in before if one["role"] == "execute" and "plan" not in one]
    if earlier and dice.happens(0.4):
        mapping["v"] = f"{earlier[-1]['name']}.status"
    step["input_mapping"] = mapping
    if dice.happens(0.25):
        step["condition"] = dice.pick(CONDITIONS)
    if dice.happens(0.3):
        step["output_mapping"] = {f"{name}_done": "output.done"}
    if dice.happens(0.2):
        step["repeat"] = True
    if dice.happens(0.25):
        step["timeout_ms"] = dice.between(100, 1_500)
    return step


def _plain(name: str, role: str, *, dice: Dice, component: str = "") -> Step:
    step: Step = {"name": name, "role": role}
    if component and dice.happens(0.6):
        step["component"] = component + ("@^1.0" if dice.happens(0.2) else "")
    if dice.happens(0.15):
        step["on_error"] = "continue"
    if dice.happens(0.1):
        step["recovery"] = _recovery(dice)
    if dice.happens(0.1):
        step["pin"] = dice.pick(("strict", "prefer"))
    return step


def _recovery(dice: Dice) -> dict[str, object]:
    return {"policy": "backoff", "base_ms": dice.between(5, 200), "max_ms": dice.between(200, 900)}


def _limits(dice: Dice) -> dict[str, int]:
    limits = {"max_loops": dice.between(1, 3), "max_sub_goals": dice.between(5, 10)}
    if dice.happens(0.3):
        limits["deadline_ms"] = dice.between(2_000, 20_000)
    return limits


def _output(steps: list[Step], dice: Dice) -> str:
    choices = ["input", "{'n': input.n, 'loop': session.loop}"]
    if steps[-1]["role"] == "reflect":
        choices += ["judge.output", "judge.status"]
    return dice.pick(choices)
