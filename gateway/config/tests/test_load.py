"""Where settings come from, who wins, and what an error says."""

import json
from pathlib import Path

import pytest

from gateway.config.load import (
    DEFAULT_SOURCE,
    SettingsError,
    as_dict,
    keys,
    load_settings,
    variable_of,
)


def problems_of(environ: dict[str, str], flags: dict[str, object] | None = None) -> str:
    with pytest.raises(SettingsError) as caught:
        load_settings(environ=environ, flags=flags)
    return str(caught.value)


def test_flags_win_over_environment_over_file_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "acp.toml"
    file.write_text("[retry]\nsession_budget = 9\nbackoff_base_ms = 50\nbackoff_max_ms = 700\n")
    loaded = load_settings(
        file=file,
        environ={"ACP_RETRY_SESSION_BUDGET": "10", "ACP_RETRY_BACKOFF_BASE_MS": "60"},
        flags={"retry.session_budget": 11, "node_id": None},
    )
    retry = loaded.settings.retry
    assert (retry.session_budget, retry.backoff_base_ms, retry.backoff_max_ms) == (11, 60, 700)
    assert loaded.settings.node_id == 0
    assert loaded.source_of("retry.session_budget") == "--retry-session-budget"
    assert loaded.source_of("retry.backoff_base_ms") == "ACP_RETRY_BACKOFF_BASE_MS"
    assert loaded.source_of("retry.backoff_max_ms") == str(file)
    assert loaded.source_of("node_id") == DEFAULT_SOURCE


@pytest.mark.parametrize("name", ["acp.yaml", "acp.toml"])
def test_both_file_formats_are_read_and_may_be_named_by_the_environment(
    tmp_path: Path, name: str
) -> None:
    text = {
        "acp.yaml": "limits: {queues: {tool: {concurrency: 7}}}\n",
        "acp.toml": "[limits.queues.tool]\nconcurrency = 7\n",
    }[name]
    (tmp_path / name).write_text(text)
    loaded = load_settings(environ={"ACP_CONFIG": str(tmp_path / name)})
    assert loaded.settings.limits.queues.tool.concurrency == 7
    assert loaded.settings.limits.queues.tool.max_queued == 16_384


def test_an_empty_file_is_all_defaults(tmp_path: Path) -> None:
    (tmp_path / "acp.yaml").write_text("")
    assert load_settings(environ={}, file=tmp_path / "acp.yaml").sources == {}


def test_lists_in_the_environment_are_written_with_commas() -> None:
    loaded = load_settings(
        environ={"ACP_OUTBOUND_ALLOW": "10.0.0.0/8, ::1", "ACP_HTTP_ALLOWED_HOSTS": "a.example"}
    )
    assert [str(network) for network in loaded.settings.outbound_networks] == [
        "10.0.0.0/8",
        "::1/128",
    ]
    assert loaded.settings.http.allowed_hosts == ("a.example",)


def test_tables_in_the_environment_are_written_as_json() -> None:
    loaded = load_settings(environ={"ACP_OUTBOUND_CREDENTIALS": '{"bank": "env:BANK_TOKEN"}'})
    assert str(loaded.settings.outbound.credentials["bank"]) == "env:BANK_TOKEN"
    assert "outbound.credentials" in problems_of({"ACP_OUTBOUND_CREDENTIALS": "nonsense"})


def test_an_empty_variable_counts_as_not_set() -> None:
    assert load_settings(environ={"ACP_LOG_LEVEL": ""}).sources == {}


def test_variables_of_others_are_left_alone() -> None:
    assert load_settings(environ={"ACP_DATA": "x", "ACP_ANYTHING": "y"}).sources == {}


def test_an_unknown_key_is_an_error_that_suggests_the_near_one() -> None:
    assert problems_of({"ACP_JOURNAL_SINK": "1"}) == (
        "journal.sink (from ACP_JOURNAL_SINK): is no setting; did you mean journal.sync?"
    )


def test_a_section_given_a_plain_value_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "acp.yaml").write_text("journal: true\n")
    with pytest.raises(SettingsError, match="is a section"):
        load_settings(environ={}, file=tmp_path / "acp.yaml")


@pytest.mark.parametrize("text", ["a: [", "- 1\n", "\x00"])
def test_a_broken_file_is_an_error_that_names_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "acp.yaml").write_text(text)
    with pytest.raises(SettingsError, match="acp.yaml"):
        load_settings(environ={}, file=tmp_path / "acp.yaml")


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="none.toml"):
        load_settings(environ={}, file=tmp_path / "none.toml")


def test_all_problems_are_told_at_once_with_key_and_source() -> None:
    told = problems_of(
        {"ACP_JOURNAL_SYNC": "perhaps", "ACP_NODE_ID": "70000"}, {"http.bind": "nowhere"}
    )
    assert "journal.sync (from ACP_JOURNAL_SYNC): " in told
    assert "node_id (from ACP_NODE_ID): " in told
    assert "http.bind (from --http): " in told


def test_an_error_never_echoes_a_value_that_may_be_a_secret() -> None:
    told = problems_of({"ACP_OUTBOUND_CREDENTIALS": '{"bank": "hunter2"}'})
    assert "outbound.credentials (from ACP_OUTBOUND_CREDENTIALS): " in told
    assert "hunter2" not in told


def test_printed_settings_are_plain_json_with_secrets_masked() -> None:
    loaded = load_settings(
        environ={"ACP_TRACING_HEADERS": '{"authorization": "Bearer hunter2"}'},
        flags={"http.bind": "127.0.0.1:0"},
    )
    text = json.dumps(as_dict(loaded.settings))
    assert "hunter2" not in text
    assert '"bind": "127.0.0.1:0"' in text
    assert loaded.settings.tracing.headers["authorization"].get_secret_value() == "Bearer hunter2"


def test_no_two_settings_share_an_environment_variable() -> None:
    variables = [variable_of(key) for key in keys()]
    assert len(variables) == len(set(variables))


def test_printed_settings_can_be_loaded_again(tmp_path: Path) -> None:
    first = load_settings(environ={"ACP_OUTBOUND_ALLOW": "10.0.0.0/8"}).settings
    file = tmp_path / "acp.yaml"
    file.write_text(json.dumps(as_dict(first)))  # JSON is YAML
    assert load_settings(environ={}, file=file).settings == first
