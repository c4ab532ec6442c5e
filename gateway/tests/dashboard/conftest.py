"""One browser and one gateway per module; every window is checked when its test has ended."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from gateway.tests.dashboard.looking import Look, Scheme
from gateway.tests.e2e.conftest import client, served, start_components, stranger
from gateway.tests.served import Served

__all__ = ["client", "served", "start_components", "stranger"]
Looking = Callable[..., Look]


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
