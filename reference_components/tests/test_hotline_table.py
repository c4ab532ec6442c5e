"""The table of intents: complete, resolvable, and every row is really answered by its component."""

import csv
import json
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import grpc
import jsonschema_rs
import pytest

from acp_spec.proto.v1 import acp_pb2
from reference_components.launcher import Running
from reference_components.tests.test_rates import output_of
from reference_components.tests.wire_requests import execute

HANDOVER = "handover"
FOLDERS = {"ledger": "ledger_adapter", "cards": "cards", "rates": "rates"}
ROOT = files("reference_components")
CUSTOMERS: dict[str, Any] = json.loads(
    (ROOT / "hotline/customers.json").read_text(), parse_float=str
)
Row = dict[str, str]


def rows() -> list[Row]:
    text = (ROOT / "hotline/intents.csv").read_text()
    return list(csv.DictReader(text.splitlines()))


def actions() -> dict[tuple[str, str], Any]:
    found: dict[tuple[str, str], Any] = {}
    for component, folder in FOLDERS.items():
        for action in json.loads((ROOT / folder / "card.json").read_text())["actions"]:
            found[component, action["name"]] = action
    return found


def value_text(value: str, customer: dict[str, Any]) -> str:
    """JSON text of one argument: a member of the customer's record, or a string."""
    if not value.startswith("customer."):
        return json.dumps(value)
    for name in value.split(".")[1:]:
        customer = customer[name]
    is_number = value.endswith(".amount")
    return str(customer) if is_number else json.dumps(customer)


def arguments_of(row: Row, customer: dict[str, Any], outputs: dict[str, str]) -> str:
    """The arguments as JSON text, bindings included (all of the table are single members)."""
    pairs = [pair.split("=") for pair in row["arguments"].split()]
    members = {name: value_text(value, customer) for name, value in pairs}
    for binding in row["bindings"].split():
        target, source = binding.split("=")
        step, pointer = source.split("#")
        output = json.loads(outputs[step], parse_float=str, parse_int=str)
        bound = output[pointer[1:]]
        members[target[1:]] = bound if target == "/amount" else json.dumps(bound)
    return "{" + ",".join(f'"{name}":{text}' for name, text in members.items()) + "}"


def test_every_intent_of_banking77_has_a_row(data_file: Callable[[str], Path]) -> None:
    intents = set(json.loads(data_file("banking77/categories.json").read_text()))
    assert {row["intent"] for row in rows()} == intents


def test_steps_count_from_one_and_bind_only_to_earlier_ones() -> None:
    seen: dict[str, int] = {}
    for row in rows():
        step = int(row["step"])
        assert step == seen.get(row["intent"], 0) + 1, row
        seen[row["intent"]] = step
        for binding in row["bindings"].split():
            assert int(binding.split("=")[1].split("#")[0]) < step
    assert len(seen) == 77


def test_every_action_exists_and_every_component_and_action_is_used() -> None:
    used = {(row["component"], row["action"]) for row in rows() if row["action"] != HANDOVER}
    assert used == set(actions())
    assert all(not row["component"] for row in rows() if row["action"] == HANDOVER)


@pytest.mark.parametrize("customer", sorted(CUSTOMERS))
def test_arguments_resolve_for_every_customer_and_fit_the_schema(customer: str) -> None:
    for row in rows():
        if row["action"] == HANDOVER:
            continue
        schema = actions()[row["component"], row["action"]]["input_schema"]
        bound = {binding.split("=")[0][1:] for binding in row["bindings"].split()}
        pairs = [pair.split("=") for pair in row["arguments"].split()]
        given = {name: json.loads(value_text(v, CUSTOMERS[customer])) for name, v in pairs}
        assert set(given) | bound == set(schema.get("required", [])), row
        for name, value in given.items():
            jsonschema_rs.validate(schema["properties"][name], value)


@pytest.fixture
def channel(start: Callable[..., Running]) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(start("rates").url.removeprefix("grpc://")) as opened:
        yield opened


def test_every_row_is_really_answered_for_every_customer(
    start: Callable[..., Running], channel: grpc.Channel
) -> None:
    urls = {name: start(name).url for name in ("ledger", "cards")}
    for customer, record in CUSTOMERS.items():
        outputs: dict[str, str] = {}
        for number, row in enumerate(rows()):
            if row["action"] == HANDOVER:
                continue
            arguments = arguments_of(row, record, outputs)
            if row["component"] == "rates":
                output = output_of(channel, row["action"], arguments)
            else:
                name = f"{customer}{number}"
                response = execute(urls[row["component"]], name, row["action"], arguments)
                assert response.status_code == 200, (row, arguments, response.text)
                output = _member_text(response.text)
            schema = actions()[row["component"], row["action"]]["output_schema"]
            jsonschema_rs.validate(schema, json.loads(output))
            outputs[row["step"]] = output


def _member_text(response: str) -> str:
    """The text of `output`, which both components write first."""
    return response.removeprefix('{"output":').rpartition(',"side_effect"')[0]


def test_cards_are_read_alike_over_both_bindings(channel: grpc.Channel) -> None:
    data = channel.unary_unary("/acp.v1.Component/Describe")(b"", timeout=10)
    card = acp_pb2.Card.FromString(data)
    names = {action.name for action in card.actions}
    assert names == {name for component, name in actions() if component == "rates"}
