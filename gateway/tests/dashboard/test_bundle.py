"""What is served is what the sources make: built again elsewhere, byte by byte the same."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.transports import dashboard_files

FOLDER = Path(dashboard_files.__file__).parent / "dashboard"


@pytest.fixture(scope="module")
def source(needs: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources elsewhere, with the kit that their lock names."""
    copied = tmp_path_factory.mktemp("pages") / "source"
    shutil.copytree(FOLDER / "source", copied, ignore=shutil.ignore_patterns("node_modules"))
    run(copied, needs("npm"), "ci", "--no-audit", "--no-fund")
    return copied


def run(folder: Path, *command: str | Path) -> None:
    ran = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_sources_type_check_and_build_exactly_the_committed_files(
    needs: Callable[[str], Path], source: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    run(source, needs("npm"), "run", "--silent", "check")
    run(source, needs("node"), "build.mjs", out)
    built = {one.name: one.read_bytes() for one in out.iterdir()}
    kept = {one.name: one.read_bytes() for one in (FOLDER / "static").iterdir()}
    assert built.keys() == kept.keys()
    assert [name for name in kept if built[name] != kept[name]] == [], "run `make pages`"


def test_what_is_pure_in_the_sources_passes_tests_of_its_own(
    needs: Callable[[str], Path], source: Path
) -> None:
    run(source, needs("npm"), "run", "--silent", "test")


def test_the_lock_names_no_host_and_the_kit_is_pinned() -> None:
    lock = (FOLDER / "source/package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
    assert "ignore-scripts=true" in (FOLDER / "source/.npmrc").read_text(encoding="utf-8")
