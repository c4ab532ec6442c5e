"""Credentials stand outside the settings and never show in a message."""

from pathlib import Path

import pytest

from gateway.config.credentials import (
    CredentialRef,
    CredentialSource,
    CredentialUnavailable,
    parse_credential,
    resolve_credential,
)


def test_a_credential_is_read_from_the_environment_when_used() -> None:
    ref = parse_credential("env:BANK_TOKEN")
    assert ref == CredentialRef(CredentialSource.ENV, "BANK_TOKEN")
    assert resolve_credential(ref, environ={"BANK_TOKEN": "s3cret"}) == "s3cret"


def test_a_credential_is_read_from_a_file_without_its_newline(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n", encoding="utf-8")
    ref = parse_credential(f"file:{tmp_path / 'token'}")
    assert resolve_credential(ref, environ={}) == "s3cret"


def test_a_literal_secret_is_refused_and_not_echoed() -> None:
    with pytest.raises(ValueError, match="env:NAME or file:PATH") as caught:
        parse_credential("hunter2")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("text", ["env:MISSING", "file:/nonexistent/token"])
def test_a_missing_credential_says_where_to_put_it(text: str) -> None:
    with pytest.raises(CredentialUnavailable, match=r"MISSING|/nonexistent/token"):
        resolve_credential(parse_credential(text), environ={})
