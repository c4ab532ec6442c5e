"""Lineage as SQL over a real store: what is found, whose it is, and that texts are no SQL."""

import json
from collections.abc import Iterator

import msgspec
import pytest

from acp_spec.model.session import Deviation
from acp_spec.model.trajectory import Lineage, Trajectory
from gateway.stores.records.exactly_once import bring
from gateway.stores.records.lineage_question import (
    LineageRow,
    WantedLineage,
    is_named,
    lineage_sql,
)
from gateway.stores.records.reach import Limits, Reader
from gateway.stores.records.store import RecordStore
from gateway.stores.records.tests.childhood import Child
from gateway.stores.records.tests.sessions import AT_MS, name_of, whole

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
OTHERS_INPUT = "cd" * 32
FEW = 20


def told(number: int, **fields: object) -> Trajectory:
    return msgspec.structs.replace(whole(number), **fields)


def planned_by(number: int, pin: str, **fields: object) -> Trajectory:
    lineage = Lineage(
        intended={"step:plan": pin},
        input_sha256=OTHERS_INPUT,
        policies={"recovery": "backoff@1#abc"},
        deviations=(Deviation(step="plan", role="PLANNER", intended="a@1", served="a@2"),),
    )
    return told(number, lineage=lineage, **fields)


SESSIONS = (
    told(1),
    told(2, traceparent=f"00-{TRACE}-00f067aa0ba902b7-01", workflow="hotline@2.0"),
    told(3, tenant="bank", traceparent=f"00-{TRACE}-00f067aa0ba902b7-01"),
    planned_by(4, "planner@1.2.0"),
    planned_by(5, "planner@1.20.0"),
    planned_by(6, "planner@1.2.0", twin_of=name_of(4)),
    planned_by(7, "planner@1.2.0", tenant="bank"),
)


@pytest.fixture(scope="module")
def asked(child: Child) -> Iterator[Reader]:
    from gateway.stores.records.store import connect

    store: RecordStore = connect(child.endpoint)
    bring(store, SESSIONS, token="lineage")
    store.close()
    reader = Reader(child.endpoint, timeout_ms_max=10_000)
    yield reader
    reader.close()


def found(reader: Reader, tenant: str = "default", limit: int = FEW, **wanted: object) -> list[str]:
    return sessions_of(reader, WantedLineage(**wanted), tenant=tenant, limit=limit)  # type: ignore[arg-type]


def sessions_of(reader: Reader, one: WantedLineage, *, tenant: str, limit: int = FEW) -> list[str]:
    answer = reader.query(lineage_sql(one, tenant=tenant, limit=limit), Limits())
    return [row.session_id for row in msgspec.json.decode(answer.data, type=list[LineageRow])]


def names(*numbers: int) -> list[str]:
    return [name_of(number) for number in numbers]


def test_a_component_version_is_found_where_it_was_intended_or_served(asked: Reader) -> None:
    assert found(asked, component="planner@1.2.0") == names(4)
    assert found(asked, component="planner") == names(5, 4)
    assert found(asked, component="cards@1.0") == names(5, 4, 2, 1)
    assert found(asked, component="cards@1") == []
    assert found(asked, component="planner@1.2.0", input_sha256=OTHERS_INPUT) == names(4)
    assert found(asked, component="planner@1.2.0", input_sha256="ab" * 32) == []


def test_workflows_policies_and_times_narrow_it(asked: Reader) -> None:
    assert found(asked, workflow="hotline") == names(5, 4, 2, 1)
    assert found(asked, workflow="hotline@2.0") == names(2)
    assert found(asked, workflow="hot") == []
    for policy in ("backoff", "backoff@1", "backoff@1#abc"):
        assert found(asked, policy=policy) == names(5, 4)
    assert found(asked, policy="back") == []
    assert found(asked, workflow="hotline", since_ms=AT_MS + 4) == names(5, 4)
    assert found(asked, workflow="hotline", until_ms=AT_MS + 4) == names(2, 1)


def test_an_id_of_a_session_a_lineage_a_trace_or_a_call_leads_to_its_session(asked: Reader) -> None:
    assert found(asked, id=name_of(2)) == names(2)
    assert found(asked, id=TRACE) == names(2)
    assert found(asked, id="c4") == names(4)
    assert found(asked, id="nothing") == []


def test_another_tenants_session_is_not_found_by_anything(asked: Reader) -> None:
    assert found(asked, "bank", id=TRACE) == names(3)
    assert found(asked, "bank", component="planner@1.2.0") == names(7)
    assert found(asked, id=name_of(7)) == []
    assert found(asked, id="c7") == []


def test_pages_go_on_where_the_last_one_ended(asked: Reader) -> None:
    assert found(asked, limit=2, workflow="hotline") == names(5, 4)
    assert found(asked, limit=2, workflow="hotline", after=name_of(4)) == names(2, 1)


@pytest.mark.parametrize("text", ["' OR 1 = 1 --", "\\' OR 1 = 1 --", "a\\", "x'; DROP", "ü\n"])
def test_what_is_asked_for_is_a_text_and_never_sql(asked: Reader, text: str) -> None:
    for wanted in (
        WantedLineage(id=text),
        WantedLineage(component=text),
        WantedLineage(workflow=text),
        WantedLineage(policy=text),
        WantedLineage(input_sha256=text),
        WantedLineage(workflow=text, after=text),
    ):
        assert sessions_of(asked, wanted, tenant="default") == []
    assert found(asked, "bank' OR '1' = '1", workflow="hotline") == []


def test_a_row_tells_what_stood_behind_the_session(asked: Reader) -> None:
    answer = asked.query(lineage_sql(WantedLineage(id=TRACE), tenant="default", limit=1), Limits())
    (row,) = msgspec.json.decode(answer.data, type=list[LineageRow])
    assert (row.trace_id, row.served, row.intended) == (TRACE, ["cards@1.0"], {"tool": "cards@1.0"})
    assert (row.opened_ms, row.ended_ms) == (str(AT_MS + 2), str(AT_MS + 42))
    assert json.loads(bytes(answer.data))[0][2] == "hotline@2.0"


@pytest.mark.parametrize(
    ("text", "wanted", "is_one"),
    [
        ("a@1.2", "a", True),
        ("a@1.2", "a@1.2", True),
        ("a@1.20", "a@1.2", False),
        ("ab@1", "a", False),
        ("p@1#d", "p@1", True),
    ],
)
def test_a_name_is_named_up_to_a_parts_end(text: str, wanted: str, is_one: bool) -> None:
    assert is_named(text, wanted, ends="@#") is is_one
