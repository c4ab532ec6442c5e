"""The ledger behind its Go adapter, over raw HTTP."""

import os
import signal
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import httpx
import pytest

from reference_components.launcher import Running
from reference_components.tests.wire_requests import call_id, execute, reason

TRANSFER = (
    '{"from_account": "1000000002", "to_account": "1000000001", "currency": "GBP", "amount": 25.1}'
)
TRANSFERRED = (
    '{"amount":25.10,"balance":249974.90,"currency":"GBP","entry":1,'
    '"from_account":"1000000002","to_account":"1000000001"}'
)


@pytest.fixture
def ledger(start: Callable[..., Running]) -> Running:
    return start("ledger")


def test_the_adapter_has_at_most_200_lines() -> None:
    folder = Path(str(files("reference_components"))) / "ledger_adapter"
    lines = [
        line
        for source in folder.glob("*.go")
        if not source.name.endswith("_test.go")
        for line in source.read_text().splitlines()
    ]
    assert 0 < len(lines) <= 200


def test_balance_keeps_two_decimals(ledger: Running) -> None:
    response = execute(ledger.url, "b", "ledger.balance", '{"account": "1000000003"}')
    assert response.text.strip() == (
        '{"output":{"account":"1000000003","balance":812.40,"currency":"EUR"},"side_effect":"NONE"}'
    )


def test_a_repeat_gets_the_same_answer_and_nothing_is_done_twice(ledger: Running) -> None:
    first = execute(ledger.url, "t", "ledger.transfer", TRANSFER)
    again = execute(ledger.url, "t", "ledger.transfer", TRANSFER, attempt=2)
    assert first.text.strip() == f'{{"output":{TRANSFERRED},"side_effect":"PERFORMED"}}'
    assert again.text == first.text
    balance = execute(ledger.url, "b", "ledger.balance", '{"account": "1000000001"}')
    assert '"balance":2370.77' in balance.text


def test_outcome_and_conflict_are_known_after_a_crash(
    ledger: Running, start: Callable[..., Running]
) -> None:
    first = execute(ledger.url, "t", "ledger.transfer", TRANSFER)
    ledger.kill()
    restarted = start("ledger")
    assert execute(restarted.url, "t", "ledger.transfer", TRANSFER, attempt=2).text == first.text
    # the same money between the same accounts, yet other bytes: another body_digest
    other = TRANSFER.replace("25.1", "25.10")
    assert reason(execute(restarted.url, "t", "ledger.transfer", other, attempt=3)) == (
        409,
        "IDEMPOTENCY_CONFLICT",
        "NONE",
    )
    cancel = httpx.post(f"{restarted.url}/acp/v1/calls/{call_id('t')}/cancel", json={})
    assert cancel.json() == {"state": "FINISHED", "side_effect": "PERFORMED"}


def test_a_lower_attempt_than_one_seen_is_stale(ledger: Running) -> None:
    execute(ledger.url, "t", "ledger.transfer", TRANSFER, attempt=2)
    stale = execute(ledger.url, "t", "ledger.transfer", TRANSFER, attempt=1)
    assert reason(stale) == (409, "STALE_ATTEMPT", "NONE")


@pytest.mark.parametrize(
    ("action", "arguments", "expected"),
    [
        ("ledger.balance", '{"account": "5555555555"}', (404, "UNKNOWN_ACCOUNT")),
        ("ledger.balance", '{"account": "1"}', (400, "INVALID_REQUEST")),
        ("ledger.balance", '{"account": 1000000001}', (400, "INVALID_REQUEST")),
        ("ledger.balance", '{"Account": "1000000001"}', (400, "INVALID_REQUEST")),
        ("ledger.balance", "[]", (400, "INVALID_REQUEST")),
        ("ledger.balance", "null", (400, "INVALID_REQUEST")),
        ("ledger.fee", '{"kind": "ATM", "amount": "10"}', (400, "INVALID_REQUEST")),
        ("ledger.fee", '{"kind": "ATM", "amount": 1e2}', (400, "INVALID_REQUEST")),
        ("ledger.fee", '{"kind": "ATM", "amount": 0.001}', (400, "INVALID_REQUEST")),
        ("ledger.fee", '{"kind": "ATM", "amount": -1}', (400, "INVALID_REQUEST")),
        ("ledger.fee", '{"kind": "OTHER", "amount": 1}', (400, "INVALID_REQUEST")),
        ("ledger.burn", "{}", (404, "NOT_FOUND")),
        ("ledger.transfer", TRANSFER.replace("25.1", "0"), (400, "INVALID_REQUEST")),
        (
            "ledger.transfer",
            TRANSFER.replace("25.1", "99999999999.99"),
            (400, "INSUFFICIENT_FUNDS"),
        ),
        ("ledger.transfer", TRANSFER.replace("GBP", "EUR"), (400, "CURRENCY_MISMATCH")),
        ("ledger.transfer", TRANSFER.replace('2"', '1"'), (400, "INVALID_REQUEST")),
    ],
)
def test_refusals_have_a_reason_and_no_side_effect(
    ledger: Running, action: str, arguments: str, expected: tuple[int, str]
) -> None:
    assert reason(execute(ledger.url, "x", action, arguments)) == (*expected, "NONE")


def test_a_ledger_that_cannot_run_is_unavailable_and_comes_back(
    start: Callable[..., Running], tmp_path: Path
) -> None:
    journal = tmp_path / "ledger.jnl"
    running = start("ledger", env={"LEDGERJNL": str(journal)})
    execute(running.url, "t", "ledger.transfer", TRANSFER)
    good = journal.read_bytes()
    journal.write_bytes(b"damaged" * 100)
    _kill_child(running.pid)
    lost = execute(running.url, "t", "ledger.transfer", TRANSFER, attempt=2)
    assert reason(lost) == (503, "UNAVAILABLE", "UNKNOWN")
    assert lost.json()["error"]["retryable"] is True
    read = execute(running.url, "b", "ledger.balance", '{"account": "1000000001"}')
    assert reason(read) == (503, "UNAVAILABLE", "NONE")
    journal.write_bytes(good)
    assert TRANSFERRED in execute(running.url, "t", "ledger.transfer", TRANSFER, attempt=3).text


def _kill_child(pid: int) -> None:
    """End the ledger program below the adapter."""
    children = Path(f"/proc/{pid}/task").glob("*/children")
    (child,) = {word for file in children for word in file.read_text().split()}
    os.kill(int(child), signal.SIGKILL)


def test_cancel_of_a_call_never_seen_says_so(ledger: Running) -> None:
    answer = httpx.post(f"{ledger.url}/acp/v1/calls/never/cancel", json={})
    assert answer.json() == {"state": "UNKNOWN_CALL"}
