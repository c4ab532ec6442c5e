"""A reviewer at the annotate page: by keyboard alone, sources first, over reloads and kills."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from gateway.tests.dashboard.conftest import Looking
from gateway.tests.dashboard.looking import SCHEMES, Look, Scheme
from gateway.tests.e2e.client import Client
from gateway.tests.e2e.stranger import Stranger, serving
from gateway.tests.reviewing import HONEST, INVENTED, Reviewer, teller
from gateway.tests.served import Served

MARKUP = "<img src=x onerror=window.ran=1><script>window.ran=1</script>"
HOSTILE = f"The balance is £9. {MARKUP} \u202eevil"


@pytest.fixture(scope="module")
def desk(client: Client, stranger: Callable[[Stranger], Stranger]) -> Reviewer:
    """Whoever tells and reviews on the module's gateway, which asks for no token."""
    one = Reviewer(client)
    one.register(stranger(teller()).url)
    one.put_workflow()
    return one


def _at(look: Look, session_id: str) -> Page:
    page = look.at(f"#/annotate?session={session_id}", "Annotate")
    expect(page.get_by_role("button", name="Send score")).to_be_visible()
    return page


def _claim(page: Page, number: int, text: str) -> None:
    expect(page.get_by_role("listitem", name=f"Claim {number}")).to_contain_text(text)


def test_a_whole_review_by_keyboard_alone(look: Look, desk: Reviewer) -> None:
    session_id = desk.put_up(f"{INVENTED} | {HONEST}")
    page = _at(look, session_id)
    send = page.get_by_role("button", name="Send score")
    keys = page.keyboard
    keys.press("1")
    keys.press("Control+Enter")
    expect(send).to_be_disabled()
    look.sees("4 sources are still to be opened.")
    for source, said in (("1 of 4", "1250.1"), ("2 of 4", '"GBP"')):
        keys.press("o")
        look.sees(f"{source} sources open")
        _claim(page, 1, said)
    _claim(page, 1, "The guard:")
    keys.press("j")
    expect(page.get_by_role("listitem", name="Claim 2")).to_be_focused()
    keys.press("Enter")
    look.sees("3 of 4 sources open")
    expect(send).to_be_disabled()
    keys.press("k")
    expect(page.get_by_role("listitem", name="Claim 1")).to_be_focused()
    keys.press("ArrowDown")
    keys.press("o")
    look.sees("Ready to send.")
    expect(send).to_be_enabled()
    keys.press("2")
    expect(page.get_by_role("radio", name="mostly wrong")).to_be_checked()
    keys.press("c")
    keys.type("5 and j are only letters here")
    expect(page.get_by_label("Comment")).to_have_value("5 and j are only letters here")
    expect(page.get_by_role("radio", name="mostly wrong")).to_be_checked()
    keys.press("Escape")
    keys.press("?")
    look.sees("next claim")
    keys.press("?")
    keys.press("Control+Enter")
    expect(page.get_by_role("link", name=session_id)).to_have_count(0)
    record = desk.get(f"/v1/sessions/{session_id}/trajectory").json
    (feedback,) = [row["feedback"] for row in record["feedback"]]
    assert (feedback["score"], feedback["comment"]) == (0.25, "5 and j are only letters here")
    assert feedback["sampling_probability"] == 1.0
    assert record["grounding"]["label"] == 0.25


def test_a_reload_goes_on_where_the_reviewer_was_and_says_why_it_is_this_one(
    look: Look, desk: Reviewer
) -> None:
    session_id = desk.put_up(f"{HONEST} | {INVENTED}")
    page = _at(look, session_id)
    page.get_by_role("listitem", name="Claim 1").get_by_role("button", name="Open balance").click()
    look.sees("1 of 4 sources open")
    page.keyboard.press("o")
    look.sees("2 of 4 sources open")
    look.at("#/annotate", "Annotate")
    page.reload()
    look.sees("2 of 4 sources open")
    expect(page.get_by_role("link", name=session_id).first).to_be_visible()
    expect(page.get_by_role("listitem", name="Claim 2")).to_have_attribute("aria-current", "true")
    why = page.get_by_role("region", name="Why this one")
    expect(why).to_contain_text("a claim that its sources do not carry")
    expect(why).to_contain_text("100 %")
    waiting = desk.queue()["waiting"]
    look.sees(f"{waiting} session{'' if waiting == 1 else 's'} wait")


def test_what_is_skipped_makes_room_for_the_next_one(look: Look, desk: Reviewer) -> None:
    first, second = desk.put_up(INVENTED), desk.put_up(INVENTED)
    page = _at(look, first)
    page.keyboard.press("x")
    expect(page.get_by_role("row", name=first)).to_contain_text("skipped")
    assert desk.queue()["current"] != first
    assert desk.review(second)["unopened"] == 2


def test_what_sessions_say_is_text_and_runs_nothing(look: Look, desk: Reviewer) -> None:
    session_id = desk.put_up(HOSTILE)
    page = _at(look, session_id)
    _claim(page, 1, MARKUP)
    _claim(page, 1, "⟨U+202E⟩")
    page.keyboard.press("o")
    page.keyboard.press("o")  # sooner than the first is answered: neither is lost
    _claim(page, 1, "The guard:")
    assert page.evaluate("window.ran") is None
    assert page.locator("main img, main script").count() == 0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_page_is_accessible(looking: Looking, desk: Reviewer, scheme: Scheme) -> None:
    look = looking(scheme=scheme)
    page = _at(look, desk.put_up(f"{INVENTED} | {HONEST}"))
    page.keyboard.press("o")
    look.sees("1 of 4 sources open")
    page.keyboard.press("?")
    look.sees("next claim")
    look.accessible()


@pytest.fixture
def restarted(
    serve: Callable[..., Served], tmp_path: Path
) -> Iterator[Callable[[], tuple[Served, Client]]]:
    """A gateway of this test's own on one folder; calling it again is a restart."""
    clients: list[Client] = []

    def start() -> tuple[Served, Client]:
        served = serve(data_dir=tmp_path / "data")
        clients.append(Client(served.url))
        return served, clients[-1]

    yield start
    for one in clients:
        one.__exit__(None, None, None)


def test_a_kill_of_the_gateway_loses_no_opened_source(
    restarted: Callable[[], tuple[Served, Client]], looking: Looking
) -> None:
    """Windows are closed before their gateway: fixtures end in the opposite order."""
    with serving(teller()) as component:
        served, client = restarted()
        reviewer = Reviewer(client)
        reviewer.register(component.url)
        reviewer.put_workflow()
        session_id = reviewer.put_up(INVENTED)
        look = looking(url=served.url)
        look.at("#/annotate", "Annotate")
        look.sees("0 of 2 sources open")
        look.page.keyboard.press("o")
        look.sees("1 of 2 sources open")
        look.page.goto("about:blank")
        served.kill()
        served, client = restarted()
        again = looking(url=served.url)
        again.at("#/annotate", "Annotate")
        again.sees("1 of 2 sources open")
        expect(again.page.get_by_role("link", name=session_id).first).to_be_visible()
