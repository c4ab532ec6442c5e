"""What no domain knew is kept: bounded, counted, over restarts, and gone with its session."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from acp_spec.model.semantics import HowMapped, MappedValue
from gateway.runtime.clock import ManualClock
from gateway.runtime.unknown_values import (
    FIELDS_MAX,
    SESSIONS_KEPT,
    VALUES_PER_FIELD_MAX,
    Seen,
    UnknownValues,
)
from gateway.stores.durable import WriteThrough
from gateway.stores.memory import MemoryStore
from gateway.telemetry.metrics import Metrics


class Desk:
    """The keeper over a store, with a clock of its own."""

    def __init__(self) -> None:
        self.store, self.metrics = MemoryStore(), Metrics()
        self.clock = ManualClock()
        self.kept = self.again()

    def again(self) -> UnknownValues:
        """The keeper after a restart."""
        durable = WriteThrough(self.store)
        return UnknownValues(self.store, durable, clock=self.clock, metrics=self.metrics)

    def refuse(
        self, value: str, *, field: str = "input", session: str = "", tenant: str = "t"
    ) -> None:
        where = Seen(tenant=tenant, workflow="w@1.2.0", field=field, session_id=session)
        said = MappedValue(at="/intent", domain="d", from_=value, how=HowMapped.REFUSED)
        self.kept.count(where, [said])


def test_a_value_is_counted_with_its_first_and_last_time_and_a_few_sessions() -> None:
    desk = Desk()
    for number in range(SESSIONS_KEPT + 2):
        desk.refuse("horse", session=f"s{number}")
        desk.clock.advance(1_000)
    (row,) = desk.kept.of("t", "w")
    assert (row.field, row.domain, row.value, row.count) == ("input/intent", "d", "horse", 5)
    assert row.sessions == ("s4", "s3", "s2")
    assert row.first_at < row.last_at
    assert row.version == "1.2.0"


def test_a_restart_finds_every_row_again() -> None:
    desk = Desk()
    desk.refuse("horse")
    desk.refuse("horse")
    desk.refuse("nul\0and\nlines", field="output of act")
    assert desk.again().of("t", "w") == desk.kept.of("t", "w")
    assert [row.count for row in desk.again().of("t", "w")] == [2, 1]


def test_elements_of_a_list_are_one_field() -> None:
    desk = Desk()
    for at in ("/labels/0", "/labels/17"):
        said = MappedValue(at=at, domain="d", from_="x", how=HowMapped.REFUSED)
        desk.kept.count(Seen(tenant="t", workflow="w@1", field="output of act"), [said])
    (row,) = desk.kept.of("t", "w")
    assert (row.field, row.count) == ("output of act/labels/*", 2)


def test_a_full_field_lets_go_of_what_was_seen_least() -> None:
    desk = Desk()
    for number in range(VALUES_PER_FIELD_MAX):
        desk.refuse(f"v{number}")
        desk.refuse(f"v{number}")
    desk.refuse("rare one")
    desk.refuse("rare two")
    values = {row.value for row in desk.kept.of("t", "w")}
    assert len(values) == VALUES_PER_FIELD_MAX
    assert "rare two" in values
    assert "rare one" not in values
    assert desk.again().of("t", "w") == desk.kept.of("t", "w")


def test_only_so_many_fields_are_kept() -> None:
    desk = Desk()
    for number in range(FIELDS_MAX + 3):
        desk.refuse("x", field=f"output of a{number}")
    assert len(desk.kept.of("t", "w")) == FIELDS_MAX


def test_a_tenant_sees_its_own_values_only() -> None:
    desk = Desk()
    desk.refuse("mine")
    desk.refuse("theirs", tenant="u")
    assert [row.value for row in desk.kept.of("t", "w")] == ["mine"]
    assert desk.kept.workflows("t") == (("w", 1),)
    assert desk.kept.of("nobody", "w") == ()


def test_what_a_person_has_judged_is_settled_in_every_field() -> None:
    desk = Desk()
    desk.refuse("horse")
    desk.refuse("horse", field="output of act")
    desk.refuse("cow")
    assert desk.kept.settle("t", "w", domain="d", value="horse") == 2
    assert desk.kept.settle("t", "w", domain="d", value="horse") == 0
    assert [row.value for row in desk.again().of("t", "w")] == ["cow"]


def test_a_deleted_session_takes_along_what_only_it_had_said() -> None:
    desk = Desk()
    desk.refuse("secret", session="s1")
    desk.refuse("shared", session="s1")
    desk.refuse("shared", session="s2")
    desk.kept.forget_session("s1")
    (row,) = desk.again().of("t", "w")
    assert (row.value, row.sessions) == ("shared", ("s2",))


def test_every_outcome_is_counted_by_how_it_was_found() -> None:
    desk = Desk()
    said = MappedValue(at="", domain="d", from_="x", to="X", how=HowMapped.FOLDED)
    desk.kept.count(Seen(tenant="t", workflow="w@1", field="input"), [said], in_domain=3)
    desk.refuse("horse")
    _, text = desk.metrics.render()
    lines = text.decode().splitlines()
    assert 'acp_semantic_values_total{how="EXACT",workflow="w"} 3.0' in lines
    assert 'acp_semantic_values_total{how="FOLDED",workflow="w"} 1.0' in lines
    assert 'acp_semantic_values_total{how="REFUSED",workflow="w"} 1.0' in lines


class Reviews(RuleBasedStateMachine):
    """Values come, are judged and go with their sessions; a plain account says what must be there.

    The bounds are not reached here: what they do has tests of its own.
    """

    def __init__(self) -> None:
        super().__init__()
        self.desk = Desk()
        self.account: dict[tuple[str, str, str], tuple[int, list[str]]] = {}

    @rule(
        value=st.sampled_from("abc"),
        field=st.sampled_from(["input", "output of x"]),
        session=st.sampled_from(["", "s1", "s2", "s3", "s4"]),
        tenant=st.sampled_from(["t", "u"]),
    )
    def refused(self, value: str, field: str, session: str, tenant: str) -> None:
        self.desk.refuse(value, field=field, session=session, tenant=tenant)
        count, sessions = self.account.get((tenant, f"{field}/intent", value), (0, []))
        if session and session not in sessions:
            sessions = [session, *sessions][:SESSIONS_KEPT]
        self.account[tenant, f"{field}/intent", value] = (count + 1, sessions)

    @rule(value=st.sampled_from("abc"), tenant=st.sampled_from(["t", "u"]))
    def judged(self, value: str, tenant: str) -> None:
        gone = [key for key in self.account if (key[0], key[2]) == (tenant, value)]
        assert self.desk.kept.settle(tenant, "w", domain="d", value=value) == len(gone)
        for key in gone:
            del self.account[key]

    @rule(session=st.sampled_from(["s1", "s2", "s3", "s4"]))
    def deleted(self, session: str) -> None:
        self.desk.kept.forget_session(session)
        for key, (count, sessions) in list(self.account.items()):
            if session in sessions:
                left = [one for one in sessions if one != session]
                if left:
                    self.account[key] = (count, left)
                else:
                    del self.account[key]

    @rule()
    def restarted(self) -> None:
        self.desk.kept = self.desk.again()

    @invariant()
    def what_is_kept_is_what_the_account_says(self) -> None:
        kept = {
            (tenant, row.field, row.value): (row.count, list(row.sessions))
            for tenant in ("t", "u")
            for row in self.desk.kept.of(tenant, "w")
        }
        assert kept == self.account
        assert len(self.desk.kept) == len(self.account)


TestReviews = Reviews.TestCase
TestReviews.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
