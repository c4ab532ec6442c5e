"""The stage for plays: cards, workflows from their text, answers as components write them."""

from collections.abc import Callable, Mapping

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.card import Action, Card
from acp_spec.model.enums import Effect, Idempotency, Kind, Role, SideEffect, StepRole
from acp_spec.model.errors import Reason
from acp_spec.model.ids import unit_interval
from gateway.engine.catalog import Catalog, Offer
from gateway.engine.definition import Workflow
from gateway.engine.tests.casting import Component, Said, Sent
from gateway.engine.workflow_file import parse_workflow

READ, WRITE = Effect.READ, Effect.WRITE
NATURAL, BY_KEY, NONE = Idempotency.NATURAL, Idempotency.BY_KEY, Idempotency.NONE


def workflow_of(text: str) -> Workflow:
    """The workflow in this text; its problems when it has any."""
    found = parse_workflow(text.encode())
    assert isinstance(found, Workflow), found
    return found


def action(
    name: str,
    effect: Effect = READ,
    idempotency: Idempotency = NATURAL,
    *,
    ttl_ms: int = 86_400_000,
    operation_ms: int = 0,
    timeout_ms: int = 0,
) -> Action:
    return Action(
        name=name,
        effect=effect,
        idempotency=idempotency,
        idempotency_ttl_ms=ttl_ms,
        operation_timeout_ms=operation_ms,
        timeout_ms=timeout_ms,
    )


def card(
    name: str,
    *actions: Action,
    roles: tuple[Role, ...] = (Role.EXECUTOR,),
    version: str = "1.0.0",
    kind: Kind = Kind.TOOL,
) -> Card:
    return Card(name=name, version=version, roles=roles, actions=actions, kind=kind)


PLANNER = card("planner", roles=(Role.PLANNER,))
OBSERVER = card("observer", roles=(Role.OBSERVER,))
REFLECTOR = card("reflector", roles=(Role.REFLECTOR,))
TOOLS = card(
    "tools",
    action("read"),
    action("pay", WRITE, NONE),
    action("book", WRITE, BY_KEY),
    action("brief", WRITE, BY_KEY, ttl_ms=300),
    action("put", WRITE, NATURAL),
    action("peek", READ, NONE),
    action("grow", WRITE, BY_KEY, operation_ms=60_000),
    action("print", WRITE, NONE, operation_ms=5_000),
)


def catalog_of(*cards: Card, active: dict[str, str] | None = None) -> Catalog:
    offers = tuple(Offer(card=c, digest=f"{c.name}-{c.version}") for c in cards)
    return Catalog(offers, active)


CATALOG = catalog_of(PLANNER, OBSERVER, REFLECTOR, TOOLS)
CARDS_OF_TWO = (card("one", action("put", WRITE, NATURAL)), card("two", action("other")))

FOUR_CALLS = """
workflow: four
version: 1.0.0
steps:
  - {name: plan, role: plan, input_mapping: {goal: input.query}}
  - {name: act, role: execute, plan: plan}
  - {name: remember, role: observe}
  - {name: judge, role: reflect, on: {REPLAN: plan, RETRY: act}}
output: judge.output
"""

JUDGED_ACTION = """
workflow: judged
version: 1.0.0
steps:
  - {name: act, role: execute, action: %s, input_mapping: {n: "1"}}
  - {name: judge, role: reflect, on: {REPLAN: act, RETRY: act}}
output: judge.output
"""

ONE_ACTION = """
workflow: one
version: 1.0.0
steps:
  - {name: act, role: execute, action: %s, input_mapping: {n: "1"}}
output: act.output
"""


# ---- answers ---------------------------------------------------------------------------


def goal(name: str, action_name: str, **fields: object) -> dict[str, object]:
    """A sub-goal as JSON: `depends_on`, `bindings`, `when`, `arguments`, `repeat` as needed."""
    return {"id": name, "action": action_name, **fields}


def planned(*goals: dict[str, object], **fields: object) -> Said:
    text = msgspec.json.encode({"plan": {"root_goal": "g", "sub_goals": goals}, **fields})
    return Said(response=text)


def gave(output: object) -> Said:
    return Said(response=msgspec.json.encode({"output": output}))


def gave_text(output: bytes) -> Said:
    """An output whose bytes matter."""
    return Said(response=b'{"output":' + output + b"}")


def judged(verdict: str, **fields: object) -> Said:
    return Said(response=msgspec.json.encode({"verdict": verdict, **fields}))


ACCEPTED = judged("ACCEPT", output={"answer": "fine"})
STORED = Said(response=b'{"stored":1}')


def failed(
    reason: Reason = Reason.UNAVAILABLE,
    side_effect: SideEffect | None = None,
    *,
    retry_after_ms: int | None = None,
    after_ms: int = 5,
) -> Said:
    failure = error(reason, "no", side_effect=side_effect, retry_after_ms=retry_after_ms)
    return Said(error=failure, after_ms=after_ms)


def accepted(poll_after_ms: int = 100) -> Said:
    """A long operation was taken on."""
    text = msgspec.json.encode({"operation": {"poll_after_ms": poll_after_ms}})
    return Said(response=text, poll_after_ms=poll_after_ms)


Line = Said | None | Component


def troupe(**lines: Line) -> Component:
    """A component that answers by action, else by step name, else sensibly by role.

    A line is an answer, None for silence, or a function of what was sent.
    """
    return by_name(lines)


def by_name(lines: Mapping[str, Line]) -> Component:
    def play(sent: Sent) -> Said | None:
        for name in (sent.created.action, sent.created.step):
            if name and name in lines:
                line = lines[name]
                return line(sent) if callable(line) else line
        return USUAL[sent.created.role](sent)

    return play


USUAL: dict[StepRole, Callable[[Sent], Said | None]] = {
    StepRole.PLAN: lambda sent: planned(goal("a", "read")),
    StepRole.EXECUTE: lambda sent: gave({"done": sent.created.action}),
    StepRole.OBSERVE: lambda sent: STORED,
    StepRole.REFLECT: lambda sent: ACCEPTED,
}


def first(count: int, line: Line, then: Line) -> Component:
    """`line` for the first `count` attempts of a call, `then` afterwards."""

    def play(sent: Sent) -> Said | None:
        chosen = line if sent.attempt <= count else then
        return chosen(sent) if callable(chosen) else chosen

    return play


def by_loop(*lines: Line) -> Component:
    """A line per pass; the last one stays."""

    def play(sent: Sent) -> Said | None:
        chosen = lines[min(sent.created.loop, len(lines) - 1)]
        return chosen(sent) if callable(chosen) else chosen

    return play


def by_seed(seed: int, *parts: object) -> float:
    """A number in [0, 1) that hangs on the seed and the question."""
    return unit_interval(str(seed), *(str(part) for part in parts))
