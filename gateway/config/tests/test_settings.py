"""The settings' own rules: safe defaults, nothing exposed by accident, every figure explained."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel, ValidationError

from gateway.config.load import SettingsError, keys, load_settings
from gateway.config.networks import LOOPBACK_NETWORKS, parse_network
from gateway.config.settings import Settings


def sections(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    yield model
    for field in model.model_fields.values():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from sections(kind)


def test_every_setting_gives_a_reason() -> None:
    silent = [
        f"{model.__name__}.{name}"
        for model in sections(Settings)
        for name, field in model.model_fields.items()
        if not field.description
        and not (isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel))
    ]
    assert silent == []


def test_every_section_says_what_it_is_for() -> None:
    assert [model.__name__ for model in sections(Settings) if not model.__doc__] == []


def test_the_defaults_expose_nothing_and_ask_for_no_token() -> None:
    settings = Settings()
    assert settings.is_loopback
    assert not settings.auth_required
    assert settings.outbound_networks == LOOPBACK_NETWORKS
    assert settings.journal.sync


def test_a_bind_beyond_this_machine_needs_tokens_and_tls_or_a_proxy() -> None:
    open_bind = {"http": {"bind": "0.0.0.0:8080"}}
    with pytest.raises(ValidationError, match="no TLS"):
        Settings.model_validate(open_bind)
    proxied = Settings.model_validate({**open_bind, "auth": {"behind_tls_proxy": True}})
    assert proxied.auth_required
    assert proxied.outbound_networks == ()


def test_auth_cannot_be_off_beyond_this_machine() -> None:
    with pytest.raises(ValidationError, match="bind to 127.0.0.1 or require tokens"):
        Settings.model_validate(
            {
                "grpc": {"bind": "0.0.0.0:8081"},
                "auth": {"mode": "off", "behind_tls_proxy": True},
            }
        )


def test_tokens_can_be_required_on_loopback_too() -> None:
    assert Settings.model_validate({"auth": {"mode": "required"}}).auth_required


def test_an_allow_list_replaces_the_default() -> None:
    settings = Settings.model_validate({"outbound": {"allow": ["10.0.0.0/8"]}})
    assert settings.outbound_networks == (parse_network("10.0.0.0/8"),)


def test_settings_do_not_change_once_built() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        setattr(Settings(), "node_id", 3)  # noqa: B010  mypy refuses the plain way already


def test_every_setting_is_read_by_somebody() -> None:
    gateway = Path(__file__).parents[2]
    modules = (path for path in gateway.rglob("*.py") if "tests" not in path.parts)
    read = {
        node.attr
        for module in modules
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
    }
    assert [key for key in keys() if key.rpartition(".")[2] not in read] == []


@pytest.mark.parametrize(
    "url",
    [
        *("nonsense", "", "ftp://x", "http://", "http:///v1/traces", "http://h:99999/v1"),
        *("http://h:0", "http://h:x", "http://h /v1", "http://[::1/v1"),
    ],
)
def test_an_address_that_nobody_can_be_asked_at_is_told_at_the_start(url: str) -> None:
    with pytest.raises(ValidationError, match="write http"):
        Settings.model_validate({"tracing": {"endpoint": url}})
    if url:
        with pytest.raises(ValidationError, match="write http"):
            Settings.model_validate({"records": {"url": url}})


@pytest.mark.parametrize("url", ["http://h", "https://u:p%40@h:8443/x?y=z", "http://[::1]:4318/v1"])
def test_an_address_that_can_be_asked_stays_as_it_was_written(url: str) -> None:
    given = {"tracing": {"endpoint": url}, "records": {"url": url}}
    settings = Settings.model_validate(given)
    assert (settings.tracing.endpoint, settings.records.url) == (url, url)


@pytest.mark.parametrize("given", [{"a b": "x"}, {"": "x"}, {"a:": "x"}, {"a": "x\ny"}])
def test_a_header_that_cannot_be_sent_is_told_at_the_start_without_its_value(
    given: dict[str, str],
) -> None:
    with pytest.raises(SettingsError) as told:
        load_settings(environ={}, flags={"tracing.headers": given})
    assert "tracing.headers" in str(told.value)
    assert "x" not in str(told.value).replace("tracing.headers", "")
    load_settings(environ={}, flags={"tracing.headers": {"x-token": "a b, c"}})


@pytest.mark.parametrize(
    "url",
    [
        *("memory://x", "simplecache::memory://x", "data/store", "data/records/archive"),
        *("data/trajectories", "data/archive/../archive-work/x", "file://data/rewards"),
    ],
)
def test_an_archive_that_would_lose_its_files_is_refused(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that left for memory were gone with the pass; those in `records` with the advice that
    it can be deleted."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValidationError, match=r"archive\.url"):
        Settings.model_validate({"data_dir": "data", "archive": {"url": url}})


@pytest.mark.parametrize("url", ["", "data/archive", "data/stored", "s3://records/store", "/attic"])
def test_an_archive_of_its_own_is_taken(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = Settings.model_validate({"data_dir": "data", "archive": {"url": url}})
    assert settings.archive.url == url


def test_a_text_of_another_form_is_answered_with_words_and_no_pattern() -> None:
    with pytest.raises(SettingsError) as told:
        load_settings(environ={}, flags={"tracing.url_template": "http://x/{trace}"})
    assert "with {trace_id} in it" in str(told.value)
    assert "pattern" not in str(told.value)
