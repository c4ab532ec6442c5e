"""Deleting: the payloads are gone from every place, the tombstone stays."""

from pathlib import Path

import pytest

from acp_spec.model.enums import Boundary
from acp_spec.model.errors import AcpFailure
from acp_spec.model.session import OpenSession
from acp_spec.model.times import parse_rfc3339
from gateway.engine.tests.casting import Said
from gateway.engine.tests.stage import ONE_ACTION, gave
from gateway.runtime.principal import LOCAL, Principal
from gateway.runtime.tests.house import House, told
from gateway.runtime.tests.virtual_time import run
from gateway.stores.ports import Table
from gateway.stores.rocksdb import RocksStore
from gateway.stores.tables import erasing_row, session_row

SECRET = "4711-secret"
STRANGER = Principal(tenant="stranger", scopes=frozenset(("admin",)))


async def deleted(house: House) -> str:
    house.targets.connection.lines["read"] = gave(SECRET)
    session = await house.open(ONE_ACTION % "read", labels={"who": SECRET})
    await house.ended(session)
    await house.service.erase(session, LOCAL)
    return session


def test_after_a_deletion_a_tombstone_is_shown_and_nothing_else() -> None:
    async def story() -> None:
        house = House()
        session = await deleted(house)
        view = await house.service.view(session, LOCAL)
        assert view.status.value == "SUCCEEDED"
        assert (bytes(view.output), view.error, view.labels) == (b"", None, {})
        assert parse_rfc3339(view.erased_at) is not None
        assert await told(house.service.trajectory(session, LOCAL)) == "NOT_FOUND"
        assert await told(house.service.view(session, STRANGER)) == "NOT_FOUND"
        (listed,) = (await house.service.page(LOCAL)).sessions
        assert (listed.session_id, listed.labels) == (session, {})
        lineage = house.service.lineage(view.lineage_id, LOCAL)
        for asked in (house.service.trajectory(session, LOCAL), lineage):
            with pytest.raises(AcpFailure, match="was deleted"):
                await asked
        with pytest.raises(AcpFailure, match="there is no session"):
            await house.service.trajectory(session, STRANGER)

    run(story())


def test_nothing_of_its_payloads_is_left_in_the_store() -> None:
    async def story() -> None:
        house = House()
        session = await deleted(house)
        rows = [row for table in Table for row in house.store.scan(table, b"")]
        assert all(SECRET.encode() not in key + value for key, value in rows)
        assert house.store.get(Table.KEY, session_row(session)) is None
        assert house.forgotten == [session]
        assert house.store.get(Table.META, erasing_row(session)) is None

    run(story())


def test_its_key_is_in_no_file_any_more(tmp_path: Path) -> None:
    """A row that is only deleted stays in the log and table files, and all its payloads with it."""

    async def story() -> None:
        store = RocksStore(tmp_path)
        house = House(store=store)
        session = await house.open(ONE_ACTION % "read")
        await house.ended(session)
        key = store.get(Table.KEY, session_row(session))
        assert key
        assert files_with(tmp_path, key), "it was there"
        await house.service.erase(session, LOCAL)
        assert files_with(tmp_path, key) == []
        await house.committer.close()
        store.close()

    run(story())


def files_with(folder: Path, secret: bytes) -> list[str]:
    return [one.name for one in folder.rglob("*") if one.is_file() and secret in one.read_bytes()]


def test_events_of_a_deleted_session_are_no_longer_kept() -> None:
    """Its own tenant was told that it had never been: 404 where 410 is meant."""

    async def story() -> None:
        house = House()
        session = await deleted(house)
        with pytest.raises(AcpFailure) as told_so:
            house.service.events(session, LOCAL, after=0)
        assert told_so.value.error.reason == "EVENTS_EXPIRED"
        with pytest.raises(AcpFailure) as foreign:
            house.service.events(session, STRANGER, after=0)
        assert foreign.value.error.reason == "NOT_FOUND"

    run(story())


def test_deleting_twice_is_fine_and_a_running_session_is_cancelled_first() -> None:
    async def story() -> None:
        house = House()
        session = await deleted(house)
        await house.service.erase(session, LOCAL)
        house.targets.connection.lines["put"] = Said(response=b"{}", after_ms=4_000)
        running = await house.open(ONE_ACTION % "put")
        with pytest.raises(AcpFailure) as refused:
            await house.service.erase(running, LOCAL)
        assert refused.value.error.reason == "CALL_IN_PROGRESS"
        assert refused.value.error.boundary is Boundary.CLIENT

    run(story())


def test_a_deletion_that_a_crash_interrupted_is_finished_at_the_next_start() -> None:
    async def story() -> None:
        house = House()
        house.targets.connection.lines["read"] = gave(SECRET)
        session = await house.open(ONE_ACTION % "read")
        await house.ended(session)
        key = house.store.get(Table.KEY, session_row(session))
        assert key is not None
        await house.service.erase(session, LOCAL)
        batch = house.store.batch()
        batch.put(Table.KEY, session_row(session), key)
        batch.put(Table.META, erasing_row(session), b"")
        house.store.write(batch)  # as it was before the key was destroyed
        again = House(store=house.store)
        assert await again.erasing.finish() == 1
        assert again.store.get(Table.KEY, session_row(session)) is None
        assert again.forgotten == [session]

    run(story())


def test_the_key_of_a_deleted_session_opens_a_new_one() -> None:
    """It stayed taken: the same request got the id of a session that was gone."""

    async def story() -> None:
        house = House()
        await house.ended(await house.open(ONE_ACTION % "read"))
        workflow = (await house.service.page(LOCAL)).sessions[0].workflow
        request = OpenSession(workflow=workflow, session_key="order-1")
        first, _ = await house.service.open(request, LOCAL)
        await house.ended(first.session_id)
        same, created = await house.service.open(request, LOCAL)
        assert (same.session_id, created) == (first.session_id, False)
        await house.service.erase(first.session_id, LOCAL)
        again, created = await house.service.open(request, LOCAL)
        assert created
        assert again.session_id != first.session_id

    run(story())
