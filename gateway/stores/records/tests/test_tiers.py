"""Both tiers read as one log: every line once and in order, wherever its file lies."""

from pathlib import Path

import pytest

from gateway.stores.archive.tests.attic import Attic
from gateway.stores.records import log_tail
from gateway.stores.records.log_tail import Place
from gateway.stores.records.order import Order
from gateway.stores.records.tests.sessions import line, name_of, whole
from gateway.stores.records.tiers import Tiers, cold_tier_of


def tiers_of(attic: Attic, damaged: list[str]) -> Tiers:
    state = attic.folder / "records"
    order = Order(log_dir="", records_dir="", key="", archive_url=str(attic.archive_dir))
    cold = cold_tier_of(order, attic.log_dir, state_directory=state)
    return Tiers(attic.log_dir, state, cold=cold, damaged=lambda file, why: damaged.append(why))


def read_on(tiers: Tiers, place: Place) -> tuple[list[bytes], Place]:
    lines: list[bytes] = []
    while (batch := tiers.next_batch(place)) is not None:
        lines += tiers.lines_of(batch)
        place = batch.after
    return lines, place


@pytest.fixture
def attic(tmp_path: Path) -> Attic:
    """Five files, of which three have left."""
    found = Attic(tmp_path)
    for number in range(4):
        found.write(whole(number), whole(number + 10))
    found.archive()
    found.write(whole(4))
    return found


EVERY = [line(whole(n)) for number in range(4) for n in (number, number + 10)] + [line(whole(4))]


def test_a_log_is_read_through_both_tiers(attic: Attic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_tail, "BATCH_LINES_MAX", 1)
    assert attic.hot_names() == ["2026-09-21/0004.jsonl", "2026-09-21/0005.jsonl"]
    assert read_on(tiers_of(attic, []), Place())[0] == EVERY
    assert not list((attic.folder / "records" / "thawed").glob("*/*")), "nothing stays unpacked"


def test_a_log_that_nothing_has_left_needs_no_archive(tmp_path: Path) -> None:
    attic = Attic(tmp_path)
    attic.write(whole(1))
    assert read_on(tiers_of(attic, []), Place())[0] == [line(whole(1))]


def test_reading_goes_on_within_a_file_that_has_left_meanwhile(attic: Attic) -> None:
    tiers = tiers_of(attic, [])
    middle = Place(attic.hot_names()[0], len(line(whole(3))))
    batch = tiers.next_batch(middle)
    assert batch is not None
    attic.archive()
    assert tiers.lines_of(batch) == [line(whole(13))], "a batch that was begun before"
    assert read_on(tiers_of(attic, []), middle)[0] == EVERY[-2:]


def test_what_is_not_archived_is_where_a_scheduled_comparison_begins(attic: Attic) -> None:
    tiers = tiers_of(attic, [])
    assert read_on(tiers, tiers.hot_start())[0] == EVERY[-3:]


def test_an_archived_file_that_cannot_be_read_is_told_and_passed_over(attic: Attic) -> None:
    for path in attic.archive_dir.rglob("0002.r1*"):
        path.write_bytes(b"damaged")
    damaged: list[str] = []
    assert read_on(tiers_of(attic, damaged), Place())[0] == [*EVERY[:2], *EVERY[4:]]
    assert damaged
    assert all(name_of(1) in why for why in damaged)


def test_an_archive_that_is_away_is_not_taken_for_an_empty_one(attic: Attic) -> None:
    attic.archive_dir.rename(attic.folder / "away")
    with pytest.raises(OSError, match="is it mounted"):
        read_on(tiers_of(attic, []), Place())
    hot = attic.hot_names()
    assert len(read_on(tiers_of(attic, []), Place(hot[0]))[0]) == 3, "the rest needs no archive"
