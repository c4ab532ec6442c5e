"""The mapping to OpenTelemetry's GenAI conventions is complete and spells their names."""

from opentelemetry.semconv._incubating.attributes import error_attributes, gen_ai_attributes

from acp_spec.model.enums import StepRole
from gateway.telemetry.genai import ATTRIBUTES, OPERATIONS, SESSION, Fact, attributes, span_name

LATER = {"plan"}
"""Operations that came after the conventions' own package was last made from them."""


def test_every_fact_has_a_name_and_no_two_the_same() -> None:
    assert set(ATTRIBUTES) == set(Fact)
    assert len(set(ATTRIBUTES.values())) == len(Fact)


def test_every_name_is_one_of_the_conventions() -> None:
    theirs = {
        value
        for module in (gen_ai_attributes, error_attributes)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str)
    }
    assert set(ATTRIBUTES.values()) <= theirs


def test_a_session_and_each_role_is_an_operation_of_theirs() -> None:
    assert set(OPERATIONS) == {SESSION, *(role.value for role in StepRole)}
    theirs = {one.value for one in gen_ai_attributes.GenAiOperationNameValues}
    assert set(OPERATIONS.values()) - theirs == LATER


def test_what_is_not_known_is_left_out_and_zero_is_known() -> None:
    told = attributes({Fact.TOOL: "", Fact.MODEL_ASKED: None, Fact.INPUT_TOKENS: 0})
    assert told == {"gen_ai.usage.input_tokens": 0}


def test_a_span_is_called_by_its_operation_and_subject() -> None:
    assert span_name("plan", "planner") == "plan planner"
    assert span_name("plan", "") == "plan"
