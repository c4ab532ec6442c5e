"""A question becomes the table's plan; memory changes it; what is unclear goes to a person."""

import asyncio

import pytest

from acp_spec import InProcess, build_context
from acp_spec.model.calls import Memory, PlanRequest, PlanResponse, SettledCall
from acp_spec.model.card import Action
from acp_spec.model.enums import Effect, StepStatus
from acp_spec.model.plan import Plan
from acp_spec.sdk.values import Json, read, write
from reference_components.planner.component import answer, make
from reference_components.planner.recollection import QUESTION
from reference_components.planner.table import steps_of

WRITES = ("ledger.transfer", "cards.freeze", "cards.activate", "cards.replace")
READS = (
    *("ledger.balance", "ledger.fee", "cards.status", "cards.limits"),
    *("rates.quote", "rates.convert", "rates.currencies"),
)
ACTIONS = (
    *(Action(name=name, effect=Effect.WRITE) for name in WRITES),
    *(Action(name=name, effect=Effect.READ) for name in READS),
)
BALANCE = "I deposited cash yesterday and my balance is not updated"
LOST = "I lost my card, please help"
PIN = "I entered my PIN wrong too many times, can you unblock it?"


def asked(
    query: str,
    *,
    memory: tuple[Memory, ...] = (),
    customer: str = "",
    calls: tuple[SettledCall, ...] = (),
    previous: Plan | None = None,
) -> PlanRequest:
    labels = {"customer": customer} if customer else {}
    return PlanRequest(
        context=build_context(labels=labels),
        goal=query,
        actions=ACTIONS,
        memory=memory,
        calls=calls,
        previous_plan=previous,
    )


def remembered(number: int, data: Json) -> Memory:
    return Memory(id=f"m{number}", data=write(data))


def done(action: str, output: Json) -> Json:
    return {"action": action, "status": "SUCCEEDED", "output": output}


def plan_of(response: PlanResponse) -> list[tuple[str, Json]]:
    return [(goal.action, read(goal.arguments)) for goal in response.plan.sub_goals]


def test_a_lost_card_is_frozen_then_replaced_and_the_card_flows_between_the_two() -> None:
    freeze, replace = answer(asked(LOST)).plan.sub_goals
    assert (freeze.action, replace.action) == ("cards.freeze", "cards.replace")
    assert read(freeze.arguments) == {"card": "card-0001"}
    assert replace.depends_on == (freeze.id,)
    (binding,) = replace.bindings
    assert (binding.to, binding.from_, binding.pointer) == ("/card", freeze.id, "/card")


def test_the_customers_numbers_go_into_the_plan_as_they_stand_on_file() -> None:
    (transfer,) = answer(asked("Why has my transfer failed?")).plan.sub_goals
    assert transfer.action == "ledger.transfer"
    assert b'"amount":12.50' in bytes(transfer.arguments)


def test_each_caller_is_served_from_their_own_record() -> None:
    (status,) = answer(asked(PIN, customer="ben")).plan.sub_goals
    assert read(status.arguments) == {"card": "card-0007"}


def test_a_caller_who_is_not_on_file_is_handed_over_with_the_reason() -> None:
    response = answer(asked(PIN, customer="nobody"))
    assert response.plan.sub_goals == ()
    assert b"nothing on file for nobody" in bytes(response.output)


def test_a_card_replaced_in_an_earlier_call_is_spoken_of_by_its_new_number() -> None:
    chain = (
        remembered(7, done("cards.replace", {"card": "card-0102", "replaces": "card-0101"})),
        remembered(3, done("cards.replace", {"card": "card-0101", "replaces": "card-0001"})),
    )
    freeze, _ = answer(asked(LOST, memory=chain)).plan.sub_goals
    assert read(freeze.arguments) == {"card": "card-0102"}


def test_a_balance_is_also_told_in_the_currency_the_caller_converted_into_before() -> None:
    before = answer(asked(BALANCE))
    assert [action for action, _ in plan_of(before)] == ["ledger.balance"]
    memory = (remembered(1, done("rates.convert", {"from": "GBP", "to": "CHF"})),)
    balance, convert = answer(asked(BALANCE, memory=memory)).plan.sub_goals
    assert (convert.action, read(convert.arguments)) == ("rates.convert", {"to": "CHF"})
    assert {(b.to, b.from_, b.pointer) for b in convert.bindings} == {
        ("/amount", balance.id, "/balance"),
        ("/from", balance.id, "/currency"),
    }


def test_the_currency_in_the_question_outdoes_the_remembered_one() -> None:
    memory = (remembered(1, done("rates.convert", {"from": "GBP", "to": "CHF"})),)
    for query, currency in (
        ("What is the exchange rate?", "CHF"),
        ("What is the exchange rate for euros?", "EUR"),
    ):
        (quote,) = answer(asked(query, memory=memory)).plan.sub_goals
        assert read(quote.arguments) == {"from": "GBP", "to": currency}


def test_a_question_that_a_person_already_has_is_not_taken_up_again() -> None:
    noted: Json = {"kind": QUESTION, "customer": "ada", "intent": "pin_blocked", "handover": True}
    memory = (remembered(1, noted),)
    assert b"already has" in bytes(answer(asked(PIN, memory=memory)).output)
    assert answer(asked(PIN, memory=memory, customer="ben")).plan.sub_goals


def test_memories_of_any_shape_do_no_harm() -> None:
    odd: tuple[Json, ...] = (None, 3, [], {}, {"output": 4}, done("cards.replace", {}), "x")
    memory = tuple(remembered(number, data) for number, data in enumerate(odd))
    assert answer(asked(PIN, memory=memory)).plan.sub_goals


def test_an_unclear_question_changes_nothing_on_the_callers_behalf() -> None:
    response = answer(asked("my card was lost or maybe swallowed by the atm, found it again?"))
    assert not any(goal.action in WRITES for goal in response.plan.sub_goals)


@pytest.mark.parametrize("query", ["", "qwertz", "🙂", "x" * 5000])
def test_what_no_rule_knows_is_answered_directly(query: str) -> None:
    response = answer(asked(query))
    assert response.plan.sub_goals == ()
    assert b'"handover":true' in bytes(response.output)


def test_after_a_failure_the_second_plan_is_a_person() -> None:
    failed = SettledCall(call_id="c", action="cards.freeze", status=StepStatus.FAILED)
    response = answer(asked(LOST, calls=(failed,), previous=Plan()))
    assert response.plan.sub_goals == ()
    assert b"cards.freeze did not work" in bytes(response.output)


def test_every_intent_of_the_table_makes_a_plan_or_a_handover() -> None:
    table = steps_of()
    assert len(table) == 77
    for steps in table.values():
        for number, step in enumerate(steps, 1):
            assert step.number == number
            assert all(source < number for _, source, _ in step.bindings)


def test_the_component_plans_over_the_wire() -> None:
    async def story() -> None:
        async with InProcess(make()) as client:
            response = await client.plan(asked(PIN))
            assert isinstance(response, PlanResponse)
            assert plan_of(response) == [("cards.status", {"card": "card-0006"})]

    asyncio.run(story())
