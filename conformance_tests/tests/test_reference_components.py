"""Every reference component speaks ACP over every binding it has."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from conformance_tests.report import to_text
from conformance_tests.runner.known_failing import apply, read_list
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
