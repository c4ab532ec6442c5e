"""The house itself: its targets print themselves, its pins pin, its packages are what is built."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import tidy

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
TARGETS = ["help", "setup", "demo", "serve", "fmt", "check", "gen", "test", "test-long", "bench"]
"""What everybody is told to type; others (benches, simulations) come and go."""
OTHER_ENGINES = "benchmarks/peers/"
"""What is measured beside us runs in an environment of its own, with libraries of its own."""
PACKAGES = [
    "acp_spec",
    "gateway",
    "adapters",
    "reference_components",
    "trainer",
    "conformance_tests",
]


def names(requirements: list[str]) -> set[str]:
    return {
        re.split(r"[<>=\[; ]", one, maxsplit=1)[0].lower().replace("_", "-") for one in requirements
    }


def test_make_help_prints_every_target(needs: Callable[[str], Path]) -> None:
    printed = subprocess.run(
        [needs("make"), "-s", "help"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    shown = re.findall(r"^  make (\S+)", printed, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert shown == re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)
    assert set(TARGETS) <= set(shown)
    phony = " ".join(re.findall(r"^\.PHONY:(.*)", makefile, re.MULTILINE)).split()
    assert set(shown) <= set(phony), "a file of that name would stop the target"


def test_no_file_that_a_run_left_is_kept() -> None:
    """Every kept file is text. A component that a test ran in the sources left its database."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True)
    kept = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    assert [str(one) for one in kept if one.is_file() and b"\0" in one.read_bytes()] == []


def test_every_dependency_is_pinned_by_version_alone() -> None:
    pins = [
        line
        for line in (ROOT / "constraints/python.txt").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    assert [
        pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==([0-9]+!)?[A-Za-z0-9.]+", pin)
    ] == []
    project = PROJECT["project"]
    wanted = names(project["dependencies"]) | names(project["optional-dependencies"]["dev"])
    assert wanted - names(pins) == set()


def test_the_pins_and_what_is_wanted_fit_together() -> None:
    """A clean checkout must set itself up. An extra of a library (`moto[server]`) had a bound that
    a pin broke, and whoever had set up before did not notice: pip looks only at what is new."""
    resolving = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "-q"]
    pinned = ["-c", "constraints/python.txt", "--no-build-isolation", "-e", ".[dev]"]
    done = subprocess.run(
        resolving + pinned,
        cwd=ROOT,
        env=os.environ | {"PIP_CONFIG_FILE": os.devnull},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"remove .venv and run `make setup`:\n{done.stderr}"


def test_the_six_packages_are_built_checked_and_under_the_import_law() -> None:
    tool = PROJECT["tool"]
    assert tool["hatch"]["build"]["targets"]["wheel"]["packages"] == PACKAGES
    assert tool["importlinter"]["root_packages"] == PACKAGES
    assert set(PACKAGES) <= set(tool["mypy"]["files"])
    assert set(PACKAGES) <= set(tool["pytest"]["ini_options"]["testpaths"])


def test_ci_can_be_started() -> None:
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_the_law_has_its_nine_contracts() -> None:
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    assert [contract["name"].split()[0] for contract in contracts] == list("123456789")


def test_every_library_that_is_imported_is_declared() -> None:
    distributions = importlib.metadata.packages_distributions()
    project = PROJECT["project"]
    core = names(project["dependencies"])
    dev = core | names(project["optional-dependencies"]["dev"])
    beside = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}  # no package: by name
    ours = {*sys.stdlib_module_names, *PACKAGES, *beside, "tidy", "conftest"}
    undeclared = {
        f"{source.path}: {top}"
        for source in tidy.read_tree(ROOT)
        if not source.path.startswith(OTHER_ENGINES)
        for _, name in tidy.imports_of(source)
        if (top := name.partition(".")[0]) not in ours
        and not names(distributions.get(top, []))
        & (dev if is_for_developers(source) else core | extras_of(source))
    }
    assert undeclared == set()


def extras_of(source: tidy.Source) -> set[str]:
    """What this file may import beyond what everybody installs."""
    optional = PROJECT["project"]["optional-dependencies"]
    found = (optional[extra] for place, extra in EXTRAS.items() if source.path.startswith(place))
    return {name for one in found for name in names(one)}


EXTRAS = {
    "gateway/insight/": "insight",
    "gateway/cli/insight_windows.py": "insight",
    "gateway/stores/archive/": "records",
    "gateway/stores/records/": "records",
}
"""Places that need an extra, told apart so that nothing else comes to."""


def is_for_developers(source: tidy.Source) -> bool:
    return source.is_test or source.path.startswith(
        ("acp_spec/codec/generate/", "benchmarks/", "tests/")
    )
