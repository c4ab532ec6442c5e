"""Commands on a data directory: tokens before the first start, and replaying a journal."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from acp_spec.model.enums import Mode
from acp_spec.model.errors import AcpFailure
from gateway.cli.offline import offline_tokens, opened, replayed
from gateway.engine.events import Opened
from gateway.runtime.tokens import TokenRequest
from gateway.stores.event_codec import Sealer
from gateway.stores.ports import Table
from gateway.stores.tables import session_row

SESSION = "01M8M0B2BS0003F93212J7KZTE"


def test_the_first_token_is_made_on_the_directory_and_found_there_again(
    root: typer.Typer, tmp_path: Path
) -> None:
    place = ["--data-dir", str(tmp_path), "--json"]
    made = CliRunner().invoke(root, ["tokens", "create", "--scope", "admin", *place])
    created = json.loads(made.stdout)
    listed = CliRunner().invoke(root, ["tokens", "list", *place])
    assert json.loads(listed.stdout) == created["info"]
    token_id = created["info"]["token_id"]
    assert CliRunner().invoke(root, ["tokens", "revoke", token_id, *place]).exit_code == 0
    again = CliRunner().invoke(root, ["tokens", "revoke", token_id, *place])
    assert again.exit_code == 3


def test_a_directory_in_use_is_refused_for_writing(tmp_path: Path) -> None:
    with (
        opened(tmp_path),
        pytest.raises(AcpFailure, match="a gateway runs"),
        offline_tokens(tmp_path) as tokens,
    ):
        tokens.create_token(TokenRequest(scopes=("admin",)))


def test_a_directory_in_use_can_be_read_as_it_is_now(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        batch = store.batch()
        batch.put(Table.META, b"a", b"1")
        store.write(batch)
        with opened(tmp_path, read_only=True) as reader:
            assert reader.get(Table.META, b"a") == b"1"


def test_replaying_needs_a_store_and_a_session_in_it(tmp_path: Path) -> None:
    with pytest.raises(AcpFailure, match="is the data directory right"):
        replayed(tmp_path / "nowhere", SESSION)
    assert not (tmp_path / "nowhere").exists()
    with opened(tmp_path):
        pass
    with pytest.raises(AcpFailure, match="no journal"):
        replayed(tmp_path, SESSION)


def test_a_session_that_has_not_ended_is_explained_so_far_and_nothing_is_called_proven(
    root: typer.Typer, tmp_path: Path
) -> None:
    opening = Opened(at_ms=1, session_id=SESSION, lineage_id=f"{SESSION}.0", mode=Mode.MANUAL)
    with opened(tmp_path) as store:
        sealer, batch = Sealer(store), store.batch()
        batch.put(Table.KEY, session_row(SESSION), sealer.new_key(SESSION))
        batch.put(Table.JOURNAL, *sealer.encode_record(SESSION, 1, events=(opening,)))
        store.write(batch)
    told = CliRunner().invoke(root, ["sessions", "replay", SESSION, "--data-dir", str(tmp_path)])
    assert told.exit_code == 0
    assert "explained, the commands are proven only at the end" in told.stdout
    as_json = ["sessions", "replay", SESSION, "--data-dir", str(tmp_path), "--json"]
    assert json.loads(CliRunner().invoke(root, as_json).stdout)["proven"] is False
