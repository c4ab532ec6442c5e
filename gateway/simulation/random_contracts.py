"""Random contracts for random workflows: schemas, plan guards, SLAs, rules that answer instead.

What a contract may demand depends on the file around it; every one made here fits its file.
"""

from collections.abc import Sequence

from gateway.simulation.dice import Dice

Demand = dict[str, object]


def contract(steps: Sequence[Demand], dice: Dice, *, has_fallback: bool) -> Demand:
    """A contract for a file of these steps."""
    found: Demand = {"description": "made by chance"}
    if dice.happens(0.6):
        found["input_schema"] = {"type": "object", "required": ["query", "n"]}
    if dice.happens(0.4):
        found["output_schema"] = {"type": ["object", "string", "null"], "maxProperties": 2}
        found["on_output_breach"] = "fallback" if has_fallback and dice.happens(0.5) else "fail"
    has_plan = any(step["role"] == "plan" for step in steps)
    if has_plan and dice.happens(0.6):
        found["plan"] = _plan_guard(dice)
    if has_plan and dice.happens(0.5):
        found["sla"] = {"planner": _sla(dice, has_fallback=has_fallback)}
    if dice.happens(0.35):
        found["fallback"] = _rules(dice)
    return found


def _plan_guard(dice: Dice) -> Demand:
    guard: Demand = {
        "max_sub_goals": dice.between(2, 5),
        "max_depth": dice.between(2, 4),
        "max_calls": {"*": dice.between(1, 3), "print": dice.between(0, 1)},
        "max_arguments_bytes": 512,
        "on_reject": dice.pick(("fail", "replan")),
    }
    if dice.happens(0.3):
        guard["repetition"] = "forbidden"
    return guard


def _sla(dice: Dice, *, has_fallback: bool) -> Demand:
    actions = ("alarm", "refuse", "fallback") if has_fallback else ("alarm", "refuse")
    return {
        "max_latency_ms": dice.between(20, 200),
        "min_success_rate": dice.pick((0.5, 0.8, 0.95)),
        "window_ms": dice.between(1_000, 4_000),
        "min_samples": dice.between(3, 8),
        "on_breach": dice.pick(actions),
    }


def _rules(dice: Dice) -> Demand:
    return {
        "after_failures": dice.between(2, 4),
        "probe_every": dice.between(2, 4),
        "return_after": dice.between(1, 3),
        "rules": [
            {"name": "few", "when": "input.n < 3", "output": {"decision": "accept"}},
            {"name": "rest", "output": "{'decision': 'refer', 'n': input.n}"},
        ],
    }
