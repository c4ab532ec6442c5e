"""The row of policies: all are asked, then all are taken; a refusal costs nothing."""

import pytest

from gateway.governance import concurrency, deadline, governor
from gateway.governance.concurrency import Slots
from gateway.governance.governor import ROW, Wish
from gateway.governance.verdicts import ADMIT, Admit, Defer, Refuse

KEYS = ("queue:TOOL", "instance:a")


def slots(outer: int = 1, inner: int = 1) -> dict[str, Slots]:
    return {
        "queue:TOOL": Slots(limit=outer, max_waiting=2),
        "instance:a": Slots(limit=inner, max_waiting=2),
    }


def wish(left_ms: int = 10, *, is_head: bool = False) -> Wish:
    return Wish(keys=KEYS, left_ms=left_ms, is_head=is_head)


def test_the_row_names_what_is_asked_in_order() -> None:
    assert ROW == ("deadline", "concurrency of the step type", "concurrency of the target")


def test_all_admit_and_all_are_taken_and_given_back() -> None:
    table = slots()
    assert governor.check(table, wish()) is ADMIT
    governor.take(table, KEYS)
    assert [table[key].inflight for key in KEYS] == [1, 1]
    governor.close(table, KEYS)
    assert table == slots()
    with pytest.raises(AssertionError, match="given back once"):
        governor.close(table, KEYS)


def test_who_has_no_time_left_is_refused_before_anything_else() -> None:
    found = governor.check(slots(outer=0), wish(left_ms=0))
    assert isinstance(found, Refuse)
    assert (found.policy, found.error.reason) == ("deadline", "TIMEOUT")


@pytest.mark.parametrize(("outer", "inner", "key"), [(0, 1, KEYS[0]), (1, 0, KEYS[1])])
def test_the_first_full_one_defers_by_its_own_key_and_nothing_is_taken(
    outer: int, inner: int, key: str
) -> None:
    table = slots(outer, inner)
    found = governor.check(table, wish())
    assert found == Defer("concurrency", key)
    assert table == slots(outer, inner)


def test_an_attempt_gets_no_more_time_than_its_session_has() -> None:
    assert deadline.timeout_ms(5_000, 0, now_ms=100) == 5_000
    assert deadline.timeout_ms(5_000, 1_100, now_ms=100) == 1_000
    assert deadline.timeout_ms(500, 1_100, now_ms=100) == 500
    assert deadline.timeout_ms(500, 50, now_ms=100) == -50
    assert isinstance(deadline.check(1), Admit)
    assert isinstance(deadline.check(-50), Refuse)
    assert concurrency.RETRY_AFTER_MS > 0
