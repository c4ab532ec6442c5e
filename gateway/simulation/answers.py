"""What honest components say: plans, outputs, memories, verdicts, drawn from an attempt's dice.

Texts are JSON bytes as a component would write them. Nothing here knows faults.
"""

from typing import Final

import msgspec

from acp_spec.model.enums import StepRole
from gateway.simulation.dice import Dice

PLANNED: Final = (
    *("read", "read", "book", "put", "pay", "hold", "peek", "ask", "brief", "grow", "print"),
)
VERDICTS: Final = (
    (0.06, "RETRY"),
    (0.06, "REPLAN"),
    (0.05, "FALLBACK"),
    (0.03, "ABORT"),
)
GOALS_MAX: Final = 5
STORED: Final = b'{"stored":1,"memory":[{"id":"m1","data":{"done":1},"score":0.5}]}'
GARBAGE: Final = (
    b'{"output":[],"plan":7,"verdict":"MAYBE","stored":"x","side_effect":"PERHAPS"}',
    b'{"plan":{"sub_goals":[{"id":"a","action":"read","depends_on":["nobody"]}]}}',
    b"[]",
)
_encode = msgspec.json.Encoder().encode


class _Named(msgspec.Struct):
    call_id: str


class _Asked(msgspec.Struct):
    calls: list[_Named] = []


_asked = msgspec.json.Decoder(_Asked)


def response(role: StepRole, body: bytes, *, dice: Dice) -> bytes:
    """The response's text."""
    match role:
        case StepRole.PLAN:
            return plan(dice)
        case StepRole.EXECUTE:
            return b'{"output":{"done":%d,"v":"%d"}}' % (dice.below(3), dice.below(10))
        case StepRole.OBSERVE:
            return STORED
        case StepRole.REFLECT:
            return verdict(body, dice)


def plan(dice: Dice) -> bytes:
    """Sub-goals in a graph; now and then an empty plan that answers by itself."""
    count = dice.between(0, GOALS_MAX) if dice.happens(0.2) else dice.between(2, GOALS_MAX)
    goals = [_goal(number, dice) for number in range(count)]
    answer: dict[str, object] = {"plan": {"root_goal": "g", "sub_goals": goals}}
    if not goals:
        answer["output"] = {"done": 0}
    return _encode(answer)


def _goal(number: int, dice: Dice) -> dict[str, object]:
    goal: dict[str, object] = {
        "id": f"g{number}",
        "action": dice.pick(PLANNED),
        "arguments": {"n": number, "to": {"a": 1}},
    }
    if number and dice.happens(0.5):
        needed = f"g{dice.below(number)}"
        goal["depends_on"] = [needed]
        if dice.happens(0.5):
            pointer = dice.weighed(((0.8, "/done"), (0.15, "")), "/missing")
            goal["bindings"] = [{"to": "/to/a", "from": needed, "pointer": pointer}]
        if dice.happens(0.2):
            goal["when"] = [{"from": needed, "pointer": "/done", "op": "GE", "value": 1}]
    if dice.happens(0.1):
        goal["repeat"] = True
    return goal


def verdict(body: bytes, dice: Dice) -> bytes:
    """Mostly ACCEPT; a RETRY names some of the calls it was shown."""
    said = dice.weighed(VERDICTS, "ACCEPT")
    answer: dict[str, object] = {"verdict": said, "output": {"answer": 1}, "critique": "hm"}
    if said == "RETRY":
        calls = _asked.decode(body).calls
        answer["retry_call_ids"] = [one.call_id for one in calls if dice.happens(0.5)]
    if said == "ACCEPT":
        answer["rewards"] = [{"name": "quality", "value": 0.8}]
    return _encode(answer)
