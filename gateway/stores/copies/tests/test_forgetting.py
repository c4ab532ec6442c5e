"""Imported sessions can be deleted as others can: from the log, from the archive, for good."""

from pathlib import Path

import pytest

from gateway.stores.archive.tests.attic import Attic, places_with
from gateway.stores.copies.forgetting import OwnSession
from gateway.stores.copies.tests.copying import exported, forgotten, imported, place_in, write
from gateway.stores.memory import MemoryStore
from gateway.stores.ports import Table
from gateway.stores.reader import TrajectoryReader
from gateway.stores.records.tests.sessions import line, name_of, whole
from gateway.stores.tables import archive_erasing_row, session_row


def test_a_forgotten_session_is_nowhere_and_does_not_come_back(tmp_path: Path) -> None:
    write(tmp_path / "from", *(line(whole(n)) for n in range(3)))
    exported(tmp_path / "from", place_in(tmp_path / "copy"))
    into, store = tmp_path / "into", MemoryStore()
    imported(place_in(tmp_path / "copy"), into, store)
    report = forgotten(into, name_of(1), "nobody", store=store)
    assert (report.forgotten, report.not_there) == ((name_of(1),), ("nobody",))
    assert [one.session_id for one in TrajectoryReader(into)] == [name_of(0), name_of(2)]
    assert not list(places_with(into, b'"lineage_id":"l1"'))
    assert not list(store.scan(Table.META, b"")), "no archive has anything to do"
    again = imported(place_in(tmp_path / "copy"), into, store)
    assert (again.imported, again.there_already, again.erased) == (0, 2, 1)


def test_what_lies_in_the_archive_is_left_to_its_next_pass(tmp_path: Path) -> None:
    attic = Attic(tmp_path / "into")
    attic.write(whole(1))
    attic.write(whole(2))
    attic.archive()
    store = MemoryStore()
    assert forgotten(tmp_path / "into", name_of(1), store=store).forgotten == (name_of(1),)
    assert store.get(Table.META, archive_erasing_row(name_of(1))) is not None
    attic.archive(erase=(name_of(1),))
    assert not list(places_with(tmp_path / "into", b'"lineage_id":"l1"'))
    assert [one.session_id for one in TrajectoryReader(tmp_path / "into")] == [name_of(2)]


@pytest.mark.parametrize("table", [Table.KEY, Table.SESSION])
def test_the_gateways_own_sessions_are_its_own_to_delete(tmp_path: Path, table: Table) -> None:
    write(tmp_path, line(whole(1)), line(whole(2)))
    store = MemoryStore()
    rows = store.batch()
    rows.put(table, session_row(name_of(2)), b"key")
    store.write(rows)
    with pytest.raises(OwnSession, match="acp sessions delete"):
        forgotten(tmp_path, name_of(1), name_of(2), store=store)
    assert len(list(TrajectoryReader(tmp_path))) == 2
