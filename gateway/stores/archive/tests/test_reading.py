"""The trainer's door over both tiers: what left for the archive is read as before, once."""

import shutil
from pathlib import Path

import msgspec
import pytest

from acp_spec.model.trajectory import Trajectory
from gateway.stores.archive.marker import left, mark
from gateway.stores.archive.packing import unpack
from gateway.stores.archive.tests.attic import DAY_MS, Attic
from gateway.stores.reader import FolderUnreadable, TrajectoryReader
from gateway.stores.records.tests.sessions import AT_MS, name_of, whole


def read(folder: Path, *, newest_only: bool = True) -> list[tuple[str, int]]:
    reader = TrajectoryReader(folder, newest_only=newest_only)
    return [_said(one) for one in reader]


def _said(one: Trajectory) -> tuple[str, int]:
    return one.session_id, one.sequence


@pytest.fixture
def attic(tmp_path: Path) -> Attic:
    found = Attic(tmp_path)
    found.write(whole(1), whole(2))
    found.write(whole(1, 9))  # judged later
    found.archive()
    return found


BOTH = [(name_of(2), 7), (name_of(1), 9)]


def test_a_data_directory_is_read_with_its_archive_and_late_feedback_wins(attic: Attic) -> None:
    assert len(attic.cold.files()) == 1
    assert read(attic.folder) == BOTH
    attic.write(whole(3))
    attic.archive()
    assert read(attic.folder) == [*BOTH, (name_of(3), 7)]
    assert read(attic.archive_dir) == BOTH, "the archive alone, as any folder"


def test_a_file_that_is_in_both_tiers_for_a_moment_is_read_once(attic: Attic) -> None:
    (packed,) = attic.archive_dir.rglob("*.zst")
    folder = attic.log_dir / "2026-09-21"
    assert packed.parent.name == "date=2026-09-21"
    (manifest,) = attic.cold.manifests()
    unpack(packed, folder / "0001.jsonl", raw_sha256=manifest.raw_sha256)
    assert len(read(attic.folder, newest_only=False)) == 3


def test_what_a_killed_rewriting_left_is_not_read(attic: Attic) -> None:
    (packed,) = attic.archive_dir.rglob("*.zst")
    shutil.copy(packed, attic.folder / "kept")
    attic.archive(erase=(name_of(2),))
    (attic.folder / "kept").rename(packed)  # killed before it was taken away
    assert read(attic.folder) == BOTH[1:]
    assert read(attic.archive_dir) == [(name_of(1), 7)]


def test_an_archive_that_cannot_be_read_from_here_is_never_silently_left_out(
    attic: Attic,
) -> None:
    attic.archive_dir.rename(attic.folder / "away")
    with pytest.raises(FolderUnreadable, match="is not there"):
        read(attic.folder)
    mark(attic.log_dir, msgspec.structs.replace(left(attic.log_dir), url="s3://bucket/x"))
    reader = TrajectoryReader(attic.folder)
    assert [_said(one) for one in reader] == BOTH[1:]
    assert reader.counts.elsewhere == "s3://bucket/x"


def test_what_retention_took_is_said(attic: Attic) -> None:
    attic.archive(now_ms=AT_MS + 9 * DAY_MS, keep_days=1)
    reader = TrajectoryReader(attic.folder)
    assert [_said(one) for one in reader] == BOTH[1:]
    assert reader.counts.expired_before == "2026-09-29"
