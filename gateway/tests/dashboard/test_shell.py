"""The frame of every page: it comes up, says what is wrong, follows its address."""

import pytest
from playwright.sync_api import expect

from gateway.tests.dashboard.conftest import Looking
from gateway.tests.dashboard.looking import SCHEMES, Look, Scheme


def test_the_dashboard_comes_up_and_loads_nothing_but_its_own_files(look: Look) -> None:
    look.refusals.add(404)
    look.at("", "Overview")
    files = {one.removeprefix(look.url) for one in look.requests if "/v1/" not in one}
    assert files <= {f"/dashboard{name}" for name in ("", "/app.js", "/app.css", "/icon.svg")}
    expect(look.page).to_have_title("Overview · ACP gateway")
    link = look.page.get_by_role("navigation").get_by_role("link", name="Overview")
    expect(link).to_have_attribute("aria-current", "page")


def test_an_address_without_a_page_says_so_and_leads_back(look: Look) -> None:
    look.refusals.add(404)
    look.at("#/nowhere/at%20all", "No such page")
    look.sees("There is no page here")
    look.follows("overview")
    look.is_at("Overview")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_theme_follows_the_system_until_somebody_chooses(
    looking: Looking, scheme: Scheme
) -> None:
    look = looking(scheme=scheme)
    look.at("#/nowhere", "No such page")
    shown = "getComputedStyle(document.documentElement).backgroundColor"
    by_system = look.page.evaluate(shown)
    other = "light" if scheme == "dark" else "dark"
    look.page.get_by_label("Colours").select_option(other)
    chosen = look.page.evaluate(shown)
    assert chosen != by_system
    look.page.reload()
    look.is_at("No such page")
    assert look.page.evaluate(shown) == chosen
    look.page.get_by_label("Colours").select_option("auto")
    assert look.page.evaluate(shown) == by_system


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_frame_is_accessible(looking: Looking, scheme: Scheme) -> None:
    look = looking(scheme=scheme)
    look.at("#/nowhere", "No such page")
    look.accessible()


def test_a_keyboard_reaches_the_content_and_the_heading_takes_the_focus_of_a_new_page(
    look: Look,
) -> None:
    look.refusals.add(404)
    look.at("#/nowhere", "No such page")
    look.page.keyboard.press("Tab")
    expect(look.page.get_by_role("link", name="Skip to the content")).to_be_focused()
    look.page.keyboard.press("Enter")
    expect(look.page.get_by_role("heading", level=1)).to_be_focused()
    look.page.keyboard.press("Tab")
    expect(look.page.get_by_role("link", name="overview", exact=True)).to_be_focused()
    look.page.keyboard.press("Enter")
    look.is_at("Overview")
    expect(look.page.get_by_role("heading", level=1)).to_be_focused()
