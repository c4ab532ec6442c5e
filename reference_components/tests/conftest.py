"""A launcher per test: builds are shared between tests and runs, logs and state are the test's."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from reference_components.launcher import Launcher, Running

Needs = Callable[[str], Path]
Start = Callable[..., Running]


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[Launcher]:
    with Launcher(log_dir=tmp_path / "logs") as started:
        yield started


@pytest.fixture
def start(launcher: Launcher, needs: Needs) -> Start:
    """`start(name, ...)` is `Launcher.start`, after asking for the tools the component needs."""

    def start_component(
        name: str, *, instance: str = "", env: Mapping[str, str] | None = None
    ) -> Running:
        for tool in launcher.spec(name).needs:
            needs(tool.command)
        return launcher.start(name, instance=instance, env=env)

    return start_component
