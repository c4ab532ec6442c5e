"""What is served is what the sources make: built again elsewhere, byte by byte the same."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from gateway.transports import dashboard_files

FOLDER = Path(dashboard_files.__file__).parent / "dashboard"


def test_the_sources_type_check_and_build_exactly_the_committed_files(
    needs: Callable[[str], Path], tmp_path: Path
) -> None:
    npm, node, source, out = needs("npm"), needs("node"), tmp_path / "source", tmp_path / "out"
    shutil.copytree(FOLDER / "source", source, ignore=shutil.ignore_patterns("node_modules"))
    commands: list[list[str | Path]] = [
        [npm, "ci", "--no-audit", "--no-fund"],
        [npm, "run", "--silent", "check"],
        [node, "build.mjs", out],
    ]
    for command in commands:
        ran = subprocess.run(command, cwd=source, check=False, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    built = {one.name: one.read_bytes() for one in out.iterdir()}
    kept = {one.name: one.read_bytes() for one in (FOLDER / "static").iterdir()}
    assert built.keys() == kept.keys()
    assert [name for name in kept if built[name] != kept[name]] == [], "run `make pages`"


def test_the_lock_names_no_host_and_the_kit_is_pinned() -> None:
    lock = (FOLDER / "source/package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
    assert "ignore-scripts=true" in (FOLDER / "source/.npmrc").read_text(encoding="utf-8")
