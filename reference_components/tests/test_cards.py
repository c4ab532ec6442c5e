"""The Java component, over raw HTTP."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from reference_components.launcher import Launcher, LaunchError, Running
from reference_components.tests.wire_requests import call_id, execute, reason

ADA = '{"card": "card-0001"}'


@pytest.fixture
def cards(start: Callable[..., Running]) -> Running:
    return start("cards")


def journal_of(launcher_log: Path) -> Path:
    return launcher_log.parent / "state" / "cards" / "cards.jnl"


def test_limits_keep_the_digits_they_were_written_with(cards: Running) -> None:
    response = execute(cards.url, "l", "cards.limits", '{"card": "card-9999"}')
    assert '"atm_daily":0.00,"payments_daily":0.10,"top_up_daily":0.00' in response.text


def test_freezing_is_done_once_and_told_again(cards: Running) -> None:
    first = execute(cards.url, "f", "cards.freeze", ADA)
    assert first.json() == {
        "output": {"card": "card-0001", "status": "FROZEN", "was": "ACTIVE"},
        "side_effect": "PERFORMED",
    }
    assert execute(cards.url, "f", "cards.freeze", ADA, attempt=2).text == first.text
    second_call = execute(cards.url, "g", "cards.freeze", ADA)
    assert second_call.json()["side_effect"] == "NONE"
    assert reason(execute(cards.url, "f", "cards.freeze", ADA, attempt=1))[1] == "STALE_ATTEMPT"


def test_a_lost_card_is_replaced_once_and_cannot_be_activated(cards: Running) -> None:
    lost = '{"card": "card-0001", "reason": "LOST"}'
    ordered = execute(cards.url, "r", "cards.replace", lost).json()["output"]
    again = execute(cards.url, "s", "cards.replace", lost).json()["output"]
    assert (ordered["ordered_now"], again["ordered_now"]) == (True, False)
    assert ordered["card"] == again["card"] != "card-0001"
    assert reason(execute(cards.url, "a", "cards.activate", ADA)) == (400, "CARD_CANCELLED", "NONE")
    fresh = execute(cards.url, "t", "cards.status", f'{{"card": "{ordered["card"]}"}}')
    assert fresh.json()["output"]["status"] == "DELIVERING"


def test_outcomes_and_state_are_known_after_a_crash(
    cards: Running, start: Callable[..., Running]
) -> None:
    first = execute(cards.url, "f", "cards.freeze", ADA)
    cards.kill()
    restarted = start("cards")
    assert execute(restarted.url, "f", "cards.freeze", ADA, attempt=2).text == first.text
    other = '{"card":"card-0001"}'  # other bytes, so another body_digest
    conflict = reason(execute(restarted.url, "f", "cards.freeze", other, attempt=3))
    assert conflict == (409, "IDEMPOTENCY_CONFLICT", "NONE")
    status = execute(restarted.url, "s", "cards.status", ADA)
    assert status.json()["output"]["status"] == "FROZEN"
    cancel = httpx.post(f"{restarted.url}/acp/v1/calls/{call_id('f')}/cancel", json={})
    assert cancel.json() == {"state": "FINISHED", "side_effect": "PERFORMED"}


def test_an_incomplete_last_journal_line_is_as_if_it_never_was(
    cards: Running, start: Callable[..., Running]
) -> None:
    execute(cards.url, "f", "cards.freeze", ADA)
    execute(cards.url, "g", "cards.freeze", '{"card": "card-0002"}')
    cards.kill()
    journal = journal_of(cards.log_file)
    journal.write_bytes(journal.read_bytes()[:-30])
    restarted = start("cards")
    again = execute(restarted.url, "g", "cards.freeze", '{"card": "card-0002"}', attempt=2)
    assert again.json()["output"]["was"] == "ACTIVE"
    assert len(journal.read_bytes().splitlines()) == 2


def test_many_repeats_at_once_do_the_thing_once(cards: Running) -> None:
    new = '{"card": "card-0002", "reason": "NEW"}'
    with ThreadPoolExecutor(8) as pool:
        answers = {
            response.text
            for response in pool.map(
                lambda _: execute(cards.url, "r", "cards.replace", new), range(16)
            )
        }
    assert len(answers) == 1
    assert '"ordered_now":true' in answers.pop()


def test_two_processes_never_share_a_journal(
    cards: Running, start: Callable[..., Running], launcher: Launcher
) -> None:
    other = start("cards", instance="two")
    assert other.url != cards.url
    with pytest.raises(LaunchError, match="another process uses"):
        launcher.start("cards")


@pytest.mark.parametrize(
    ("action", "arguments", "expected"),
    [
        ("cards.status", '{"card": "card-8888"}', (404, "UNKNOWN_CARD")),
        ("cards.status", '{"card": "main"}', (400, "INVALID_REQUEST")),
        ("cards.status", "{}", (400, "INVALID_REQUEST")),
        ("cards.status", "null", (400, "INVALID_REQUEST")),
        ("cards.status", '{"card": "card-0001", "card": "card-0002"}', (400, "INVALID_REQUEST")),
        ("cards.status", '{"card": "\\ud800"}', (400, "INVALID_REQUEST")),
        ("cards.replace", ADA, (400, "INVALID_REQUEST")),
        ("cards.replace", '{"card": "card-0001", "reason": "WHIM"}', (400, "INVALID_REQUEST")),
        ("cards.burn", ADA, (404, "NOT_FOUND")),
    ],
)
def test_refusals_have_a_reason_and_no_side_effect(
    cards: Running, action: str, arguments: str, expected: tuple[int, str]
) -> None:
    assert reason(execute(cards.url, "x", action, arguments)) == (*expected, "NONE")
