"""The hotline's planner: question -> intent -> the table's steps, filled from the caller's record.

Honest rules only: `classify` finds the intent, `intents.csv` says what answers it, memory may
change the plan (`recollection`). What changes something is planned only when the intent is clear;
everything else goes to a person, as an empty plan with an answer.
"""

import re
from dataclasses import dataclass

import msgspec

from acp_spec import Call, Component
from acp_spec.codec.json_text import object_of
from acp_spec.model.calls import PlanRequest, PlanResponse
from acp_spec.model.enums import Effect, StepStatus
from acp_spec.model.payload import is_absent, payload
from acp_spec.model.plan import Binding, Plan, SubGoal
from acp_spec.sdk.values import Json, read, write
from reference_components.planner.caller import Caller, caller_of
from reference_components.planner.classify import Guess, classify
from reference_components.planner.recollection import QUESTION, Recollection, recollect
from reference_components.planner.table import HANDOVER, Step, steps_of

SURE_ENOUGH_TO_WRITE = 0.55
"""Confidence below which nothing is changed on the caller's behalf; README has what it costs."""

_CURRENCIES = {
    "EUR": r"\beuros?\b|\beur\b",
    "USD": r"\busd\b|us dollars?|american dollars?",
    "GBP": r"\bgbp\b|british pounds?|sterling",
    "CHF": r"\bchf\b|swiss francs?",
    "JPY": r"\bjpy\b|\byen\b",
    "SEK": r"\bsek\b|swedish kron\w+",
    "PLN": r"\bpln\b|zlot\w+",
    "CZK": r"\bczk\b|czech kor\w+",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Everything a plan is made from."""

    text: str
    caller: Caller
    known: Recollection
    guess: Guess | None
    writes: frozenset[str]
    offered: frozenset[str]


class HandOver(Exception):
    """A person has to answer; the message says why."""


def make() -> Component:
    component = Component("hotline-planner", "1.0.0")

    @component.plan
    async def plan(request: PlanRequest, call: Call) -> PlanResponse:
        return answer(request)

    return component


def answer(request: PlanRequest) -> PlanResponse:
    """The plan for a question; pure, so that a test or a person can call it."""
    question = _question(request)
    try:
        _refuse_second_try(request)
        sub_goals = _sub_goals(question)
    except HandOver as reason:
        return _handed_over(question, str(reason))
    intent = question.guess.intent if question.guess else ""
    plan = Plan(root_goal=question.text, sub_goals=tuple(sub_goals))
    rationale = f"The question is about {intent}; the table answers that so."
    return PlanResponse(
        plan=plan,
        output=write(_told(question, handover=False)),
        confidence=_confidence(question),
        rationale=rationale,
    )


def _question(request: PlanRequest) -> Question:
    text = request.goal or _text_of(None if is_absent(request.input) else read(request.input))
    caller = caller_of(request)
    return Question(
        text=text,
        caller=caller,
        known=recollect(request.memory, caller.name),
        guess=classify(text),
        writes=frozenset(a.name for a in request.actions if a.effect is not Effect.READ),
        offered=frozenset(a.name for a in request.actions),
    )


def _text_of(given: Json) -> str:
    if isinstance(given, dict):
        found = given.get("query", given.get("text", ""))
        return found if isinstance(found, str) else ""
    return given if isinstance(given, str) else ""


def _refuse_second_try(request: PlanRequest) -> None:
    """A replan after a failure: the table has no second way, so a person takes over."""
    failed = [call.action for call in request.calls if call.status is StepStatus.FAILED]
    if request.previous_plan is not None and failed:
        raise HandOver(f"{failed[-1]} did not work")


def _sub_goals(question: Question) -> list[SubGoal]:
    if question.guess is None:
        raise HandOver("no rule recognises the question")
    intent = question.guess.intent
    if intent in question.known.handed_over:
        raise HandOver("a colleague already has this question of yours")
    steps = steps_of()[intent]
    if steps[0].action == HANDOVER:
        raise HandOver(steps[0].note)
    _check_offered(steps, question)
    goals = [_sub_goal(step, question) for step in steps]
    return goals + _in_the_callers_currency(goals[-1], question)


def _check_offered(steps: tuple[Step, ...], question: Question) -> None:
    for step in steps:
        if question.offered and step.action not in question.offered:
            raise HandOver(f"nothing here offers {step.action}")
        if step.action in question.writes and _confidence(question) < SURE_ENOUGH_TO_WRITE:
            raise HandOver(f"the question is not clear enough to do {step.action}")


def _sub_goal(step: Step, question: Question) -> SubGoal:
    members = [(name, _value(source, name, question=question)) for name, source in step.arguments]
    bindings = tuple(
        Binding(to=to, from_=f"s{number}", pointer=pointer) for to, number, pointer in step.bindings
    )
    return SubGoal(
        id=f"s{step.number}",
        action=step.action,
        description=step.note or f"answers {question.guess.intent if question.guess else ''}",
        arguments=payload(object_of(members)),
        bindings=bindings,
        depends_on=tuple(dict.fromkeys(binding.from_ for binding in bindings)),
    )


def _value(source: str, name: str, *, question: Question) -> bytes:
    """The JSON text of one argument: from the record, or a constant of the table."""
    if not source.startswith("customer."):
        return msgspec.json.encode(source)
    value = question.caller.value(source.removeprefix("customer."))
    if value is None:
        raise HandOver(f"there is nothing on file for {question.caller.name} about {name}")
    if name == "to" and source != "customer.currency":
        value = _currency_meant(question) or value
    if name == "card":
        value = msgspec.json.encode(question.known.card_now(msgspec.json.decode(value, type=str)))
    return value


def _currency_meant(question: Question) -> bytes:
    """The currency that the question names, else the one the caller last converted into."""
    own = question.caller.text("currency")
    for code, pattern in _CURRENCIES.items():
        if code != own and re.search(pattern, question.text.lower()):
            return msgspec.json.encode(code)
    remembered = question.known.currency_beside(own)
    return msgspec.json.encode(remembered) if remembered else b""


def _in_the_callers_currency(last: SubGoal, question: Question) -> list[SubGoal]:
    """A balance is also told in the currency the caller last converted into.

    The balance and its currency flow from the ledger's output, byte for byte, into the conversion.
    """
    wanted = question.known.currency_beside(question.caller.text("currency"))
    offered = not question.offered or "rates.convert" in question.offered
    if last.action != "ledger.balance" or not wanted or not offered:
        return []
    bindings = (
        Binding(to="/amount", from_=last.id, pointer="/balance"),
        Binding(to="/from", from_=last.id, pointer="/currency"),
    )
    return [
        SubGoal(
            id="in_currency",
            action="rates.convert",
            description=f"the same in {wanted}, which the caller asked for before",
            arguments=write({"to": wanted}),
            bindings=bindings,
            depends_on=(last.id,),
        )
    ]


def _handed_over(question: Question, reason: str) -> PlanResponse:
    told = _told(question, handover=True)
    told["answer"] = f"A colleague will answer this: {reason or 'it needs a person'}."
    return PlanResponse(
        plan=Plan(root_goal=question.text),
        output=write(told),
        confidence=_confidence(question),
        rationale=f"Handed over: {reason}",
    )


def _told(question: Question, *, handover: bool) -> dict[str, object]:
    """The plan's own output. `remember` is in the form of Observe's `observations`."""
    intent = question.guess.intent if question.guess else ""
    noted = {
        "kind": QUESTION,
        "customer": question.caller.name,
        "question": question.text,
        "intent": intent,
        "handover": handover,
    }
    return {
        "intent": intent,
        "customer": question.caller.name,
        "handover": handover,
        "remember": [{"step": "plan", "kind": "question", "data": noted}],
    }


def _confidence(question: Question) -> float:
    return round(question.guess.confidence, 3) if question.guess else 0.0
