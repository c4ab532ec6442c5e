"""The reflector: one verdict by rules that stand in a row, an answer, rewards.

It says nothing that no call showed: every sentence about the world is a claim with its sources.
What a plan answered directly (a handover) is passed on as the draft, without claims. Only the
latest plan is judged; what earlier plans tried explains at most why it is the last try.
"""

import msgspec

from acp_spec import Call, Component, SideEffect, Verdict
from acp_spec.codec.json_text import find
from acp_spec.model.calls import Claim, ReflectRequest, ReflectResponse, Reward, SettledCall
from acp_spec.model.enums import StepStatus
from acp_spec.model.payload import Payload, is_absent
from acp_spec.sdk.values import write
from reference_components.reflector.wording import claims_of

TRIES_PER_SUB_GOAL_MAX = 2
"""A sub-goal that failed twice, each time with the gateway's own retries behind it, will not
work.
"""


def make() -> Component:
    component = Component("hotline-reflector", "1.0.0")

    @component.reflect
    async def reflect(request: ReflectRequest, call: Call) -> ReflectResponse:
        return judge(request)

    return component


def judge(request: ReflectRequest) -> ReflectResponse:
    """The verdict, pure."""
    last = _last_calls(request)
    failed = [call for call in last if call.status is StepStatus.FAILED]
    if not failed:
        return _accepted(request, last)
    if any(call.side_effect is not SideEffect.NONE for call in failed):
        return _given_up(request, last, why="It may have been done although it failed")
    passing = [call for call in failed if call.error is not None and call.error.retryable]
    tried = max(_tries(request, call) for call in failed)
    if tried >= TRIES_PER_SUB_GOAL_MAX:
        return _given_up(request, last, why="It was tried again and failed again")
    if len(passing) == len(failed):
        return ReflectResponse(
            verdict=Verdict.RETRY,
            critique=_critique(failed),
            retry_call_ids=tuple(call.call_id for call in passing),
            rewards=_rewards(last, reached=0.0),
        )
    return ReflectResponse(
        verdict=Verdict.REPLAN, critique=_critique(failed), rewards=_rewards(last, reached=0.0)
    )


def _last_calls(request: ReflectRequest) -> list[SettledCall]:
    """For each sub-goal of the latest plan its last call (a redo supersedes what it redoes)."""
    if request.plan is None:
        return list(request.calls)
    last: dict[str, SettledCall] = {}
    actions = {goal.id: goal.action for goal in request.plan.sub_goals}
    for call in request.calls:
        if actions.get(call.sub_goal) == call.action:
            last[call.sub_goal] = call
    return list(last.values())


def _tries(request: ReflectRequest, failed: SettledCall) -> int:
    """How many calls were made for this sub-goal's action that did not work."""
    return sum(
        call.action == failed.action
        and call.sub_goal == failed.sub_goal
        and call.status is StepStatus.FAILED
        for call in request.calls
    )


def _accepted(request: ReflectRequest, last: list[SettledCall]) -> ReflectResponse:
    claims = _claims(last)
    if not claims:
        return ReflectResponse(
            verdict=Verdict.ACCEPT,
            output=_direct_answer(request.draft),
            rewards=_rewards(last, reached=0.5),
        )
    text = " ".join(claim.text for claim in claims)
    return ReflectResponse(
        verdict=Verdict.ACCEPT,
        output=write({"answer": text, "handover": False}),
        claims=tuple(claims),
        rewards=_rewards(last, reached=1.0),
    )


def _given_up(request: ReflectRequest, last: list[SettledCall], *, why: str) -> ReflectResponse:
    """Nothing more can be done here: what is known is told, a person does the rest."""
    claims = _claims(last)
    known = " ".join(claim.text for claim in claims)
    failed = ", ".join(call.action for call in last if call.status is StepStatus.FAILED)
    text = f"{known} {why}: {failed}. A colleague will take over.".strip()
    return ReflectResponse(
        verdict=Verdict.FALLBACK,
        critique=_critique([call for call in last if call.status is StepStatus.FAILED]),
        output=write({"answer": text, "handover": True}),
        claims=tuple(claims),
        rewards=_rewards(last, reached=0.0),
    )


def _claims(calls: list[SettledCall]) -> list[Claim]:
    succeeded = (call for call in calls if call.status is StepStatus.SUCCEEDED)
    return [claim for call in succeeded for claim in claims_of(call)]


def _direct_answer(draft: Payload) -> Payload:
    """The planner's own answer, or what there is to say when it gave none."""
    if not is_absent(draft):
        answer = find(bytes(draft), "/answer")
        if answer is not None:
            told = msgspec.json.decode(answer)
            return write({"answer": told, "handover": True})
    return write({"answer": "A colleague will answer this.", "handover": True})


def _critique(failed: list[SettledCall]) -> str:
    """What the planner is told: which action failed, and what its error said."""
    parts = [
        f"{call.action}: {call.error.reason}, {call.error.message}"
        for call in failed
        if call.error is not None
    ]
    return "; ".join(parts) or "a call failed"


def _rewards(calls: list[SettledCall], *, reached: float) -> tuple[Reward, ...]:
    """`goal`: 1 answered by calls, 0.5 handed over in order, 0 not reached; `call`: each one's
    part.
    """
    each = (
        Reward(name="call", value=float(call.status is StepStatus.SUCCEEDED), call_id=call.call_id)
        for call in calls
    )
    return (Reward(name="goal", value=reached), *each)
