"""Who is next: turns by weight between tenants, rank within one, and nobody waits for ever."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from gateway.governance import sharing
from gateway.runtime.lines import Lines, Waiting

WEIGHTS = {"heavy": 3.0}


def lines() -> Lines:
    return Lines(lambda tenant: WEIGHTS.get(tenant, 1.0))


def one(name: str, *, tenant: str = "t", rank_ms: int = 0) -> Waiting:
    return Waiting(session_id="s", call_id=name, attempt=1, tenant=tenant, rank_ms=rank_ms)


def drained(waiting: Lines) -> list[Waiting]:
    found = []
    while (head := waiting.pop()) is not None:
        found.append(head)
    return found


def names(waiting: Lines) -> list[str]:
    return [entry.call_id for entry in drained(waiting)]


def test_the_smallest_rank_goes_first_and_equal_ones_as_they_came() -> None:
    waiting = lines()
    for name, rank_ms in (("b", 5), ("c", 9), ("a", 1), ("b2", 5)):
        waiting.put(one(name, rank_ms=rank_ms))
    assert names(waiting) == ["a", "b", "b2", "c"]


def test_who_goes_back_keeps_place_and_turn() -> None:
    waiting = lines()
    for name in ("a", "b"):
        waiting.put(one(name))
        waiting.put(one(f"other {name}", tenant="u"))
    head = waiting.pop()
    assert head is not None
    waiting.put(head)
    assert names(waiting) == ["a", "other a", "b", "other b"]


def test_a_weight_of_three_is_three_turns_of_four() -> None:
    waiting = lines()
    for number in range(40):
        waiting.put(one(f"h{number}", tenant="heavy"))
        waiting.put(one(f"l{number}", tenant="light"))
    first = Counter(entry.tenant for entry in drained(waiting)[:40])
    assert first["heavy"] == 30


@given(st.integers(1, 300), st.integers(1, 20))
def test_a_flooding_tenant_never_keeps_another_from_its_turn(flood: int, few: int) -> None:
    waiting = lines()
    for number in range(flood):
        waiting.put(one(f"f{number}", tenant="flood"))
    for number in range(few):
        waiting.put(one(f"q{number}", tenant="quiet"))
    order = [entry.tenant for entry in drained(waiting)]
    for number in range(1, few + 1):
        place = [i for i, tenant in enumerate(order) if tenant == "quiet"][number - 1]
        assert place <= 2 * number, "its turn comes every second time"


@given(st.lists(st.booleans(), min_size=1, max_size=200))
def test_who_comes_back_at_once_takes_no_turn_of_another(moves: list[bool]) -> None:
    """A tenant whose line ran empty came back ahead of all, again and again."""
    waiting = lines()
    for number in range(len(moves) + 1):
        waiting.put(one(f"b{number}", tenant="b"))
    waiting.put(one("a0", tenant="a"))
    served: Counter[str] = Counter()
    for number, at_once in enumerate(moves, 1):
        head = waiting.pop()
        assert head is not None
        served[head.tenant] += 1
        if head.tenant == "a" and at_once:
            waiting.put(one(f"a{number}", tenant="a"))
    assert served["a"] <= served["b"] + 1


@given(st.lists(st.integers(-12, 12), min_size=1, max_size=40))
def test_the_lowest_priority_is_served_although_higher_ones_keep_coming(levels: list[int]) -> None:
    """Age counts like priority: whoever waits long enough goes before every newcomer."""
    waiting = lines()
    waiting.put(one("low", rank_ms=sharing.rank_ms(0, -10)))
    most_ms = 2 * (2 * sharing.PRIORITY_MAX + sharing.UNDER_WAY) * sharing.LEVEL_MS
    now_ms, order = 0, []
    while "low" not in order:
        now_ms += 500
        level = levels[now_ms // 500 % len(levels)]
        waiting.put(one(f"{now_ms}", rank_ms=sharing.rank_ms(now_ms, level, under_way=True)))
        head = waiting.pop()
        assert head is not None
        order.append(head.call_id)
        assert now_ms <= most_ms, "it starves"


def test_a_full_line_loses_the_last_of_whoever_floods_it() -> None:
    waiting = lines()
    for number in range(5):
        waiting.put(one(f"f{number}", tenant="flood"))
    loser = waiting.displaced_by(one("q", tenant="quiet"))
    assert loser is not None
    assert loser.call_id == "f4"
    assert len(waiting) == 4
    assert waiting.displaced_by(one("f9", tenant="flood")) is None, "it has no better claim"


def test_within_a_tenant_the_lowest_makes_room_for_a_higher_one() -> None:
    waiting = lines()
    for name, rank_ms in (("a", 1), ("z", 9)):
        waiting.put(one(name, rank_ms=rank_ms))
    loser = waiting.displaced_by(one("m", rank_ms=5))
    assert loser is not None
    assert loser.call_id == "z"
    assert waiting.displaced_by(one("y", rank_ms=9)) is None


Moves = st.lists(
    st.tuples(st.sampled_from(["put", "pop", "back", "displace"]), st.sampled_from("abc"),
              st.integers(0, 3)),
    max_size=80,
)  # fmt: skip


@given(Moves)
def test_nobody_is_lost_or_served_twice(moves: list[tuple[str, str, int]]) -> None:
    waiting, inside, head = lines(), set[str](), None
    for number, (move, tenant, rank_ms) in enumerate(moves):
        newcomer = one(str(number), tenant=tenant, rank_ms=rank_ms)
        if move == "put":
            waiting.put(newcomer)
            inside.add(newcomer.call_id)
        elif move == "pop":
            before = waiting.peek()
            head = waiting.pop()
            assert head == before
            inside.discard(head.call_id if head else "")
        elif move == "back" and head is not None:
            waiting.put(head)
            inside.add(head.call_id)
            head = None
        elif move == "displace" and waiting:
            loser = waiting.displaced_by(newcomer)
            inside.discard(loser.call_id if loser else "")
        assert len(waiting) == len(inside)
        assert waiting.ahead_of(newcomer) <= len(inside)
    assert set(names(waiting)) == inside
