"""The schema for editors says what the reader says: the same keys, choices and bounds."""

import json
from importlib import resources
from typing import Any, Final

import jsonschema_rs
import pytest

from acp_spec.codec.yaml_tree import json_text, read_tree
from acp_spec.model.enums import StepRole, Verdict
from gateway.engine import workflow_file, workflow_step
from gateway.engine.definition import OnError, PinMode, Require, Workflow

SCHEMA: Final = json.loads(
    resources.files("acp_spec").joinpath("schema/workflow.v1.json").read_text()
)
HOTLINE: Final = (
    resources.files("gateway.engine.tests").joinpath("workflows/hotline.yaml").read_bytes()
)
STEP: Final = SCHEMA["$defs"]["step"]["properties"]


def document(source: bytes) -> Any:
    tree = read_tree(source).tree
    assert tree is not None
    return json.loads(json_text(tree))


def test_the_schema_accepts_the_file_that_the_protocol_prints() -> None:
    assert jsonschema_rs.is_valid(SCHEMA, document(HOTLINE))
    assert isinstance(workflow_file.parse_workflow(HOTLINE), Workflow)


def test_the_schema_has_exactly_the_keys_that_the_reader_knows() -> None:
    assert set(SCHEMA["properties"]) == set(workflow_file.KEYS)
    assert set(SCHEMA["properties"]["limits"]["properties"]) == set(workflow_file.LIMIT_KEYS)
    assert set(STEP) == set(workflow_step.KEYS)


@pytest.mark.parametrize(
    ("found", "choices"),
    [
        (STEP["role"]["enum"], StepRole),
        (STEP["on_error"]["enum"], OnError),
        (STEP["require"]["enum"], Require),
        (SCHEMA["$defs"]["pin"]["enum"], PinMode),
    ],
)
def test_choices_are_those_of_the_reader_in_both_cases(
    found: list[str], choices: type[StepRole] | type[OnError] | type[Require] | type[PinMode]
) -> None:
    names = {member.name for member in choices}
    assert set(found) == names | {name.lower() for name in names}


def test_bounds_are_those_of_the_reader() -> None:
    limits = SCHEMA["properties"]["limits"]["properties"]
    assert limits["max_loops"]["maximum"] == workflow_file.MAX_LOOPS
    assert limits["max_sub_goals"]["maximum"] == workflow_file.MAX_SUB_GOALS
    assert SCHEMA["$defs"]["duration_ms"]["maximum"] == workflow_step.MAX_DURATION_MS
    assert SCHEMA["properties"]["steps"]["maxItems"] == workflow_step.MAX_STEPS
    assert STEP["name"]["pattern"] == f"^{workflow_step.STEP_NAME}$"
    assert SCHEMA["properties"]["workflow"]["pattern"] == f"^{workflow_file.NAME_PATTERN}$"
    backward = {verdict.name for verdict in workflow_step.BACKWARD}
    assert backward < {verdict.name for verdict in Verdict}
    assert set(STEP["on"]["properties"]) == backward | {name.lower() for name in backward}


@pytest.mark.parametrize(
    "change",
    [
        {"stpes": []},
        {"steps": []},
        {"version": "1.0"},
        {"limits": {"max_loops": -1}},
        {"steps": [{"name": "a"}]},
        {"steps": [{"name": "A", "role": "plan"}]},
        {"steps": [{"name": "a", "role": "reflect", "on": {"ACCEPT": "a"}}]},
        {"recovery": "backoff"},
    ],
)
def test_the_schema_refuses_what_an_editor_can_see(change: dict[str, object]) -> None:
    assert not jsonschema_rs.is_valid(SCHEMA, {**document(HOTLINE), **change})
