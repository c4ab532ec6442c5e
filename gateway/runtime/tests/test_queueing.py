"""Who may start now: one wake per slot, turns between tenants, no slot idle while one waits."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.governance.outcome import Outcome
from gateway.governance.rules import Rules, Slots
from gateway.governance.tests.wishes import QUEUES, wish
from gateway.governance.verdicts import Defer, Refuse
from gateway.governance.wish import Permit, Wish
from gateway.runtime.clock import ManualClock
from gateway.runtime.queueing import Admission, Waiting

TOOL, A, B = "queue:TOOL", "instance:a", "instance:b"


class Gate:
    """An admission with what it woke, and the permits it gave by instance."""

    def __init__(self, tool: int = 9, a: int = 9, b: int = 9) -> None:
        slots = QUEUES | {"TOOL": Slots(limit=tool, max_waiting=99)}
        self.rules = {
            name: Rules(queues=slots, target=Slots(limit=limit, max_waiting=99))
            for name, limit in (("a", a), ("b", b))
        }
        self.admission = Admission(ManualClock())
        self.admission.wake = self.woken_up
        self.woken: list[Waiting] = []
        self.permits: dict[str, list[Permit]] = {"a": [], "b": []}

    def woken_up(self, waiting: Waiting) -> None:
        self.woken.append(waiting)

    def ask(self, name: str, *, instance: str = A, tenant: str = "t") -> type:
        waiting = Waiting(session_id="s", call_id=name, attempt=1, tenant=tenant)
        return self._ask(self._wish(instance), waiting)

    def ask_again(self, instance: str = A) -> type:
        """Whoever was woken first asks as the head of its queue."""
        return self._ask(self._wish(instance, is_head=True), self.woken.pop(0))

    def close(self, instance: str = A) -> None:
        self.admission.observe(self.permits[instance[-1]].pop(), Outcome.SUCCEEDED)

    def depth(self, key: str) -> tuple[int, int]:
        """(in flight, waiting) of a key."""
        return self.admission.row.taken().get(key, 0), self.admission.depth(key)

    def _wish(self, instance: str, *, is_head: bool = False) -> Wish:
        name = instance[-1]
        return wish(self.rules[name], instance=name, is_head=is_head)

    def _ask(self, wish: Wish, waiting: Waiting) -> type:
        found = self.admission.ask(wish, lambda: waiting, woken_from=waiting.key)
        if isinstance(found, Permit):
            self.permits[wish.instance].append(found)
        return type(found)

    def names(self) -> list[str]:
        return [waiting.call_id for waiting in self.woken]


def test_one_slot_given_back_wakes_one_and_in_the_order_of_arrival() -> None:
    gate = Gate(a=1)
    assert [gate.ask(name) for name in "xyz"] == [Permit, Defer, Defer]
    gate.close()
    assert gate.names() == ["y"]
    assert gate.ask_again() is Permit
    gate.close()
    assert gate.names() == ["z"]


def test_a_woken_attempt_names_the_queue_it_stood_in() -> None:
    gate = Gate(a=1)
    for name in "xy":
        gate.ask(name)
    gate.close()
    assert gate.woken[0].key == A


def test_tenants_take_turns() -> None:
    gate = Gate(a=1)
    gate.ask("first")
    for name in ("big1", "big2", "big3"):
        gate.ask(name, tenant="big")
    gate.ask("small1", tenant="small")
    order = []
    for _ in range(4):
        gate.close()
        order.append(gate.woken[0].call_id)
        assert gate.ask_again() is Permit
    assert order == ["big1", "small1", "big2", "big3"]


def test_a_newcomer_never_passes_who_waits() -> None:
    gate = Gate(a=1)
    gate.ask("x")
    gate.ask("waits1")
    gate.ask("waits2")
    gate.close()
    assert gate.ask("new") is Defer, "waits1 was woken, waits2 still stands there"


def test_a_head_whose_slot_was_taken_keeps_its_place() -> None:
    gate = Gate(a=1)
    gate.ask("x")
    gate.ask("waits")
    gate.close()
    assert gate.ask("quick") is Permit, "nobody stood in the queue at that moment"
    assert gate.ask_again() is Defer
    gate.ask("later")
    gate.close()
    assert gate.names() == ["waits"]


def test_a_head_that_must_wait_elsewhere_stands_there_at_the_end() -> None:
    """Woken ones that met another full queue were put before those who had come there earlier."""
    gate = Gate(tool=2, a=1)
    assert [gate.ask("x"), gate.ask("y", instance=B)] == [Permit, Permit]
    assert gate.ask("at_tool") is Defer
    gate.close(B)
    assert gate.names() == ["at_tool"]
    assert gate.ask_again() is Defer, "now it stands at the instance"
    gate.ask("also")
    assert gate.depth(A) == (1, 2)
    gate.close()
    assert gate.names() == ["at_tool"]


def test_who_was_woken_and_does_not_start_lets_the_next_one_try() -> None:
    """A cancelled session's entry took the wake with it: the slot stayed idle for ever."""
    gate = Gate(a=1)
    for name in ("x", "cancelled", "waits"):
        gate.ask(name)
    gate.close()
    gone = gate.woken.pop(0)
    assert gone.call_id == "cancelled"
    gate.admission.wake_one(gone.key)
    assert gate.names() == ["waits"]
    assert gate.ask_again() is Permit


def test_nobody_is_woken_while_nothing_is_free() -> None:
    gate = Gate(a=1)
    gate.ask("x")
    gate.ask("waits")
    gate.admission.wake_one(A)
    assert gate.woken == []
    gate.admission.wake_one("unknown")
    assert gate.woken == []


def test_a_full_queue_refuses_and_counts_nothing() -> None:
    admission = Admission(ManualClock())
    rules = Rules(queues=QUEUES | {"TOOL": Slots(limit=1, max_waiting=1)})
    waiting = Waiting(session_id="s", call_id="c", attempt=1, tenant="t")
    verdicts = [type(admission.ask(wish(rules), lambda: waiting)) for _ in range(3)]
    assert verdicts == [Permit, Defer, Refuse]
    assert (admission.row.taken()[TOOL], admission.depth(TOOL)) == (1, 1)


def test_an_idle_target_keeps_no_counters() -> None:
    gate = Gate()
    gate.ask("x")
    gate.close()
    assert gate.admission.row.taken() == {}
    assert gate.admission._queues == {}
    assert gate.depth(A) == (0, 0)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=60))
def test_whatever_comes_and_goes_no_slot_idles_while_somebody_waits_for_it(
    moves: list[tuple[str, bool]],
) -> None:
    gate = Gate(tool=2)
    running = 0
    for number, (tenant, comes) in enumerate(moves):
        if comes:
            running += gate.ask(str(number), tenant=tenant) is Permit
        elif running:
            gate.close()
            running -= 1
            while gate.woken:
                running += gate.ask_again() is Permit
        inflight, waiting = gate.depth(TOOL)
        assert inflight == running <= 2
        assert not waiting or inflight == 2


def test_who_has_less_time_than_its_target_ever_took_is_late_and_not_crowded_out() -> None:
    """The slot is taken and nobody waits: the same would be said with the slot free."""
    gate = Gate(a=1)
    gate.ask("x")
    admission = gate.admission
    admission.demand.served(("instance:a",), 150.0, well=True, now_ms=admission.now_ms())
    hurried = wish(gate.rules["a"], patience_ms=40.0)
    waiting = Waiting(session_id="s", call_id="late", attempt=1, tenant="t")
    found = admission.ask(hurried, lambda: waiting)
    assert isinstance(found, Refuse)
    assert (found.policy, found.error.reason) == ("deadline", "TIMEOUT")
    gate.ask("first")
    found = admission.ask(hurried, lambda: waiting)
    assert isinstance(found, Refuse)
    assert (found.policy, found.error.reason) == ("queue_delay", "OVERLOADED"), "one is ahead of it"
