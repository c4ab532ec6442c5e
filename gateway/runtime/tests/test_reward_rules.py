"""The rules that hold: stored once per version, found after a start, kept when one is wrong."""

import asyncio
from pathlib import Path

import pytest

from acp_spec.model.errors import AcpFailure
from gateway.board.audit import AuditLog
from gateway.rewards.scoring import Scorer
from gateway.runtime.principal import LOCAL
from gateway.runtime.reward_file import FILE_BYTES_MAX, RewardFile
from gateway.runtime.reward_rules import RewardBook
from gateway.stores.durable import WriteThrough
from gateway.stores.memory import MemoryStore
from gateway.stores.ports import Store

RULES = """
rewards: hotline
version: %s
rules: [{name: stars, kind: outcome, each: feedback, value: feedback.score}]
"""


class Shelf:
    """A book over a store, and what holds by it."""

    def __init__(self, store: Store | None = None) -> None:
        self.store = store or MemoryStore()
        durable = WriteThrough(self.store)
        self.audit = AuditLog(self.store, durable, now_ms=lambda: 5)
        self.scorer = Scorer()
        self.book = RewardBook(
            self.scorer, self.store, durable=durable, audit=self.audit, now_ms=lambda: 5
        )

    def put(self, source: str) -> None:
        asyncio.run(self.book.put(source, LOCAL))

    @property
    def holds(self) -> str:
        return self.scorer.rules.ref.version if self.scorer.rules is not None else ""


def refusal(shelf: Shelf, source: str) -> str:
    with pytest.raises(AcpFailure) as refused:
        shelf.put(source)
    return refused.value.error.reason


def test_what_was_stored_holds_and_is_found_by_the_next_start_and_stands_in_the_audit() -> None:
    shelf = Shelf()
    shelf.put(RULES % "1.0.0")
    shelf.put(RULES % "1.1.0")
    assert shelf.holds == "1.1.0"
    again = Shelf(shelf.store)
    assert again.holds == "1.1.0"
    assert again.scorer.rules == shelf.scorer.rules
    assert [(one.ref.version, one.holds) for one in again.book.page.versions] == [
        ("1.0.0", False),
        ("1.1.0", True),
    ]
    assert again.book.stored("hotline", "1.0.0").source == RULES % "1.0.0"
    subjects = [entry.subject for entry in again.audit.entries()]
    assert subjects == ["rewards:hotline@1.0.0", "rewards:hotline@1.1.0"]


def test_a_version_never_changes_and_the_same_text_again_changes_nothing() -> None:
    shelf = Shelf()
    shelf.put(RULES % "1.0.0")
    shelf.put(RULES % "1.0.0")
    assert len(list(shelf.audit.entries())) == 1
    assert refusal(shelf, RULES % "1.0.0" + "description: other\n") == "ALREADY_EXISTS"
    assert shelf.holds == "1.0.0"
    with pytest.raises(AcpFailure) as missing:
        shelf.book.stored("hotline", "9.0.0")
    assert missing.value.error.reason == "NOT_FOUND"


def test_wrong_rules_keep_the_old_ones_and_say_why_until_good_ones_come() -> None:
    shelf = Shelf()
    shelf.put(RULES % "1.0.0")
    assert refusal(shelf, (RULES % "1.1.0").replace("outcome", "outcom")) == "INVALID_REQUEST"
    assert shelf.holds == "1.0.0"
    refused = shelf.book.page.refused
    assert refused is not None
    assert "4:29: rules[0].kind: 'outcom' is not one of" in refused.problems[0]
    shelf.put(RULES % "1.1.0")
    assert shelf.book.page.refused is None


def test_rules_that_were_dropped_hold_no_more_also_after_a_start() -> None:
    shelf = Shelf()
    shelf.put(RULES % "1.0.0")
    asyncio.run(shelf.book.drop(LOCAL))
    again = Shelf(shelf.store)
    assert (shelf.holds, again.holds) == ("", "")
    assert [one.ref.version for one in again.book.page.versions] == ["1.0.0"]


def test_two_changes_at_once_leave_the_later_one_in_memory_as_on_disk() -> None:
    shelf = Shelf()

    async def both() -> None:
        first = shelf.book.put(RULES % "1.0.0", LOCAL)
        await asyncio.gather(first, shelf.book.put(RULES % "2.0.0", LOCAL))

    asyncio.run(both())
    assert shelf.holds == Shelf(shelf.store).holds == "2.0.0"


# ---- from a file -------------------------------------------------------------------------------


def test_a_file_is_taken_when_it_changes_and_a_wrong_one_keeps_what_held(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    shelf = Shelf()
    file = RewardFile(path, shelf.book, every_ms=10)

    def look(text: bytes) -> str:
        path.write_bytes(text)
        asyncio.run(file.look())
        refused = shelf.book.page.refused
        return refused.problems[0] if refused is not None else ""

    asyncio.run(file.look())
    assert shelf.book.page.refused is not None, "there is no such file yet"
    assert look((RULES % "1.0.0").encode()) == ""
    assert shelf.holds == "1.0.0"
    assert "not YAML" in look(b"rewards: [")
    assert look((RULES % "1.0.0" + "description: x").encode()).startswith("hotline@1.0.0 is stored")
    assert "cannot be read" in look(b"\xff")
    assert "bytes" in look(b"x" * (FILE_BYTES_MAX + 1))
    assert shelf.holds == "1.0.0"
    assert look((RULES % "1.1.0").encode()) == ""
    assert shelf.holds == "1.1.0"
    path.unlink()
    asyncio.run(file.look())
    assert shelf.holds == "1.1.0"


def test_a_file_of_rules_leaves_changing_them_to_itself(tmp_path: Path) -> None:
    shelf = Shelf()
    RewardFile(tmp_path / "rules.yaml", shelf.book, every_ms=10)
    assert refusal(shelf, RULES % "1.0.0") == "RULES_IN_A_FILE"
    with pytest.raises(AcpFailure, match="rules_file"):
        asyncio.run(shelf.book.drop(LOCAL))
