"""`python -m gateway.tests.e2e.exact NAME`: a component made with the SDK that keeps every byte.

All four roles under one name, over HTTP and gRPC. Its plan hands the input from one sub-goal to the
next by a binding; its memory gives back the observations; its judge gives back the draft.
"""

import sys

from acp_spec import Call, Component, Effect, Idempotency, JsonText, Verdict
from acp_spec.model.calls import (
    Memory,
    ObserveRequest,
    ObserveResponse,
    PlanRequest,
    ReflectRequest,
    ReflectResponse,
)
from acp_spec.model.payload import payload
from acp_spec.model.plan import Binding, Plan, SubGoal


def make(name: str) -> Component:
    component = Component(name, "1.0.0")

    @component.action(f"{name}.echo", effect=Effect.READ, idempotency=Idempotency.NATURAL)
    async def echo(arguments: object, call: Call) -> JsonText:
        return JsonText(call.arguments_text)

    @component.plan
    async def plan(request: PlanRequest, call: Call) -> Plan:
        first = SubGoal(id="first", action=f"{name}.echo", arguments=request.input)
        second = SubGoal(
            id="second",
            action=f"{name}.echo",
            arguments=payload(b'{"before":1,"kept":null}'),
            depends_on=("first",),
            bindings=(Binding(to="/kept", from_="first", pointer="/value"),),
        )
        return Plan(root_goal=request.goal, sub_goals=(first, second))

    @component.observe_idempotent
    async def observe(request: ObserveRequest, call: Call) -> ObserveResponse:
        seen = tuple(Memory(id=one.call_id, data=one.data) for one in request.observations)
        return ObserveResponse(stored=len(seen), memory=seen)

    @component.reflect
    async def reflect(request: ReflectRequest, call: Call) -> ReflectResponse:
        return ReflectResponse(verdict=Verdict.ACCEPT, output=request.draft)

    return component


if __name__ == "__main__":
    make(sys.argv[1]).run()
