"""`acp governance set`: single fields of a document, changed by their dotted names."""

import json
from typing import Any

import pytest

from acp_spec.model.errors import AcpFailure
from gateway.cli.changed_document import changed_document
from gateway.governance.parameters import Override, Parameters
from gateway.governance.rules import RateRules

RATED = Parameters(components={"fees": Override(actions={"quote": RateRules(per_second=5)})})


def changed(*changes: str, parameters: Parameters = RATED) -> Any:
    text = changed_document(parameters, list(changes), expected_version=4, note="why")
    document = json.loads(text)
    assert (document["expected_version"], document["note"]) == (4, "why")
    return document["parameters"]


def test_one_field_is_changed_and_every_other_stays_as_it_was() -> None:
    before = changed()
    after = changed("breaker.open_ms=2000", "retry_tokens.enabled=false")
    assert after["breaker"].pop("open_ms") == 2_000
    assert after["retry_tokens"].pop("enabled") is False
    del before["breaker"]["open_ms"], before["retry_tokens"]["enabled"]
    assert after == before


def test_objects_on_the_way_are_made_and_null_takes_a_field_out() -> None:
    made = changed("components.ledger.target.limit=3", "components.fees=null")
    assert made["components"] == {"ledger": {"target": {"limit": 3}}}
    assert "retry_budget" not in changed("retry_budget=null")


def test_a_whole_object_is_taken_as_json() -> None:
    made = changed('components.fees.actions.quote={"per_second": 1, "on_excess": "REFUSE"}')
    assert made["components"]["fees"]["actions"]["quote"] == {
        "per_second": 1,
        "on_excess": "REFUSE",
    }


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("breaker.open_ms", "write NAME=VALUE"),
        ("=3", "write NAME=VALUE"),
        ("breaker.open_ms=soon", "must be JSON"),
    ],
)
def test_what_is_no_change_says_how_to_write_one(change: str, said: str) -> None:
    with pytest.raises(AcpFailure, match=said):
        changed(change)
