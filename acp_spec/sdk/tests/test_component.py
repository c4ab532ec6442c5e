"""Declaring a component: its card says what was declared, and mistakes show at once."""

import pytest

from acp_spec.model.card import Limits
from acp_spec.model.enums import Effect, Idempotency, Kind, Role, StepRole
from acp_spec.model.payload import is_absent
from acp_spec.sdk.call import Call
from acp_spec.sdk.component import MAX_REQUEST_BYTES_DEFAULT, Component


def nothing(arguments: object, call: Call) -> object:
    """Does nothing,
    at all.

    And this is not for the card.
    """


def test_what_is_not_stated_reads_as_the_careful_choice() -> None:
    component = Component("c", "1.0.0")
    component.action("a")(nothing)
    action = component.card().action("a")
    assert action is not None
    assert (action.effect, action.idempotency) == (Effect.WRITE, Idempotency.NONE)
    assert action.description == "Does nothing, at all."
    assert is_absent(action.input_schema)


def test_what_is_stated_stands_on_the_card() -> None:
    limits = Limits(max_concurrency=4)
    component = Component("c", "1.0.0", limits=limits, kind=Kind.LLM)
    component.action(
        "a",
        effect=Effect.READ,
        idempotency=Idempotency.NATURAL,
        input_schema={"type": "object"},
        examples=[{"arguments": {}, "output": 1, "safe": True}],
        timeout_ms=500,
    )(nothing)
    card = component.card()
    assert card.roles == (Role.EXECUTOR,)
    assert card.kind is Kind.LLM
    assert (card.limits.max_concurrency, card.limits.max_request_bytes) == (
        4,
        MAX_REQUEST_BYTES_DEFAULT,
    )
    (action,) = card.actions
    assert (action.effect, action.timeout_ms) == (Effect.READ, 500)
    assert bytes(action.input_schema) == b'{"type":"object"}'
    assert (bytes(action.examples[0].output), action.examples[0].safe) == (b"1", True)


def test_a_decorated_function_stays_itself() -> None:
    component = Component("c", "1.0.0")
    assert component.action("a")(nothing) is nothing
    assert component.plan(nothing) is nothing


def test_an_action_declared_twice_is_a_mistake() -> None:
    component = Component("c", "1.0.0")
    component.action("a")(nothing)
    with pytest.raises(AssertionError, match="twice"):
        component.action("a")(nothing)


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://example.invalid/schema.json"},
        {"type": "no such type"},
        {"pattern": "(?<=a)b"},
        [],
    ],
    ids=["network", "type", "look-behind", "not a schema"],
)
def test_a_schema_that_cannot_be_used_offline_is_refused_at_once(schema: object) -> None:
    with pytest.raises(ValueError, match="input_schema of a"):
        Component("c", "1.0.0").action("a", input_schema=schema)(nothing)


def test_only_by_key_actions_are_remembered_and_not_those_that_remember_themselves() -> None:
    component = Component("c", "1.0.0")
    component.action("keyed", idempotency=Idempotency.BY_KEY)(nothing)
    component.action("own", idempotency=Idempotency.BY_KEY, own_idempotency=True)(nothing)
    component.action("plain")(nothing)
    remembered = {
        name: target.remembers
        for name in ("keyed", "own", "plain")
        if (target := component.target(StepRole.EXECUTE, name)) is not None
    }
    assert remembered == {"keyed": True, "own": False, "plain": False}
