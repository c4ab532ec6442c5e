"""Finding, building, starting, watching and stopping, with the fast COBOL and Go component."""

import shutil
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from acp_spec.model.enums import Transport
from reference_components.build import Builder, BuildError, default_build_dir, fill
from reference_components.launcher import Launcher, LaunchError, Running
from reference_components.recipe import ComponentSpec, RecipeError, read_recipe, recipes


def spec_of(**changes: object) -> ComponentSpec:
    fields: dict[str, object] = {
        "name": "probe",
        "folder": "hotline",
        "language": "none",
        "transport": Transport.HTTP,
        "needs": (),
        "sources": (),
        "build": (("cp", "customers.json", "built"),),
        "build_env": {},
        "run": ("true",),
        "env": {},
        "ready": "",
    }
    return ComponentSpec(**{**fields, **changes})  # type: ignore[arg-type]  # names checked by use


def test_every_recipe_can_be_read_and_names_are_unique() -> None:
    names = [spec.name for spec in recipes()]
    assert {"cards", "ledger", "rates"} <= set(names)
    assert len(set(names)) == len(names)


def test_a_recipe_that_lacks_a_field_says_which(tmp_path: Path) -> None:
    (tmp_path / "component.toml").write_text('name = "x"\n')
    with pytest.raises(RecipeError, match="language"):
        read_recipe(tmp_path)


def test_placeholders_are_filled_and_other_braces_stay() -> None:
    assert fill('{build}/x {"a": 1}', {"build": "/b"}) == '/b/x {"a": 1}'


def test_a_missing_tool_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    launcher = Launcher()
    assert "ledger" not in {spec.name for spec in launcher.available()}
    lacks = {(lack.name, lack.tool, lack.package) for lack in launcher.missing()}
    assert {("ledger", "cobc", "gnucobol"), ("ledger", "go", "golang-go")} <= lacks
    with pytest.raises(LaunchError, match="apt-get install gnucobol"):
        launcher.start("ledger")


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(LaunchError, match="cards"):
        Launcher().start("cradle")


def test_a_build_is_made_once_and_again_when_the_sources_change(tmp_path: Path) -> None:
    builder = Builder(tmp_path)
    spec = spec_of()
    assert not builder.is_built(spec)
    place = builder.build(spec)
    assert builder.is_built(spec)
    (place / "built").write_text("touched")
    assert builder.build(spec) == place
    assert (place / "built").read_text() == "touched"
    assert builder.build(spec_of(sources=("ledger",))) != place


def test_only_the_last_build_and_the_one_before_are_kept(tmp_path: Path) -> None:
    builder = Builder(tmp_path)
    for sources in ((), ("ledger",), ("cards",), ("rates",)):
        builder.build(spec_of(sources=sources))
    assert len(list(tmp_path.glob("probe-*"))) == 2


def test_a_build_that_fails_quotes_the_tool_and_leaves_nothing(tmp_path: Path) -> None:
    builder = Builder(tmp_path)
    spec = spec_of(build=(("cp", "nowhere.txt", "built"),))
    with pytest.raises(BuildError, match=r"nowhere\.txt"):
        builder.build(spec)
    assert not builder.is_built(spec)
    assert not list(tmp_path.glob("probe-*"))
    assert not list(tmp_path.glob("probe.*/"))


def test_a_build_reaches_files_of_another_package(tmp_path: Path) -> None:
    place = Builder(tmp_path).build(spec_of(sources=("acp_spec:proto/v1/acp.proto",)))
    assert "package acp.v1;" in (place / "acp.proto").read_text()


def test_an_installed_package_is_built_in_the_users_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert default_build_dir().name == ".build"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("reference_components.build.files", lambda _: tmp_path / "site-packages")
    assert default_build_dir() == tmp_path / "acp-reference-components"


def test_leaving_the_context_ends_every_process(
    tmp_path: Path, needs: Callable[[str], Path]
) -> None:
    needs("cobc")
    needs("go")
    with Launcher(log_dir=tmp_path) as launcher:
        one = launcher.start("ledger", instance="1")
        two = launcher.start("ledger", instance="2")
        assert [one.is_alive, two.is_alive] == [True, True]
        assert one.pid != two.pid
    assert [one.is_alive, two.is_alive] == [False, False]
    with pytest.raises(httpx.ConnectError):
        httpx.get(one.url)
    assert {path.name for path in (tmp_path / "state").iterdir()} == {"ledger-1", "ledger-2"}


def test_a_component_that_dies_at_start_is_reported_with_its_last_words(
    launcher: Launcher, start: Callable[..., Running]
) -> None:
    start("ledger").stop()
    with pytest.raises(LaunchError, match="the ledger does not start"):
        launcher.start("ledger", env={"LEDGERMST": "/nowhere"})  # after 5 s of trying


def test_stopping_twice_is_harmless(start: Callable[..., Running]) -> None:
    running = start("ledger")
    assert running.stop() == running.stop()


def test_what_is_built_still_runs_when_path_lost_the_compilers(
    launcher: Launcher, start: Callable[..., Running]
) -> None:
    start("ledger").stop()
    place = launcher.build("ledger")
    assert shutil.which(str(place / "ledger-adapter")) is not None
