"""Verdicts by rule, and an answer in which every fact points to the call that showed it."""

import asyncio

import msgspec
import pytest

from acp_spec import InProcess, SideEffect, Verdict, build_context
from acp_spec.bindings.errors import error
from acp_spec.codec.json_text import find
from acp_spec.model.calls import ReflectRequest, ReflectResponse, SettledCall
from acp_spec.model.enums import StepStatus
from acp_spec.model.errors import Reason
from acp_spec.model.plan import Plan, SubGoal
from acp_spec.sdk.values import read, write
from reference_components.reflector.component import judge, make
from reference_components.reflector.wording import SENTENCES

BALANCE = b'{"account":"1000000001","currency":"GBP","balance":1250.10}'


def call(
    number: int,
    action: str,
    *,
    output: bytes = b"",
    failed: Reason | None = None,
    side_effect: SideEffect = SideEffect.NONE,
) -> SettledCall:
    return SettledCall(
        call_id=f"call{number}",
        sub_goal=f"s{number}",
        action=action,
        status=StepStatus.FAILED if failed else StepStatus.SUCCEEDED,
        output=write(msgspec.Raw(output)),
        error=error(failed, "as the test says") if failed else None,
        side_effect=side_effect,
    )


def request(*calls: SettledCall, draft: object = None) -> ReflectRequest:
    goals = {made.sub_goal: SubGoal(id=made.sub_goal, action=made.action) for made in calls}
    return ReflectRequest(
        context=build_context(),
        plan=Plan(sub_goals=tuple(goals.values())),
        calls=calls,
        draft=write(draft),
    )


def text_of(response: ReflectResponse) -> str:
    output = read(response.output)
    assert isinstance(output, dict)
    return str(output["answer"])


def test_each_claim_points_to_the_value_it_states() -> None:
    made = call(1, "ledger.balance", output=BALANCE)
    response = judge(request(made))
    assert response.verdict is Verdict.ACCEPT
    (claim,) = response.claims
    assert claim.text == "Account 1000000001 holds 1250.10 GBP."
    assert (bytes(claim.value), claim.unit) == (b"1250.10", "GBP")
    document = msgspec.json.encode({"calls": {made.call_id: made}})
    found = [find(document, source) for source in claim.sources]
    assert found[0] == b"1250.10"
    assert None not in found


def test_the_answer_says_nothing_but_its_claims() -> None:
    convert = (
        b'{"from":"GBP","to":"CHF","amount":1,"rate":1.12,"converted":1.12,"as_of":"2026-11-27"}'
    )
    response = judge(
        request(call(1, "ledger.balance", output=BALANCE), call(2, "rates.convert", output=convert))
    )
    assert text_of(response) == " ".join(claim.text for claim in response.claims)
    assert "1250.10 GBP" in text_of(response)
    assert "1.12 CHF" in text_of(response)


def test_a_sentence_about_what_is_not_there_is_left_out() -> None:
    status = (
        b'{"card":"card-0001","kind":"PHYSICAL","status":"ACTIVE","last4":"1234",'
        b'"expires":"2028-05"}'
    )
    response = judge(request(call(1, "cards.status", output=status)))
    assert "arrives" not in text_of(response)
    assert "valid until 2028-05" in text_of(response)


def test_an_action_without_wording_is_quoted_with_its_source() -> None:
    response = judge(request(call(1, "weather.today", output=b'"rain"')))
    (claim,) = response.claims
    assert claim.text == "weather.today answered rain."
    assert claim.sources == ("/calls/call1/output",)


def test_a_direct_answer_of_the_planner_is_passed_on_without_claims() -> None:
    response = judge(request(draft={"answer": "A colleague will answer this: dispute."}))
    assert response.verdict is Verdict.ACCEPT
    assert text_of(response) == "A colleague will answer this: dispute."
    assert response.claims == ()


@pytest.mark.parametrize(
    ("reason", "side_effect", "verdict"),
    [
        (Reason.OVERLOADED, SideEffect.NONE, Verdict.RETRY),
        (Reason.NOT_FOUND, SideEffect.NONE, Verdict.REPLAN),
        (Reason.TIMEOUT, SideEffect.UNKNOWN, Verdict.FALLBACK),
        (Reason.INTERNAL, SideEffect.PERFORMED, Verdict.FALLBACK),
    ],
)
def test_the_verdict_on_a_failure_depends_on_what_may_be_done_again(
    reason: Reason, side_effect: SideEffect, verdict: Verdict
) -> None:
    failed = call(1, "cards.freeze", failed=reason, side_effect=side_effect)
    response = judge(request(failed))
    assert response.verdict is verdict
    assert ("call1" in response.retry_call_ids) == (verdict is Verdict.RETRY)
    assert reason.value in response.critique


def test_what_failed_twice_is_not_tried_a_third_time() -> None:
    first = call(1, "cards.status", failed=Reason.OVERLOADED)
    second = msgspec.structs.replace(first, call_id="call1-redo")
    response = judge(request(first, second))
    assert response.verdict is Verdict.FALLBACK
    assert "colleague" in text_of(response)


def test_a_redo_that_worked_supersedes_the_failure() -> None:
    failed = call(1, "ledger.balance", failed=Reason.OVERLOADED)
    redone = msgspec.structs.replace(call(1, "ledger.balance", output=BALANCE), call_id="redo")
    response = judge(request(failed, redone))
    assert response.verdict is Verdict.ACCEPT
    assert response.claims[0].sources[0] == "/calls/redo/output/balance"


def test_rewards_judge_the_goal_and_each_call() -> None:
    response = judge(request(call(1, "ledger.balance", output=BALANCE)))
    rewards = {(reward.name, reward.call_id): reward.value for reward in response.rewards}
    assert rewards == {("goal", ""): 1.0, ("call", "call1"): 1.0}


def test_every_sentence_states_a_member_that_it_shows_or_names() -> None:
    for sentences in SENTENCES.values():
        for sentence in sentences:
            assert f"{{{sentence.value}}}" in sentence.text


def test_the_component_judges_over_the_wire() -> None:
    async def story() -> None:
        async with InProcess(make()) as client:
            response = await client.reflect(request(call(1, "ledger.balance", output=BALANCE)))
            assert isinstance(response, ReflectResponse)
            assert response.verdict is Verdict.ACCEPT

    asyncio.run(story())
