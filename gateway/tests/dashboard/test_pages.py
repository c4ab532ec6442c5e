"""Every page over one town of real sessions: by clicks, by keyboard, in light and dark, and live.

One file, so that the gateway, its records and the browser are started once for all of it.
"""

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from gateway.tests.dashboard.conftest import Looking
from gateway.tests.dashboard.hedged import hedged
from gateway.tests.dashboard.looking import PATIENCE_MS, SCHEMES, Look, Scheme
from gateway.tests.dashboard.town import GREETINGS, SECRET, SHOWN, Town
from gateway.tests.served import Served

# ---- the frame of every page --------------------------------------------------------------------


def test_the_dashboard_comes_up_and_loads_nothing_but_its_own_files(look: Look) -> None:
    look.at("", "Overview")
    files = {one.removeprefix(look.url) for one in look.requests if "/v1/" not in one}
    assert files <= {f"/dashboard{name}" for name in ("", "/app.js", "/app.css", "/icon.svg")}
    expect(look.page).to_have_title("Overview · ACP gateway")
    link = look.page.get_by_role("navigation").get_by_role("link", name="Overview")
    expect(link).to_have_attribute("aria-current", "page")


def test_an_address_without_a_page_says_so_and_leads_back(look: Look) -> None:
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


# ---- from the overview down to one session ------------------------------------------------------


def test_the_overview_has_the_signals_their_trend_and_a_way_down(look: Look, town: Town) -> None:
    told = town.client.get("/v1/dashboard/overview", window_ms="3600000").json
    page = look.at("#/", "Overview")
    signals = page.get_by_role("region", name="Golden signals")
    for name in ("Success", "Duration, p95", "Worst fallback rate", "Contribution variance"):
        expect(signals.get_by_text(name, exact=True)).to_be_visible()
    expect(signals.get_by_role("link", name="1 failed")).to_be_visible()
    greet = page.get_by_role("group", name="Workflows, table").get_by_role(
        "row", name="greet", exact=False
    )
    (row,) = [one for one in told["workflows"] if one["name"] == "greet"]
    expect(greet.get_by_role("cell").first).to_have_text(str(row["ended"]))
    expect(page.get_by_role("img", name="Sessions ended over time")).to_be_visible()
    page.get_by_text("As a table: Sessions ended over time").click()
    table = page.get_by_role("group", name="Sessions ended over time, as a table")
    well = [int(cell) for cell in table.locator("td:nth-of-type(1)").all_inner_texts()]
    assert sum(well) == told["totals"]["succeeded"] > GREETINGS, "the table says what is drawn"


def test_one_clicks_from_the_overview_to_a_workflow_a_component_its_sessions_and_one_of_them(
    look: Look, town: Town
) -> None:
    page = look.at("#/", "Overview")
    look.follows("shaky")
    look.is_at("Workflow shaky")
    expect(page.get_by_role("group", name="Why it failed, table")).to_contain_text(
        "INVALID_REQUEST"
    )
    look.follows("flaky")
    look.is_at("Component flaky")
    actions = page.get_by_role("group", name="Actions, table")
    expect(actions.get_by_role("row", name="flaky.read", exact=False)).to_contain_text("3")
    look.follows("UNAVAILABLE")
    look.is_at("Sessions")
    expect(page.get_by_label("Component")).to_have_value("flaky")
    expect(page.get_by_label("Error")).to_have_value("UNAVAILABLE")
    expect(page.locator("tbody tr")).to_have_count(1)
    look.follows(town.sessions["retried"])
    look.is_at(f"Session {town.sessions['retried']}")
    page.go_back()
    look.is_at("Sessions")
    expect(page.get_by_label("Error")).to_have_value("UNAVAILABLE")


def test_the_time_that_a_page_looks_back_stands_in_its_address_and_goes_along(
    look: Look, town: Town
) -> None:
    page = look.at("#/", "Overview")
    page.get_by_label("Last").select_option("24 hours")
    expect(page).to_have_url(f"{look.url}/dashboard#/?window=86400000")
    look.follows("greet")
    look.is_at("Workflow greet")
    expect(page.get_by_label("Last")).to_have_value("86400000")
    page.reload()
    expect(page.get_by_label("Last")).to_have_value("86400000")


def test_a_workflow_nobody_ran_and_a_session_nobody_opened_say_so(look: Look, town: Town) -> None:
    look.refusals.add(404)
    look.at("#/workflows/nobody", "Workflow nobody")
    look.sees("No session of it ended in this time.")
    look.at("#/components/nobody", "Component nobody")
    look.sees("It was not called in this time.")
    look.at(f"#/sessions/{'0' * 26}", f"Session {'0' * 26}")
    look.sees("Not found")
    expect(look.page.get_by_role("button", name="Try again")).to_be_visible()


def test_every_page_is_accessible_in_light_and_dark(look: Look, town: Town) -> None:
    ids = [town.sessions[kind] for kind in ("retried", "invented", "hostile")]
    for place, heading, last in (
        ("#/", "Overview", "Components"),
        ("#/workflows/told", "Workflow told", "Why it failed"),
        ("#/components/flaky", "Component flaky", "Why it failed"),
        ("#/sessions", "Sessions", "Newest first"),
        *((f"#/sessions/{id}", f"Session {id}", "Timeline") for id in ids),
    ):
        page = look.at(place, heading)
        expect(page.get_by_role("heading", name=last, exact=True)).to_be_visible()
        for folded in page.locator("main summary").all():
            folded.click()
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            look.accessible()


# ---- the list of sessions -----------------------------------------------------------------------


def shown(look: Look) -> list[str]:
    """The ids on the page, once it has any."""
    rows = look.page.locator("tbody tr th a")
    expect(rows.first).to_be_visible()
    return rows.all_inner_texts()


def test_pages_go_by_key_and_hold_every_session_once_newest_first(look: Look, town: Town) -> None:
    page = look.at("#/sessions", "Sessions")
    first = shown(look)
    assert len(first) == 50
    look.follows("Older")
    expect(page.get_by_role("heading", name="Older", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name=first[0])).to_have_count(0)
    found = first + shown(look)
    assert found == sorted(set(found), reverse=True)
    assert set(town.sessions.values()) <= set(found)
    expect(page.get_by_role("link", name="Older", exact=True)).to_have_count(0)
    look.follows("Newest")
    expect(page.get_by_role("link", name=first[0])).to_be_visible()
    asked = [parse_qs(urlsplit(one).query) for one in look.requests if "/sessions?" in one]
    assert {(one["limit"][0], one.get("after", [""])[0]) for one in asked} == {
        ("50", ""),
        ("50", first[-1]),
    }, "no page asks for more than it shows"


def test_filters_are_set_by_keyboard_and_stand_in_the_address(look: Look, town: Town) -> None:
    page = look.at("#/sessions", "Sessions")
    page.get_by_label("Workflow").focus()
    page.keyboard.type("told")
    page.get_by_label("Review").select_option("WAITING")
    page.get_by_label("Workflow").press("Enter")
    expect(page).to_have_url(f"{look.url}/dashboard#/sessions?workflow=told&review=WAITING")
    expect(page.locator("tbody tr")).to_have_count(1)
    assert shown(look) == [town.sessions["invented"]]
    page.reload()
    expect(page.get_by_label("Workflow")).to_have_value("told")
    assert shown(look) == [town.sessions["invented"]]
    look.follows("Clear")
    expect(page.locator("tbody tr")).to_have_count(50)
    expect(page.get_by_label("Workflow")).to_have_value("")


def test_filters_that_nothing_passes_and_those_that_are_none_say_what_to_do(
    look: Look, town: Town
) -> None:
    look.refusals.add(400)
    look.at("#/sessions?workflow=nobody", "Sessions")
    look.sees("No session passes these filters.")
    look.at("#/sessions?status=ODD", "Sessions")
    expect(look.page.get_by_role("alert")).to_contain_text("'ODD' is none of")


# ---- one session --------------------------------------------------------------------------------


def line(page: Page, text: str) -> Locator:
    """The line of the timeline with this text."""
    return page.locator(".tl-row").filter(has_text=text)


def test_a_retried_call_shows_its_attempts_and_the_decision_between_them(
    look: Look, town: Town
) -> None:
    id = town.sessions["retried"]
    page = look.at(f"#/sessions/{id}", f"Session {id}")
    first = line(page, "attempt 1").first
    expect(first).to_contain_text("UNAVAILABLE")
    expect(first).to_contain_text("waited")
    expect(first).to_contain_text("served")
    decision = line(page, "decided retry")
    expect(decision).to_contain_text("at 100 %")
    decision.get_by_text("2 options, policy backoff").click()
    options = decision.get_by_role("table")
    expect(options.get_by_role("row", name="retry", exact=False)).to_contain_text("chosen")
    expect(options.get_by_role("row", name="give up", exact=False)).to_contain_text("0 %")
    expect(decision).to_contain_text("After failed; drawn 0.")
    expect(line(page, "attempt 2")).to_contain_text("succeeded")


def test_payloads_are_folded_opened_by_keyboard_and_keep_their_numbers(
    look: Look, town: Town
) -> None:
    id = town.sessions["exact"]
    page = look.at(f"#/sessions/{id}", f"Session {id}")
    summary = page.locator("summary").filter(has_text="Input")
    expect(page.locator(".payload pre")).to_have_count(0)
    summary.focus()
    page.keyboard.press("Enter")
    shown = page.get_by_role("group", name="Input", exact=True)
    expect(shown).to_contain_text("12345678901234567890")
    expect(shown).to_contain_text("1.0")


def test_a_claim_shows_its_verdict_its_sources_and_the_review_that_waits(
    look: Look, town: Town
) -> None:
    id = town.sessions["invented"]
    page = look.at(f"#/sessions/{id}", f"Session {id}")
    claims = page.get_by_role("group", name="Claims, table")
    expect(claims).to_contain_text("contradicted")
    expect(claims).to_contain_text("/output/balance")
    expect(page.get_by_role("region", name="Session", exact=True)).to_contain_text("review waits")
    expect(page.get_by_role("group", name="Rewards, table")).to_contain_text("grounding")
    expect(line(page, "sub-goal look")).to_contain_text("ledger.look")


def test_a_failed_session_says_why(look: Look, town: Town) -> None:
    id = town.sessions["failed"]
    page = look.at(f"#/sessions/{id}", f"Session {id}")
    expect(page.get_by_role("region", name="Error")).to_contain_text("INVALID_REQUEST")
    decision = line(page, "decided give up")
    decision.get_by_text("2 options").click()
    retry = decision.get_by_role("row", name="retry", exact=False)
    expect(retry).to_contain_text("0 %")
    expect(retry).to_contain_text("not_retryable")
    look.follows("shaky")
    look.is_at("Workflow shaky")


def test_what_strangers_wrote_is_text_and_nothing_of_it_runs_or_hides(
    look: Look, town: Town
) -> None:
    id = town.sessions["hostile"]
    page = look.at(f"#/sessions/{id}", f"Session {id}")
    expect(page.get_by_role("region", name="Timeline")).to_be_visible()
    summaries = page.locator("main summary")
    for folded in summaries.all():
        folded.click()
    expect(page.locator(".payload pre")).to_have_count(4)
    for payload in page.locator(".payload pre").all():
        expect(payload).to_contain_text("<script>window.ran = 'script'</script>")
        expect(payload).to_contain_text("<img src=x onerror=")
        expect(payload).to_contain_text("⟨U+202E⟩gnp.exe")
    comment = page.get_by_role("group", name="Feedback, table")
    expect(comment).to_contain_text(f"<script>window.ran = 'script'</script> {SHOWN}")
    assert page.evaluate("window.ran") is None
    assert page.locator("main script, main img").count() == 0
    assert not any(0x202A <= ord(one) <= 0x202E for one in page.inner_text("main"))


def test_a_payload_of_five_megabytes_shows_its_beginning_and_its_size(
    look: Look, town: Town
) -> None:
    id = town.sessions["large"]
    page = look.at(f"#/sessions/{id}", f"Session {id}")
    page.locator("summary").filter(has_text="Output, 4.77 MiB, its beginning").click()
    shown = page.get_by_role("group", name="Output", exact=True)
    expect(shown).to_contain_text("<script>window.ran = 'script'</script>xxxx")
    assert 60_000 < len(shown.inner_text()) < 70_000
    look.sees("Only the beginning is shown.")
    assert page.evaluate("window.ran") is None


def test_a_hedge_and_the_answer_that_came_too_late_are_named(look: Look, town: Town) -> None:
    with hedged(town.client) as id:
        page = look.at(f"#/sessions/{id}", f"Session {id}")
        passed_by = line(page, "CANCELLED")
        expect(passed_by).to_contain_text("answered late")
        expect(passed_by).to_contain_text("answered first")
        expect(page.locator(".tl-row").filter(has_text="hedge")).to_contain_text("attempt 2")


def test_a_secret_that_went_through_is_on_no_page(look: Look, town: Town) -> None:
    id = town.sessions["secret"]
    page = look.at(f"#/sessions/{id}", f"Session {id}")
    expect(page.get_by_role("region", name="Timeline")).to_be_visible()
    for folded in page.locator("main summary").all():
        folded.click()
    expect(page.get_by_role("group", name="Input", exact=True)).to_contain_text("password")
    assert SECRET not in page.content()


# ---- pages that go on by themselves -------------------------------------------------------------


def test_a_running_session_follows_its_events_to_its_end(look: Look, town: Town) -> None:
    town.door.clear()
    id = town.open("open")
    page = look.at(f"#/sessions/{id}", f"Session {id}")
    head = page.get_by_role("region", name="Session", exact=True)
    expect(head).to_contain_text("live: follows its events")
    expect(page.locator(".tl-row").filter(has_text="attempt 1")).to_contain_text("so far")
    expect(page.get_by_role("region", name="Input and output")).to_contain_text("No output yet.")
    streams = [one for one in look.requests if one.endswith(f"/sessions/{id}/events")]
    assert streams, "it listens"
    town.door.set()
    expect(head).to_contain_text("succeeded")
    expect(head).not_to_contain_text("live")
    expect(page.get_by_role("region", name="Input and output")).not_to_contain_text("No output")
    expect(page.locator(".tl-row").filter(has_text="attempt 1")).not_to_contain_text("so far")


def test_the_overview_shows_what_ends_while_somebody_looks(look: Look, town: Town) -> None:
    page = look.at("#/", "Overview")
    greet = page.get_by_role("group", name="Workflows, table").get_by_role(
        "row", name="greet", exact=False
    )
    before = int(greet.get_by_role("cell").first.inner_text())
    town.run("while looking", "greet", "1")
    expect(greet.get_by_role("cell").first).to_have_text(str(before + 1))


def test_a_long_look_back_is_asked_for_again_though_what_is_live_comes_more_often(
    look: Look, town: Town
) -> None:
    """Each answer about now drew the page anew, and that put off the next look back for ever."""
    look.page.clock.install()
    page = look.at("#/?window=86400000", "Overview")
    look.sees("Live, as of")
    with page.expect_request(
        lambda asked: "/v1/dashboard/overview" in asked.url, timeout=4 * PATIENCE_MS
    ):
        for _ in range(7):
            with page.expect_response(lambda answer: "/v1/dashboard/live" in answer.url):
                page.clock.fast_forward(5_100)


def test_the_overview_stands_still_when_asked_to(look: Look, town: Town) -> None:
    page = look.at("#/", "Overview")
    look.sees("Live, as of")
    page.get_by_label("Live").uncheck()
    expect(page.get_by_label("Live")).not_to_be_checked()
    page.keyboard.press("Space")
    expect(page.get_by_label("Live")).to_be_checked()


# ---- records that do not answer ------------------------------------------------------------------


def test_records_that_do_not_answer_are_said_and_asked_again_while_what_is_live_shows(
    serve: Callable[..., Served], looking: Looking
) -> None:
    """Nobody listens at the address of these records. The window closes before its gateway."""
    served = serve(environ={"ACP_RECORDS_URL": "http://127.0.0.1:9"})
    look = looking(url=served.url)
    page = look.at("#/", "Overview")
    expect(page.get_by_role("heading", name="Not ready yet")).to_be_visible()
    look.sees("This page tries again by itself.")
    expect(page.get_by_role("group", name="Now")).to_contain_text("0 running")
    with page.expect_response(lambda answer: "/v1/dashboard/overview" in answer.url) as again:
        look.sees("503 UNAVAILABLE")
    assert again.value.status == 503
    look.accessible()
