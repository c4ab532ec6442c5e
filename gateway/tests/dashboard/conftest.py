"""One browser, one gateway and one town per module; windows are checked when their test ended."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from gateway.tests.dashboard.looking import Look, Scheme
from gateway.tests.dashboard.town import ENVIRON, Town, lived, settled
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.conftest import Started, client, start_components, stranger
from gateway.tests.served import Served, serve_gateway

__all__ = ["client", "start_components", "stranger"]
Looking = Callable[..., Look]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One gateway that takes payloads of several megabytes."""
    folder = tmp_path_factory.mktemp("gateway")
    gateway = serve_gateway(data_dir=folder / "data", log_file=folder / "log", environ=ENVIRON)
    yield gateway
    gateway.stop()


@pytest.fixture(scope="module")
def town(client: Client, start_components: Callable[..., Started]) -> Iterator[Town]:
    """Sessions of every kind, all of them in the records."""
    with settled(client, start_components) as one:
        yield lived(one)


@pytest.fixture(scope="module")
def browser(needs: Callable[[str], Path]) -> Iterator[Browser]:
    """Debian's Chromium; without its sandbox, which a container's root cannot have."""
    chromium = needs("chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=str(chromium), args=["--no-sandbox", "--disable-gpu"]
        )
        yield started
        started.close()


@pytest.fixture
def looking(browser: Browser, served: Served) -> Iterator[Looking]:
    """`looking()` opens a window on the module's gateway; `url`, `token`, `scheme` as needed."""
    with ExitStack() as stack:
        opened: list[Look] = []

        def look(*, url: str = "", token: str = "", scheme: Scheme = "light") -> Look:
            one = stack.enter_context(Look(browser, url or served.url, token, scheme))
            opened.append(one)
            return one

        yield look
        for one in opened:
            one.check()


@pytest.fixture
def look(looking: Looking) -> Look:
    """One window, light, without a token."""
    return looking()
