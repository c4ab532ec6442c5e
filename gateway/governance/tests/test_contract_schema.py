"""The schema for editors says what the reader says: the same keys and bounds."""

import json
from importlib import resources
from typing import Any, Final

import jsonschema_rs

from acp_spec.codec.yaml_tree import json_text, read_tree
from gateway.governance import (
    action_rates,
    business_fallback,
    contract,
    fallback_track,
    plan_guard,
    semantics,
    sla,
)
from gateway.governance.domains import THRESHOLD_DEFAULT
from gateway.governance.rules import PER_SECOND_LEAST, PER_SECOND_MOST, OnExcess
from gateway.governance.tests.test_contract import WHOLE

SCHEMA: Final[Any] = json.loads(
    resources.files("acp_spec").joinpath("schema/contract.v1.json").read_text()
)


def test_the_schema_accepts_a_contract_with_every_section() -> None:
    tree = read_tree(WHOLE.encode()).tree
    assert tree is not None
    jsonschema_rs.validate(SCHEMA, json.loads(json_text(tree)))


def test_the_schema_has_exactly_the_keys_that_the_reader_knows() -> None:
    assert set(SCHEMA["properties"]) == set(contract.KEYS)
    assert set(SCHEMA["properties"]["plan"]["properties"]) == set(plan_guard.KEYS)
    assert set(SCHEMA["$defs"]["rate"]["properties"]) == set(action_rates.KEYS)
    assert set(SCHEMA["$defs"]["sla"]["properties"]) == set(sla.KEYS)
    sections, parts = SCHEMA["properties"], SCHEMA["$defs"]
    assert set(sections["semantics"]["properties"]) == set(semantics.KEYS)
    assert set(parts["domain"]["properties"]) == set(semantics.DOMAIN_KEYS)
    assert set(parts["field"]["properties"]) == set(semantics.FIELD_KEYS)
    assert set(parts["case"]["properties"]) == set(semantics.CASE_KEYS)
    rules = sections["fallback"]["properties"]
    assert set(rules) == set(business_fallback.KEYS)
    assert set(parts["rule"]["properties"]) == set(business_fallback.RULE_KEYS)
    assert set(rules["drill"]["properties"]) == set(business_fallback.DRILL_KEYS)
    assert set(parts["drill_input"]["properties"]) == set(business_fallback.INPUT_KEYS)


def test_choices_and_bounds_are_those_of_the_reader() -> None:
    demands = SCHEMA["$defs"]["sla"]["properties"]
    names = {member.name for member in sla.OnBreach}
    assert set(demands["on_breach"]["enum"]) == names | {name.lower() for name in names}
    assert demands["max_latency_ms"]["maximum"] == sla.LATENCY_MS_MAX
    assert demands["window_ms"]["minimum"] == sla.WINDOW_MS_LEAST
    assert demands["window_ms"]["maximum"] == sla.WINDOW_MS_MOST
    assert demands["min_samples"]["maximum"] == sla.SAMPLES_MOST
    rate = SCHEMA["$defs"]["rate"]["properties"]
    assert rate["per_second"]["minimum"] == PER_SECOND_LEAST
    assert rate["per_second"]["maximum"] == PER_SECOND_MOST
    assert rate["burst"]["maximum"] == action_rates.BURST_MOST
    names = {member.name for member in OnExcess}
    assert set(rate["on_excess"]["enum"]) == names | {name.lower() for name in names}
    plan = SCHEMA["properties"]["plan"]["properties"]
    assert plan["max_sub_goals"]["maximum"] == plan_guard.SUB_GOALS_MOST
    assert plan["max_arguments_bytes"]["maximum"] == plan_guard.ARGUMENTS_BYTES_MOST
    assert SCHEMA["$defs"]["domain"]["properties"]["threshold"]["default"] == THRESHOLD_DEFAULT
    fallback = SCHEMA["properties"]["fallback"]["properties"]
    assert fallback["after_failures"]["default"] == fallback_track.AFTER_FAILURES
    assert fallback["probe_every"]["default"] == fallback_track.PROBE_EVERY
    assert fallback["return_after"]["default"] == fallback_track.RETURN_AFTER
    assert fallback["rules"]["maxItems"] == business_fallback.RULES_MAX
    drill = fallback["drill"]["properties"]
    assert drill["every_ms"]["minimum"] == business_fallback.EVERY_MS_LEAST
    assert drill["every_ms"]["maximum"] == business_fallback.EVERY_MS_MOST
    assert drill["keep"]["maximum"] == business_fallback.KEEP_MAX
