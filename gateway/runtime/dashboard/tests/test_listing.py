"""Pages from two sources: each session that was there comes exactly once, whatever happens."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from acp_spec.model.ids import session_id
from gateway.runtime.dashboard.answers import DashboardSessions
from gateway.runtime.dashboard.listing import merged, wants_ended, wants_open
from gateway.runtime.dashboard.open_sessions import Found
from gateway.stores.records.questions.sessions import SessionItem

PAGES_MAX = 500


@dataclass
class World:
    """Sessions by number, open or ended; a source looks at so many of its own at a time."""

    is_open: dict[int, bool] = field(default_factory=dict)

    def seen(self, *, is_open: bool, after: str, limit: int, look: int) -> Found:
        own = sorted(
            (name(n) for n, one in self.is_open.items() if one is is_open and name(n) < after),
            reverse=True,
        )
        items: list[SessionItem] = []
        for looked_at, one in enumerate(own, 1):
            items.append(item(one, is_open=is_open))
            if len(items) == limit or looked_at == look:
                return Found(items, down_to=one)
        return Found(items)

    def page(self, after: str, *, limit: int, looks: tuple[int, int]) -> DashboardSessions:
        beyond = after or "~"
        return merged(
            (
                self.seen(is_open=True, after=beyond, limit=limit, look=looks[0]),
                self.seen(is_open=False, after=beyond, limit=limit, look=looks[1]),
            ),
            limit=limit,
        )


def name(number: int) -> str:
    return session_id(1_790_000_000_000 + number, 0, random_64=number)


def item(one: str, *, is_open: bool) -> SessionItem:
    status = "RUNNING" if is_open else "SUCCEEDED"
    return SessionItem(session_id=one, workflow="w", status=status, opened_at=0)


@given(
    before=st.dictionaries(st.integers(0, 60), st.booleans(), max_size=40),
    changes=st.lists(st.lists(st.integers(0, 99), max_size=5), max_size=30),
    limit=st.integers(1, 7),
    looks=st.tuples(st.integers(1, 9), st.integers(1, 9)),
)
def test_paging_gives_each_session_once_while_sessions_come_and_end(
    before: dict[int, bool], changes: list[list[int]], limit: int, looks: tuple[int, int]
) -> None:
    world = World(dict(before))
    got: list[str] = []
    after, turns = "", iter(changes)
    for _ in range(PAGES_MAX):
        page = world.page(after, limit=limit, looks=looks)
        assert len(page.items) <= limit
        got += [one.session_id for one in page.items]
        after = page.after
        if not after:
            break
        for number in next(turns, []):  # an open one ends; a number that is new comes
            world.is_open[number] = number not in world.is_open
    assert not after, "there is a last page"
    assert got == sorted(set(got), reverse=True), "newest first, nobody twice"
    assert {name(number) for number in before} <= set(got)


def test_only_the_source_that_can_have_it_is_asked() -> None:
    assert (wants_open({}), wants_ended({})) == (True, True)
    assert (wants_open({"status": "FAILED"}), wants_ended({"status": "FAILED"})) == (False, True)
    assert (wants_open({"status": "RUNNING"}), wants_ended({"status": "RUNNING"})) == (True, False)


def test_a_session_that_ended_in_between_is_shown_as_ended() -> None:
    one = name(1)
    page = merged((Found([item(one, is_open=True)]), Found([item(one, is_open=False)])), limit=5)
    assert [shown.status for shown in page.items] == ["SUCCEEDED"]
