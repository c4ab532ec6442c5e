"""The legacy program alone, over pipes: what its README promises."""

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from reference_components.launcher import Launcher

BANK, ADA, BEN, EURO = "0000000001", "1000000001", "2000000001", "1000000003"
Ledger = Callable[..., "subprocess.CompletedProcess[str]"]


def record(function: str, **fields: str) -> str:
    """A request of 120 characters and its line end."""
    layout = {"account": 10, "other": 10, "currency": 3, "amount": 13, "kind": 8}
    layout |= {"reference": 32, "text": 32}
    return (
        f"{function:<8}"
        + "".join(f"{fields.get(k, ''):<{n}}" for k, n in layout.items())
        + "    \n"
    )


def transfer(reference: str, *, amount: int = 100, source: str = BANK, target: str = ADA) -> str:
    return record(
        "TRANSFER",
        account=source,
        other=target,
        currency="GBP",
        amount=f"{amount:013d}",
        reference=reference,
        text="digest",
    )


@pytest.fixture
def place(launcher: Launcher, needs: Callable[[str], Path]) -> Path:
    needs("cobc")
    needs("go")
    return launcher.build("ledger")


@pytest.fixture
def environment(place: Path, tmp_path: Path) -> dict[str, str]:
    return {"LEDGERMST": str(place / "ledger/accounts.dat"), "LEDGERJNL": str(tmp_path / "jnl")}


@pytest.fixture
def ledger(place: Path, environment: dict[str, str]) -> Ledger:
    def run(*requests: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [place / "ledger-program"],
            input="".join(requests),
            env=environment,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    return run


def statuses(done: "subprocess.CompletedProcess[str]") -> list[str]:
    assert {len(line) for line in done.stdout.splitlines()} <= {200}
    return [line[8:10] for line in done.stdout.splitlines()]


def test_a_transfer_moves_money_once_and_its_repeat_tells_what_was_done(ledger: Ledger) -> None:
    first = ledger(transfer("r1"), record("BALANCE", account=ADA)).stdout.splitlines()
    repeat, balance = ledger(transfer("r1"), record("BALANCE", account=ADA)).stdout.splitlines()
    assert (first[0][8:10], repeat[8:10]) == ("00", "10")
    assert repeat[89:190] == first[0][89:190]
    assert balance == first[1]
    assert balance[89:103] == "+0000000234667"


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (record("BALANCE", account="77"), "20"),
        (transfer("r", target="77"), "21"),
        (transfer("r", source="77"), "20"),
        (transfer("r", amount=9_999_999_999_999), "30"),
        (transfer("r", target=EURO), "31"),
        (transfer("r", amount=0), "32"),
        (transfer("r").replace("0000000000100", "00000000001x0"), "32"),
        (transfer("r", target=BANK), "33"),
        (transfer(""), "40"),
        (record("FEE", kind="NONE", amount="0000000000100"), "50"),
        (record("PAYROLL"), "60"),
        ("\n", "60"),
        (record("BALANCE", account=ADA)[:-1] + "x\n", "61"),
    ],
)
def test_what_it_refuses_changes_nothing(ledger: Ledger, request_line: str, status: str) -> None:
    done = ledger(request_line, record("BALANCE", account=ADA))
    assert statuses(done) == [status, "00"]
    assert done.stdout.splitlines()[1][89:103] == "+0000000234567"


def test_a_reference_of_another_transfer_is_told_apart(ledger: Ledger) -> None:
    done = ledger(transfer("r1"), transfer("r1", amount=101), transfer("r1", target=BEN))
    assert statuses(done) == ["00", "11", "11"]


def test_a_fee_is_rounded_half_up_to_the_minor_unit(ledger: Ledger) -> None:
    done = ledger(
        record("FEE", kind="TOPUPCRD", amount="0000000001033"),
        record("FEE", kind="EXCHANGE", amount="0000000000100"),
        record("FEE", kind="ATM", amount="0000000010000"),
    )
    assert [line[76:89] for line in done.stdout.splitlines()] == [
        "0000000000015",
        "0000000000001",
        "0000000000150",
    ]


def test_an_incomplete_last_record_is_dropped_and_the_rest_kept(
    ledger: Ledger, environment: dict[str, str]
) -> None:
    journal = Path(environment["LEDGERJNL"])
    ledger(transfer("r1"), transfer("r2"))
    journal.write_bytes(journal.read_bytes()[:-40])
    done = ledger(transfer("r1"), transfer("r2"), transfer("r3"))
    assert statuses(done) == ["10", "00", "00"]
    assert "INCOMPLETE LAST RECORD DROPPED" in done.stderr
    assert statuses(ledger(transfer("r3"))) == ["10"]


def test_a_damaged_journal_stops_it(ledger: Ledger, environment: dict[str, str]) -> None:
    journal = Path(environment["LEDGERJNL"])
    ledger(transfer("r1"), transfer("r2"))
    whole = journal.read_bytes()
    for damaged in (whole[160:], whole + whole[:160], whole[:100] + whole, b"x" * 500):
        journal.write_bytes(damaged)
        done = ledger(record("BALANCE", account=ADA))
        assert (done.returncode, done.stdout) == (16, "")
        assert journal.read_bytes() == damaged


def test_only_one_run_at_a_time_uses_a_journal(
    ledger: Ledger, place: Path, environment: dict[str, str]
) -> None:
    with subprocess.Popen(
        [place / "ledger-program"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(record("BALANCE", account=ADA))
        running.stdin.flush()
        running.stdout.readline()  # it serves, so it holds the lock
        assert ledger(record("BALANCE", account=ADA)).returncode == 16
        running.stdin.close()
    assert ledger(record("BALANCE", account=ADA)).returncode == 0


@pytest.mark.parametrize("seed", range(5))
def test_a_kill_loses_no_answered_transfer_and_makes_none_twice(
    ledger: Ledger, place: Path, environment: dict[str, str], seed: int
) -> None:
    answers_before_kill = random.Random(seed).randrange(1, 300)
    running = subprocess.Popen(
        [place / "ledger-program"],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert running.stdin is not None
    assert running.stdout is not None
    with running.stdin, running.stdout:
        running.stdin.write("".join(transfer(f"r{i}") for i in range(400)))
        running.stdin.flush()
        answered = [running.stdout.readline()[8:10] for _ in range(answers_before_kill)]
        running.kill()
        running.wait()
    assert set(answered) == {"00"}
    after = statuses(ledger(*(transfer(f"r{i}") for i in range(400))))
    assert after[:answers_before_kill] == ["10"] * answers_before_kill
    assert after == sorted(
        after, reverse=True
    )  # all that were done come first, the rest is done now
    balance = ledger(record("BALANCE", account=ADA)).stdout[89:103]
    assert int(balance) == 234567 + 400 * 100
