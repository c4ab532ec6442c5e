"""Every reference component speaks ACP over every binding it has, attach included."""

import asyncio
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from conformance_tests.report import to_text
from conformance_tests.runner.component_suite import Options
from conformance_tests.runner.dialling import started_by
from conformance_tests.runner.known_failing import apply, read_list
from conformance_tests.runner.requirements import Party
from conformance_tests.runner.suite import options_of, run_suite
from conformance_tests.tests.conftest import Start

# component -> what must be installed to build and run it
TOOLS = {
    "echo": (),
    "counter": (),
    "slow": (),
    "flaky": (),
    "scratchpad": (),
    "hotline-planner": (),
    "hotline-memory": (),
    "hotline-reflector": (),
    "ledger": ("cobc", "go"),
    "cards": ("java", "javac"),
    "rates": ("node", "npm"),
}


@pytest.mark.parametrize("name", TOOLS)
def test_it_is_conformant_over_every_binding(
    name: str, start_component: Start, needs: Callable[[str], Path]
) -> None:
    for tool in TOOLS[name]:
        needs(tool)
    kind = "component" if TOOLS[name] else "sdk"
    run = asyncio.run(run_suite(options_of(start_component(name), kind)))
    listed = (files("conformance_tests") / "known_failing.txt").read_text(encoding="utf-8")
    known = [
        replace(one, pattern=one.pattern.partition(":")[2])
        for one in read_list(listed)
        if one.pattern.startswith(f"{name}:")
    ]
    results, problems = apply(known, run.results)
    run = replace(run, results=tuple(results), problems=(*run.problems, *problems))
    assert not run.failed, to_text(run)


# of the Python SDK: what makes the component
ATTACHED = {
    "echo": "echo.component import make; make()",
    "counter": "counter.component import make; from pathlib import Path; make(Path('FILE'))",
    "slow": "slow.component import make; make()",
    "flaky": "flaky.component import make; make()",
    "hotline-planner": "planner.component import make; make()",
    "hotline-memory": "memory.component import make; from pathlib import Path; make(Path('FILE'))",
    "hotline-reflector": "reflector.component import make; make()",
}


BUILD_RATES = """
import pathlib, sys
from reference_components.launcher import Launcher
with Launcher(log_dir=pathlib.Path(sys.argv[1])) as launcher:
    print(launcher.build("rates"))
"""


def attached(command: str, *, kind: Party) -> None:
    options = Options(targets=(), kind=kind, attach_bind="127.0.0.1:0")
    run = asyncio.run(run_suite(options, dial=started_by(command)))
    assert not run.failed, to_text(run)


def _each_attached() -> list[ParameterSet]:
    """One in every run; a run waits ten seconds for streams that drop, so the others are long."""
    return [
        pytest.param(name, marks=() if name == "echo" else pytest.mark.long) for name in ATTACHED
    ]


@pytest.mark.parametrize("name", _each_attached())
def test_it_is_conformant_when_it_attaches(name: str, tmp_path: Path) -> None:
    program = f"from reference_components.{ATTACHED[name]}.attach()"
    program = program.replace("FILE", str(tmp_path / "kept.db"))
    attached(shlex.join([sys.executable, "-c", program]), kind=Party.SDK)


def test_the_typescript_component_is_conformant_when_it_attaches(
    tmp_path: Path, needs: Callable[[str], Path]
) -> None:
    for tool in TOOLS["rates"]:
        needs(tool)
    building = [sys.executable, "-c", BUILD_RATES, str(tmp_path)]
    built = subprocess.run(building, check=True, capture_output=True, text=True).stdout
    place = Path(built.splitlines()[-1])
    environ = {
        "ACP_PROTO": place / "proto" / "v1" / "acp.proto",
        "RATES_CARD": place / "card.json",
        "RATES_TABLE": place / "rates.json",
    }
    stated = [f"{name}={path}" for name, path in environ.items()]
    attached(shlex.join(["env", *stated, "node", f"{place}/dist/main.js"]), kind=Party.COMPONENT)
