"""One reader's browser window on the dashboard: what is clicked, seen, asked for and complained of.

`Look` opens pages by their hash and keeps what must never happen: a request to anybody but the
gateway, a script's failure, a word on the console, a breach of the page's policy. `check` fails on
any of them; the fixture calls it after every test. Waiting is for conditions, never for time.
"""

from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Literal, Self
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request, expect

Scheme = Literal["light", "dark"]
SCHEMES: Final[tuple[Scheme, ...]] = ("light", "dark")
# A shared machine with two cores may be slow; whatever is waited for usually takes milliseconds.
PATIENCE_MS: Final = 30_000
expect.set_options(timeout=PATIENCE_MS)
_BREACHES: Final = """
window.breaches = [];
document.addEventListener("securitypolicyviolation", (breach) => {
  window.breaches.push(`${breach.violatedDirective} ${breach.blockedURI} ${breach.sample}`);
});
"""
# Chromium itself says so of every answer that is no success; tests say which they expect.
_NOT_SUCCESSFUL: Final = "Failed to load resource: the server responded with a status of "


@dataclass  # without slots: playwright keeps a wrapper on whoever listens
class Look:
    """`with Look(browser, url) as look: look.at("#/sessions"); look.sees("Sessions")`."""

    browser: Browser
    url: str
    token: str = ""
    scheme: Scheme = "light"
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    refusals: set[int] = field(default_factory=lambda: {503})  # records may still be starting
    page: Page = field(init=False)

    def __enter__(self) -> Self:
        context = self.browser.new_context(
            color_scheme=self.scheme, viewport={"width": 1280, "height": 900}, timezone_id="UTC"
        )
        context.set_default_timeout(PATIENCE_MS)
        context.add_init_script(_BREACHES)
        if self.token:
            context.add_init_script(f"sessionStorage.setItem('acp.token', '{self.token}')")
        self.page = context.new_page()
        self.page.on("request", self._asked)
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda problem: self.complaints.append(str(problem)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.page.context.close()

    # ---- going and seeing ------------------------------------------------------------------

    def at(self, place: str, heading: str = "") -> Page:
        """Open a page by its hash; with `heading`, wait until it is the one."""
        self.page.goto(f"{self.url}/dashboard{place}")
        if heading:
            self.is_at(heading)
        return self.page

    def is_at(self, heading: str) -> None:
        """The page has this heading."""
        expect(self.page.get_by_role("heading", level=1)).to_have_text(heading, timeout=PATIENCE_MS)

    def sees(self, text: str) -> Locator:
        """Somewhere on the page stands this text."""
        found = self.page.get_by_text(text).first
        expect(found).to_be_visible()
        return found

    def follows(self, link: str) -> None:
        """Click the link of exactly this name."""
        self.page.get_by_role("link", name=link, exact=True).first.click()

    # ---- judging ---------------------------------------------------------------------------

    def check(self) -> None:
        """Fail on whatever no page may do."""
        own = urlsplit(self.url).netloc
        foreign = [one for one in self.requests if urlsplit(one).netloc != own]
        assert not foreign, f"asked somebody else: {foreign}"
        breaches = self.page.evaluate("window.breaches")
        assert breaches == [], f"broke the page's policy: {breaches}"
        assert not self.complaints, f"complained: {self.complaints}"

    def accessible(self) -> None:
        """Axe finds nothing on the page as it now is."""
        found = Axe().run(self.page)
        assert found.violations_count == 0, found.generate_report()

    def _asked(self, request: Request) -> None:
        self.requests.append(request.url)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning"):
            return
        status = message.text.removeprefix(_NOT_SUCCESSFUL)[:3]
        if message.text.startswith(_NOT_SUCCESSFUL) and int(status) in self.refusals:
            return
        self.complaints.append(f"{message.type}: {message.text}")
