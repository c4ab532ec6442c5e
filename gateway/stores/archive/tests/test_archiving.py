"""A pass of the archive: nothing is lost or doubled, wherever it is killed."""

import contextlib
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from acp_spec.model.times import rfc3339
from gateway.stores.archive.manifest import LineOf
from gateway.stores.archive.marker import left
from gateway.stores.archive.object_store import DirectoryStore, StoreUnreachable
from gateway.stores.archive.order import Checked, Dropped, Erased, Moved, Over
from gateway.stores.archive.tests.attic import DAY_MS, Attic, FrailStore, Killed, places_with
from gateway.stores.records.log_tail import Place
from gateway.stores.records.position import POSITION_FILE, PositionFile
from gateway.stores.records.tests.sessions import AT_MS, line, name_of, new_log, whole
from gateway.stores.trajectory_log import head_of, log_files


def test_old_files_leave_and_the_newest_stays(tmp_path: Path) -> None:
    attic = Attic(tmp_path)
    for number in range(3):
        attic.write(whole(number))
    told = attic.archive()
    assert [one.file for one in told if isinstance(one, Moved)] == [
        "2026-09-21/0001.jsonl",
        "2026-09-21/0002.jsonl",
    ]
    assert told[-1] == Over(files=2)
    assert attic.hot_names() == ["2026-09-21/0003.jsonl"]
    assert attic.cold_lines() == [line(whole(0)), line(whole(1))]
    assert left(attic.log_dir).through == "2026-09-21/0002.jsonl"
    names = sorted(path.name for path in attic.archive_dir.rglob("*") if path.is_file())
    assert names[:3] == ["0001.manifest.json", "0001.r1.jsonl.zst", "0001.r1.parquet"]
    assert names[-1] == "gateway.json"
    assert not list((tmp_path / "work").glob("*")), "nothing stays where it was packed"


def test_a_file_leaves_when_its_days_are_over_and_not_before(tmp_path: Path) -> None:
    attic = Attic(tmp_path)
    for day in range(4):
        attic.write(whole(day), at_ms=AT_MS + day * DAY_MS)
    attic.archive(now_ms=AT_MS + 3 * DAY_MS, hot_days=2)
    assert [name[:10] for name in attic.hot_names()] == ["2026-09-23", "2026-09-24"]
    assert [name[:10] for name in attic.cold.files()] == ["2026-09-21", "2026-09-22"]


def test_a_file_waits_until_the_records_are_beyond_it(tmp_path: Path) -> None:
    attic = Attic(tmp_path)
    for number in range(4):
        attic.write(whole(number))
    with PositionFile(tmp_path / "records" / POSITION_FILE) as position:
        position.done(Place(attic.hot_names()[1], 10))
        assert attic.archive()[-1] == Over(files=1, waiting=2)
        assert attic.hot_names()[0] == "2026-09-21/0002.jsonl"
        position.done(Place("2026-09-21/0004.jsonl", 0))
        assert attic.archive()[-1] == Over(files=3)
        position.rewind()  # a backfill has begun: it reads what is there, wherever that is
        attic.write(whole(9))
        assert attic.archive()[-1] == Over(files=3, waiting=1)


def test_the_manifest_says_what_is_in_the_file(tmp_path: Path) -> None:
    attic = Attic(tmp_path)
    attic.log.append([line(whole(1, 7)), b"no trajectory\n", line(whole(2, 9))], AT_MS)
    attic.log.close()
    attic.log.erase(name_of(2), AT_MS, now_ms=AT_MS)
    attic.write(whole(3))
    attic.archive()
    first, second = attic.cold.manifests()
    assert (first.lines, first.blank, first.unreadable, first.tombstones) == (1, 1, 1, 0)
    assert (first.first_sequence, first.last_sequence) == (7, 7)
    assert first.sessions == (LineOf(name_of(1), 7),)
    assert first.schema_versions == {"1.0": 1}
    assert (second.lines, second.tombstones) == (0, 1)
    assert first.raw_bytes > first.packed.bytes


def test_deleting_rewrites_both_forms_and_keeps_every_offset(tmp_path: Path) -> None:
    attic = Attic(tmp_path)
    attic.write(*(whole(number, comments=(f"secret-{number}",)) for number in range(4)))
    attic.write(whole(9))
    attic.archive()
    (before,) = attic.cold.manifests()
    assert list(places_with(attic.archive_dir, b"secret-2"))
    told = attic.archive(erase=(name_of(2),))
    assert told[0] == Erased(session_ids=(name_of(2),))
    assert not list(places_with(tmp_path, b"secret-2"))
    assert not list(places_with(attic.archive_dir, name_of(2).encode()))
    (after,) = attic.cold.manifests()
    assert (after.raw_bytes, after.blank, after.revision) == (before.raw_bytes, 1, 2)
    assert [one.session_id for one in after.sessions] == [name_of(n) for n in (0, 1, 3)]


def test_a_session_that_is_deleted_while_its_file_is_copied_goes_with_the_next_pass(
    tmp_path: Path,
) -> None:
    attic = Attic(tmp_path)
    attic.write(whole(1, comments=("secret-1",)), whole(2))
    attic.write(whole(3))
    copied = attic.hot_names()[0]
    with (attic.log_dir / copied).open("rb") as before:  # a pass has it open
        attic.log.erase(name_of(1), AT_MS, now_ms=AT_MS)
        attic.cold.keep(copied, before, now="")
    assert list(places_with(attic.archive_dir, b"secret-1"))
    attic.archive(erase=(name_of(1),))
    assert not list(places_with(tmp_path, b"secret-1"))
    assert line(whole(2)) in attic.cold_lines()


def test_a_file_that_a_rewriting_brought_back_leaves_again(tmp_path: Path) -> None:
    """The gateway blanks a line in a file that a pass takes away at the same moment."""
    attic = Attic(tmp_path)
    attic.write(whole(1), whole(2))
    attic.write(whole(3))
    name = attic.hot_names()[0]
    shutil.copy(attic.log_dir / name, tmp_path / "kept")
    attic.archive()
    shutil.copy(tmp_path / "kept", attic.log_dir / name)
    attic.archive()
    assert attic.hot_names() == ["2026-09-21/0002.jsonl"]
    assert [one.revision for one in attic.cold.manifests()] == [1]


def test_a_damaged_form_is_made_again_from_the_other(tmp_path: Path) -> None:
    attic = Attic(tmp_path)
    attic.write(whole(1), whole(2))
    attic.write(whole(3))
    attic.archive()
    for form in ("*.zst", "*.parquet"):
        (path,) = attic.archive_dir.rglob(form)
        path.write_bytes(path.read_bytes()[:-40] + b"x" * 40)
        assert attic.cold_lines() == [line(whole(1)), line(whole(2))]
        healed = [one for one in attic.archive(check=True) if isinstance(one, Checked)]
        assert healed == [Checked(file="2026-09-21/0001.jsonl", healed=True)]
        assert attic.cold_lines() == [line(whole(1)), line(whole(2))]
    assert attic.troubles() == []


def test_a_file_with_both_forms_damaged_names_its_sessions_and_holds_up_no_other(
    tmp_path: Path,
) -> None:
    attic = Attic(tmp_path)
    for number in range(3):
        attic.write(whole(number))
    attic.archive()
    for path in attic.archive_dir.rglob("0001.r1*"):
        path.write_bytes(b"damaged")
    told = attic.archive(erase=(name_of(0), name_of(1)), check=True)
    assert Erased(session_ids=(name_of(1),)) in told
    assert Checked(file="2026-09-21/0002.jsonl") in told
    assert all(name_of(0) in trouble for trouble in attic.troubles())
    assert len(attic.troubles()) == 2


def test_retention_takes_whole_days_and_says_so(tmp_path: Path) -> None:
    attic = Attic(tmp_path)
    for day in range(4):
        attic.write(whole(day), at_ms=AT_MS + day * DAY_MS)
    told = attic.archive(now_ms=AT_MS + 3 * DAY_MS, keep_days=2)
    assert [one.file for one in told if isinstance(one, Dropped)] == ["2026-09-21/0001.jsonl"]
    assert not list(places_with(tmp_path, name_of(0).encode()))
    assert left(attic.log_dir).expired_before == "2026-09-22"


def test_retention_waits_for_the_gateway(tmp_path: Path) -> None:
    attic = Attic(tmp_path)
    attic.write(whole(1))
    attic.write(whole(2), at_ms=AT_MS + 9 * DAY_MS)
    attic.archive(now_ms=AT_MS + 9 * DAY_MS, keep_days=1, agrees=False)
    assert attic.cold_lines() == [line(whole(1))]
    assert left(attic.log_dir).expired_before == ""


def test_a_place_where_nothing_is_mounted_is_not_taken_for_an_archive_without_the_session(
    tmp_path: Path,
) -> None:
    attic = Attic(tmp_path)
    attic.write(whole(1))
    attic.write(whole(2))
    attic.archive()
    attic.archive_dir.rename(tmp_path / "away")
    with pytest.raises(StoreUnreachable, match="is it mounted"):
        attic.archive(erase=(name_of(1),))
    (tmp_path / "away").rename(attic.archive_dir)
    assert Erased(session_ids=(name_of(1),)) in attic.archive(erase=(name_of(1),))


def test_two_gateways_share_one_place(tmp_path: Path) -> None:
    place = DirectoryStore(tmp_path / "bucket")
    one, two = (
        Attic(tmp_path / name, store=FrailStore(place), gateway_id=name) for name in ("a", "b")
    )
    for attic, number in ((one, 1), (two, 2)):
        attic.write(whole(number))
        attic.write(whole(number + 10))
        attic.archive()
    one.archive(erase=(name_of(2),))
    assert one.cold_lines() == [line(whole(1))]
    assert two.cold_lines() == [line(whole(2))]


def test_a_pass_that_is_killed_at_any_of_its_steps_leaves_every_other_line_once(
    tmp_path: Path,
) -> None:
    """One file leaves and another is rewritten; a put is killed halfway. The next pass goes on."""
    for steps in range(100):
        attic = Attic(tmp_path / str(steps))
        attic.write(whole(1, comments=("secret-1.",)), whole(2))
        attic.write(whole(3))
        attic.archive()
        attic.write(whole(4))
        place = DirectoryStore(attic.archive_dir)
        attic.store = FrailStore(place, steps=steps, halves=True)
        was_killed = False
        try:
            attic.archive(erase=(name_of(1),))
        except Killed:
            was_killed = True
        attic.store = FrailStore(place)
        others = [line(whole(number)) for number in (2, 3, 4)]
        assert [one for one in attic.lines() if b"secret-1." not in one] == others, steps
        attic.archive(erase=(name_of(1),))
        assert attic.lines() == others, steps
        assert not list(places_with(attic.folder, b"secret-1.")), steps
        if not was_killed:
            assert steps > 10, "there are so many steps to be killed at"
            return
    raise AssertionError("a pass has an end")


class Story(RuleBasedStateMachine):
    """A log and its archive against a model: the newest line of every session that is not erased.

    Passes are killed at any step of the store, also in the middle of a put.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.attic = Attic(self.folder)
        self.now_ms = AT_MS
        self.sequences: dict[int, int] = {}
        self.day_of: dict[int, int] = {}
        self.erased: set[int] = set()
        self.pending: set[str] = set()

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @rule(count=st.integers(1, 3), ends=st.booleans())
    def sessions_end(self, count: int, ends: bool) -> None:
        numbers = range(len(self.sequences), len(self.sequences) + count)
        self.attic.log.append([self._line(number, 7) for number in numbers], self.now_ms)
        for number in numbers:
            self.sequences[number], self.day_of[number] = 7, self.now_ms
        if ends:
            self.attic.log.close()

    @precondition(lambda self: self.living)
    @rule(data=st.data())
    def feedback_comes_late(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(self.living))
        self.sequences[number] += 1
        self.day_of[number] = self.now_ms
        self.attic.log.append([self._line(number, self.sequences[number])], self.now_ms)

    @precondition(lambda self: self.living)
    @rule(data=st.data())
    def a_session_is_deleted(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(self.living))
        self.erased.add(number)
        self.attic.log.erase(name_of(number), AT_MS, now_ms=self.now_ms)
        self.pending.add(name_of(number))

    @rule(days=st.integers(1, 3))
    def days_go_by(self, days: int) -> None:
        self.now_ms += days * DAY_MS

    @rule(steps=st.none() | st.integers(0, 25), halves=st.booleans(), hot_days=st.integers(0, 2))
    def a_pass_runs(self, steps: int | None, halves: bool, hot_days: int) -> None:
        store = FrailStore(DirectoryStore(self.attic.archive_dir), steps=steps, halves=halves)
        self.attic.store = store
        with contextlib.suppress(Killed):
            self._pass(hot_days=hot_days)
        self.attic.store = FrailStore(DirectoryStore(self.attic.archive_dir))

    @rule(keep_days=st.integers(3, 5))
    def retention_comes(self, keep_days: int) -> None:
        self._pass(hot_days=0, keep_days=keep_days)
        before_ms = (self.now_ms // DAY_MS - keep_days) * DAY_MS
        archived = {Path(name).parent.name for name in self.attic.cold.files()}
        assert all(rfc3339(before_ms)[:10] <= day for day in archived)
        hot = b"".join(path.read_bytes() for path in log_files(self.attic.log_dir))
        for number in self.living:
            if self.day_of[number] < before_ms and name_of(number).encode() not in hot:
                self.erased.add(number)  # the gateway erases it everywhere

    @rule()
    def the_gateway_starts_again(self) -> None:
        self.attic.log.close()
        self.attic.log = new_log(self.attic.log_dir)
        self.attic.log.recover()

    @invariant()
    def the_newest_line_of_each_is_there_once_and_nothing_of_the_erased_comes_back(self) -> None:
        found = Counter(self._newest(self.attic.lines()))
        wanted = {(name_of(n), self.sequences[n]) for n in self.living}
        newest: dict[str, int] = {}
        for (session_id, sequence), times in found.items():
            assert times == 1, (session_id, sequence)
            newest[session_id] = max(sequence, newest.get(session_id, 0))
        kept = set(newest.items())
        assert wanted <= kept
        gone = {name_of(n) for n in self.erased}
        assert {one for one, _ in kept} & gone <= self.pending, "only until the next pass"

    @property
    def living(self) -> list[int]:
        return [number for number in self.sequences if number not in self.erased]

    def _pass(self, *, hot_days: int, keep_days: int = 0) -> None:
        told = self.attic.archive(
            now_ms=self.now_ms,
            hot_days=hot_days,
            keep_days=keep_days,
            erase=tuple(sorted(self.pending)),
        )
        self.pending -= {
            one for said in told if isinstance(said, Erased) for one in said.session_ids
        }
        assert not self.pending
        assert self.attic.troubles() == []
        for number in self.erased:
            secret = f"secret-{number}.".encode()
            assert not list(places_with(self.folder, secret)), "in no tier"

    def _line(self, number: int, sequence: int) -> bytes:
        return line(whole(number, sequence, comments=(f"secret-{number}.",)))

    def _newest(self, lines: list[bytes]) -> Iterator[tuple[str, int]]:
        for one in lines:
            head = head_of(one)
            if head is not None:
                yield head.session_id, head.sequence


def test_no_story_of_kills_deletions_and_retention_loses_a_line_or_keeps_one() -> None:
    run_state_machine_as_test(Story, settings=_settings(examples=6, steps=14))


@pytest.mark.long
def test_no_long_story_does() -> None:
    run_state_machine_as_test(Story, settings=_settings(examples=60, steps=30))


def _settings(*, examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
