"""So many at once, so many waiting; newcomers never pass those who wait."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.governance import concurrency
from gateway.governance.concurrency import Slots
from gateway.governance.verdicts import Admit, Defer, Refuse


def verdict(slots: Slots, *, is_head: bool = False) -> type:
    return type(concurrency.check(slots, "k", is_head=is_head))


def test_a_free_slot_admits_and_a_full_row_defers_then_refuses() -> None:
    assert verdict(Slots(limit=1, max_waiting=1)) is Admit
    assert verdict(Slots(limit=1, max_waiting=1, inflight=1)) is Defer
    assert verdict(Slots(limit=1, max_waiting=1, inflight=1, waiting=1)) is Refuse


def test_a_newcomer_does_not_pass_who_waits_even_if_a_slot_is_free() -> None:
    slots = Slots(limit=2, max_waiting=5, inflight=1, waiting=1)
    assert verdict(slots) is Defer
    assert verdict(slots, is_head=True) is Admit


def test_who_waited_is_never_refused_for_a_full_queue() -> None:
    assert verdict(Slots(limit=1, max_waiting=0, inflight=1), is_head=True) is Defer


def test_a_refusal_is_harmless_retryable_and_says_when() -> None:
    found = concurrency.check(Slots(limit=0, max_waiting=0), "queue:LLM", is_head=False)
    assert isinstance(found, Refuse)
    failure = found.error
    assert (failure.reason, failure.retryable) == ("OVERLOADED", True)
    assert failure.retry_after_ms == concurrency.RETRY_AFTER_MS
    assert "queue:LLM" in failure.message


@given(st.lists(st.sampled_from(["take", "give_back", "queue", "leave_queue"]), max_size=40))
def test_what_is_taken_and_given_back_adds_up(steps: list[str]) -> None:
    slots, taken, queued = Slots(limit=3, max_waiting=3), 0, 0
    for name in steps:
        before = slots
        if name == "take":
            slots, taken = concurrency.take(slots), taken + 1
        elif name == "queue":
            slots, queued = concurrency.queue(slots), queued + 1
        elif name == "give_back" and taken:
            slots, taken = concurrency.give_back(slots), taken - 1
        elif name == "leave_queue" and queued:
            slots, queued = concurrency.leave_queue(slots), queued - 1
        assert (slots.inflight, slots.waiting) == (taken, queued)
        assert before is slots or before != slots
