"""Lineages of real sessions: the page of a run, finding runs, and what two of them differ in."""

import msgspec
import pytest

from acp_spec.bindings.errors import error
from acp_spec.model.enums import SessionStatus
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.payload import payload
from acp_spec.model.trajectory import Attempt, Trajectory
from gateway.engine.tests.casting import Said
from gateway.engine.tests.stage import FOUR_CALLS, ONE_ACTION
from gateway.insight.differing import Subject
from gateway.runtime.lineage import LineagePlaces, Lineages, run_of
from gateway.runtime.lineage_search import (
    FindLineages,
    LineageSearch,
    fits,
    match_of,
    wanted_of,
)
from gateway.runtime.principal import LOCAL, Principal
from gateway.runtime.tests.house import House, told
from gateway.runtime.tests.virtual_time import run
from gateway.stores.masked import masked
from gateway.stores.records.lineage_question import WantedLineage, lineage_sql
from gateway.stores.records.reach import Answer
from gateway.telemetry.masking import DEFAULT, Masker
from gateway.telemetry.spans import parse_traceparent

STRANGER = Principal(tenant="stranger", scopes=frozenset(("admin",)), subject="s")
PLACES = LineagePlaces(
    trace_url="https://traces.example/{trace_id}",
    is_tracing=True,
    log_url="https://logs.example/?q={session_id}",
    log_file="/var/log/a gateway.log",
)


async def away(sql: str) -> Answer:
    raise AcpFailure(error(Reason.UNIMPLEMENTED, "the records are an extra"))


def lineages(house: House, places: LineagePlaces = PLACES) -> Lineages:
    search = LineageSearch(
        in_memory=house.sessions.states,
        synced=house.committer.synced,
        open_sessions=lambda: house.driver.open_sessions,
        query=away,
    )
    return Lineages(
        sessions=house.service, search=search, masker=Masker(("password", "badge")), places=places
    )


def test_a_run_says_what_was_intended_what_served_and_where_the_rest_lies() -> None:
    async def story() -> None:
        house = House()
        session = await house.open(FOUR_CALLS)
        view = await house.ended(session)
        found = await lineages(house).run(session, LOCAL)
        assert found == await lineages(house).run(view.lineage_id, LOCAL)
        assert (found.head.status, found.head.lineage_id) == ("SUCCEEDED", view.lineage_id)
        assert found.head.duration_ms is not None
        assert all(work.served == (work.intended,) for work in found.work if work.served)
        assert {work.work for work in found.work if work.served} >= {"step:plan"}
        record = msgspec.json.decode(
            await house.service.trajectory(session, LOCAL), type=Trajectory
        )
        assert [call.call_id for call in found.calls] == [row.call_id for row in record.calls]
        assert found.policies == record.lineage.policies
        assert len({call.attempts[0].span_id for call in found.calls}) == len(found.calls)
        assert found.trace.trace_id in record.traceparent
        assert (found.trace.is_recorded, found.trace.url) == (False, "")
        assert found.logs.filter == f"grep -F {session} '/var/log/a gateway.log'"
        assert found.logs.url == f"https://logs.example/?q={session}"

    run(story())


def test_a_trace_that_is_exported_has_a_link_and_one_that_is_not_has_none() -> None:
    async def story() -> None:
        house = House()
        session = await house.open(FOUR_CALLS)
        await house.ended(session)
        text = await house.service.trajectory(session, LOCAL)
        one = msgspec.json.decode(text, type=Trajectory)
        sampled = msgspec.structs.replace(one, traceparent=one.traceparent[:-2] + "01")
        parsed = parse_traceparent(one.traceparent)
        assert parsed is not None
        assert run_of(sampled, PLACES).trace.url == f"https://traces.example/{parsed.trace_id}"
        assert run_of(sampled, LineagePlaces(trace_url=PLACES.trace_url)).trace.url == ""
        old = msgspec.structs.replace(one, traceparent="")
        assert run_of(old, PLACES).trace.trace_id == ""
        assert {a.span_id for call in run_of(old, PLACES).calls for a in call.attempts} == {""}

    run(story())


def test_a_run_tells_no_payload_and_no_secret_in_words() -> None:
    failed = error(Reason.UNAVAILABLE, "no answer to Bearer abc.def.ghi")
    row = Attempt(
        call_id="c",
        attempt=1,
        step="act",
        role="EXECUTE",
        component="tool",
        component_version="1",
        action="pay",
        arguments=payload(b'{"pin":"0000"}'),
        error=failed,
    )
    one = Trajectory(
        schema_version="1.0",
        session_id="s",
        lineage_id="s.l",
        status=SessionStatus.FAILED,
        calls=(row,),
        input=payload(b'{"pin":"0000"}'),
    )
    text = msgspec.json.encode(run_of(masked(one, DEFAULT), LineagePlaces()))
    assert b"0000" not in text
    assert b"abc.def.ghi" not in text
    assert b"UNAVAILABLE" in text


def test_sessions_that_run_are_found_and_so_are_those_that_ended() -> None:
    async def story() -> None:
        house = House()
        ended = await house.open(FOUR_CALLS)
        await house.ended(ended)
        house.targets.connection.lines["read"] = Said(response=b'{"output":1}', after_ms=60_000)
        running = await house.open(ONE_ACTION % "read")
        everything = lineages(house)
        for asked, wanted in (
            (FindLineages(component="planner"), [ended]),
            (FindLineages(component="tools"), [running, ended]),
            (FindLineages(component="tools@9"), []),
            (FindLineages(id=running), [running]),
            (FindLineages(component="tools", after=running), [ended]),
            (FindLineages(component="tools", limit=1), [running]),
            (FindLineages(component="tools", until="2001-01-01"), []),
        ):
            found = await everything.find(asked, LOCAL)
            assert [one.session_id for one in found.sessions] == wanted, asked
        page = await everything.find(FindLineages(component="tools", limit=1), LOCAL)
        assert page.next == running
        assert page.sessions[0].status == "RUNNING"
        by_run = await everything.run(running, LOCAL)
        for name in (by_run.trace.trace_id, by_run.calls[0].call_id, by_run.head.lineage_id):
            found = await everything.find(FindLineages(id=name), LOCAL)
            assert [one.session_id for one in found.sessions] == [running]

    run(story())


def test_without_the_records_memory_answers_and_says_that_it_is_alone() -> None:
    async def story() -> None:
        house = House(live_limit=1)
        session = await house.open(FOUR_CALLS)
        await house.ended(session)
        found = await lineages(house).find(FindLineages(component="tools"), LOCAL)
        assert found.only_memory == "the records are an extra"

    run(story())


def test_a_fault_in_the_question_is_not_taken_for_records_that_are_away() -> None:
    async def wrong(sql: str) -> Answer:
        raise AcpFailure(error(Reason.INVALID_REQUEST, "sql: Timeout"))

    async def story() -> None:
        house = House()
        search = LineageSearch(
            in_memory=house.sessions.states,
            synced=house.committer.synced,
            open_sessions=lambda: 0,
            query=wrong,
        )
        assert await told(search.find(FindLineages(workflow="w"), LOCAL)) == "INVALID_REQUEST"

    run(story())


def test_what_the_records_know_stands_beside_what_memory_knows_which_is_newer() -> None:
    asked_sql: list[str] = []

    async def story() -> None:
        house = House()
        session = await house.open(FOUR_CALLS)
        await house.ended(session)
        mine = match_of(house.sessions.states()[0])
        older = "01HF7YAT00000G00000000000Z"

        async def query(sql: str) -> Answer:
            asked_sql.append(sql)
            rows = [_row(session, "RUNNING"), _row(older, "FAILED")]
            return Answer(meta=(), data=msgspec.Raw(msgspec.json.encode(rows)), rows=2)

        search = LineageSearch(
            in_memory=house.sessions.states,
            synced=house.committer.synced,
            open_sessions=lambda: 3,
            query=query,
        )
        found = await search.find(FindLineages(component="tools"), LOCAL)
        assert [(one.session_id, one.status) for one in found.sessions] == [
            (session, "SUCCEEDED"),
            (older, "FAILED"),
        ]
        assert found.sessions[0] == mine
        assert found.open_unseen == 3
        wanted = WantedLineage(component="tools")
        assert asked_sql == [lineage_sql(wanted, tenant="default", limit=51)]
        await search.find(FindLineages(id=session), LOCAL)
        assert len(asked_sql) == 1, "a session that is in memory needs no records"

    run(story())


def _row(session_id: str, status: str) -> list[object]:
    head = [session_id, f"{session_id}.l", "w@1", "", status, "", False]
    return [*head, "1700000000000", None, "", {}, {}, [], ""]


def test_another_tenants_runs_are_not_there_whatever_is_asked() -> None:
    async def story() -> None:
        house = House()
        session = await house.open(FOUR_CALLS)
        lineage = (await house.ended(session)).lineage_id
        everything = lineages(house)
        for asked in (
            everything.run(session, STRANGER),
            everything.run(lineage, STRANGER),
            everything.against(session, session, principal=STRANGER),
            everything.run(f"{session}.000000000000", LOCAL),
            everything.run("4bf92f3577b34da6a3ce929d0e0e4736", LOCAL),
        ):
            assert await told(asked) == "NOT_FOUND"
        for name in (session, lineage):
            assert not (await everything.find(FindLineages(id=name), STRANGER)).sessions
        assert not (await everything.find(FindLineages(component="tools"), STRANGER)).sessions

    run(story())


def test_two_runs_of_other_inputs_differ_in_them_and_in_nothing_that_was_the_same() -> None:
    async def story() -> None:
        house = House()
        one = await house.open(ONE_ACTION % "read", input=payload(b'{"a":1,"b":2}'))
        await house.ended(one)
        other = await house.open(ONE_ACTION % "read", input=payload(b'{"a":1,"b":3}'))
        await house.ended(other)
        everything = lineages(house)
        found = await everything.against(one, other, principal=LOCAL)
        assert (found.left.session_id, found.right.session_id) == (one, other)
        inputs = [d for d in found.differences if d.subject is Subject.INPUT]
        assert [(d.at, d.left, d.right) for d in inputs] == [("/b", "2", "3")]
        unchanged = {Subject.WORKFLOW, Subject.INTENDED, Subject.POLICY, Subject.SERVED}
        assert not unchanged & {d.subject for d in found.differences}
        assert not (await everything.against(one, one, principal=LOCAL)).differences

    run(story())


def test_that_two_secrets_differ_is_told_and_not_what_they_are() -> None:
    async def story() -> None:
        house = House()
        ids = []
        for word in ("first-of-all", "second-one"):
            text = b'{"password":{"old":"%s"},"badge":"b-%s","note":"Bearer %s"}' % (
                (word.encode(),) * 3
            )
            ids.append(await house.open(ONE_ACTION % "read", input=payload(text)))
            await house.ended(ids[-1])
        found = await lineages(house).against(*ids, principal=LOCAL)
        assert ("/password/old", "***", "***") in [
            (d.at, d.left, d.right) for d in found.differences
        ]
        assert ("/badge", '"***"', '"***"') in [(d.at, d.left, d.right) for d in found.differences]
        assert b"first-of-all" not in msgspec.json.encode(found)
        assert {d.at for d in found.differences} >= {"/note"}

    run(story())


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (FindLineages(), "have in common"),
        (FindLineages(since="2026-01-01"), "have in common"),
        (FindLineages(input_sha256="xyz"), "64 hexadecimal"),
        (FindLineages(workflow="w", since="yesterday"), "since"),
        (FindLineages(workflow="w", after="x"), "after"),
        (FindLineages(component="c" * 600), "component"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_reason(asked: FindLineages, why: str) -> None:
    with pytest.raises(AcpFailure, match=why) as refused:
        wanted_of(asked)
    assert refused.value.error.reason == "INVALID_REQUEST"


def test_memory_and_records_mean_the_same_by_a_name() -> None:
    async def story() -> None:
        house = House()
        session = await house.open(FOUR_CALLS)
        await house.ended(session)
        (state,) = house.sessions.states()
        pin = next(iter(state.opened.pins.values()))
        policy = next(iter(state.opened.policies.values()))
        name, _, _ = pin.partition("@")
        for wanted in (
            WantedLineage(component=pin),
            WantedLineage(component=name),
            WantedLineage(policy=policy),
            WantedLineage(policy=policy.partition("@")[0]),
            WantedLineage(input_sha256=state.opened.input_sha256),
            WantedLineage(workflow=state.opened.workflow, component=pin),
        ):
            assert fits(state, wanted), wanted
        for wanted in (
            WantedLineage(component=pin[:-1]),
            WantedLineage(component=name[:-1]),
            WantedLineage(policy=policy[:-1]),
            WantedLineage(input_sha256="0" * 64),
        ):
            assert not fits(state, wanted), wanted

    run(story())
