"""What a setting points to and is not there: told at the start, and it keeps nobody out."""

from pathlib import Path

import pytest

from gateway.assembly.archiving import archive_parts
from gateway.assembly.recording import tell_if_no_password
from gateway.config.settings import Settings
from gateway.runtime.clock import SystemClock

NOWHERE = "env:ACP_TEST_NEVER_SET"


def _told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, bool]]:
    """Each event, and whether it names the place."""
    return [(one.getMessage(), NOWHERE in str(one.__dict__)) for one in caplog.records]


def test_a_missing_credential_of_the_archive_is_told_before_a_file_has_to_leave(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = {"url": "s3://bucket/x", "credentials": {"key": NOWHERE}}
    archive_parts(Settings.model_validate({"archive": given}), "me", clock=SystemClock())
    assert _told(caplog) == [("archive_cannot_be_reached", True)]


@pytest.mark.parametrize(
    ("url", "named"),
    [("nope://bucket/x", "'nope'"), ("{}/file/below", "/file is no folder")],
)
def test_an_archive_that_cannot_be_is_told_before_a_file_has_to_leave(
    url: str, named: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    given = {"url": url.format(tmp_path)}
    archive_parts(Settings.model_validate({"archive": given}), "me", clock=SystemClock())
    (told,) = caplog.records
    assert told.getMessage() == "archive_cannot_be_reached"
    assert named in str(told.__dict__)


@pytest.mark.parametrize("url", ["", "{}/a/b", "file://{}/a", "s3://bucket/x", "gs://bucket/x"])
def test_of_an_archive_that_may_be_there_nothing_is_told(
    url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"data_dir": tmp_path, "archive": {"url": url.format(tmp_path)}}
    archive_parts(Settings.model_validate(given), "me", clock=SystemClock())
    assert caplog.records == []


def test_a_missing_password_of_the_records_is_told_before_anybody_asks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given = {"url": "http://user@host:8123", "password": NOWHERE}
    tell_if_no_password(Settings.model_validate({"records": given}))
    assert _told(caplog) == [("records_cannot_be_fed", True)]


def test_nothing_is_told_where_nothing_is_missing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_TEST_SET", "x")
    there = {"url": "http://user@host:8123", "password": "env:ACP_TEST_SET"}
    archive = {"url": "s3://bucket/x", "credentials": {"key": "env:ACP_TEST_SET"}}
    settings = Settings.model_validate({"archive": archive, "records": there})
    archive_parts(settings, "me", clock=SystemClock())
    tell_if_no_password(settings)
    assert _told(caplog) == []
