"""The dashboard's SQL on a real store, against the same figures counted in Python.

A few hundred sessions of two tenants, drawn: every status, twins, retries, results taken over,
fallbacks, judgements; a part delivered twice and a part again at a newer version.
"""

import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from acp_spec.model.enums import TERMINAL_SESSION, SessionStatus
from acp_spec.model.errors import AcpError, Code
from acp_spec.model.grounding import Grounding, Review
from acp_spec.model.times import rfc3339
from acp_spec.model.trajectory import (
    Attempt,
    OperationalReward,
    QualityReward,
    Rewards,
    Trajectory,
)
from gateway.insight.signals import quantile_ms, signals
from gateway.runtime.dashboard.one_session import session_page
from gateway.stores.records.questions import components, errors, quality, series, workflows
from gateway.stores.records.questions import sessions as session_questions
from gateway.stores.records.questions.question import Question, Row, nearest_rank
from gateway.stores.records.questions.sessions import SessionItem
from gateway.stores.records.questions.span import Span
from gateway.stores.records.reach import Limits, Reader
from gateway.stores.records.tests.childhood import Child
from gateway.stores.records.tests.sessions import AT_MS, name_of, new_log, put, whole

SESSIONS = 240
PAGE = 17
BANK = "ba'nk\\"
WORKFLOWS = ("hotline@1.0", "hotline@1.1", "hot@1.0", "hotline2@1.0")
COMPONENTS = ("cards", "mail", "o'dd\\@{x:String}")
REASONS = ("", "", "", "TIMEOUT", "UNAVAILABLE", "it's\nodd")
STATUSES = (*(SessionStatus.SUCCEEDED,) * 4, SessionStatus.FAILED, SessionStatus.CANCELLED)


def drawn(number: int, chance: random.Random) -> Trajectory:
    status = chance.choice(STATUSES)
    failed = status is SessionStatus.FAILED
    took_ms = chance.randrange(1, 5_000)
    scored = chance.choice((None, None, 0.0, 0.25, 1.0))
    opened_ms = AT_MS + number * 50
    return msgspec.structs.replace(
        whole(number),
        session_id=name_of(number * 50),
        tenant=chance.choice(("default", BANK)),
        workflow=chance.choice(WORKFLOWS),
        status=status,
        fell_back=status is not SessionStatus.CANCELLED and chance.random() < 0.3,
        error=_error(chance.choice(("TIMEOUT", "LOOP_LIMIT"))) if failed else None,
        calls=tuple(_attempt(place, chance) for place in range(chance.randrange(5))),
        twin_of="s" if chance.random() < 0.1 else "",
        rewards=Rewards(
            quality=(QualityReward(name="helpful", value=scored),),
            operational=OperationalReward(succeeded=status is SessionStatus.SUCCEEDED),
        ),
        grounding=Grounding(review=chance.choice(list(Review))),
        opened_at=rfc3339(opened_ms),
        ended_at=rfc3339(opened_ms + took_ms),
    )


def _attempt(place: int, chance: random.Random) -> Attempt:
    reason = chance.choice(REASONS)
    return Attempt(
        call_id=f"c{place // 2}",
        attempt=place % 2 + 1,
        step="act",
        role=chance.choice(("EXECUTE", "REFLECT")),
        component=chance.choice((*COMPONENTS, "")),
        component_version=chance.choice(("1.0", "2.0")),
        action=chance.choice(("card.freeze", "mail.send")),
        error=_error(reason) if reason else None,
        reused=chance.random() < 0.1,
        ended_at=rfc3339(AT_MS),
        wait_ms=chance.randrange(50),
        service_ms=chance.choice((None, 3, 17, 800)),
    )


def _error(reason: str) -> AcpError:
    return AcpError(code=Code.UNAVAILABLE, reason=reason, message="no")


def newer(one: Trajectory) -> Trajectory:
    """The same session judged later: another reward, another state of its review."""
    judged = QualityReward(name="helpful", value=0.75)
    rewards = msgspec.structs.replace(one.rewards, quality=(judged,))
    return msgspec.structs.replace(
        one, sequence=one.sequence + 1, rewards=rewards, grounding=Grounding(review=Review.DONE)
    )


class Town:
    """The store, and what is in it as Python has it."""

    def __init__(self, child: Child) -> None:
        chance = random.Random(5)
        made = [drawn(number, chance) for number in range(SESSIONS)]
        judged = [newer(one) for one in made[::7]]
        self.child = child
        self.log = new_log(child.log_dir)
        child.log_dir.mkdir(parents=True, exist_ok=True)
        for batch in (made, made[::5], judged):
            put(self.log, *batch)
        child.fed()
        newest = {one.session_id: one for one in (*made, *judged)}
        self.all = sorted(newest.values(), key=lambda one: one.session_id)
        self._reader = Reader(child.endpoint, timeout_ms_max=60_000)

    def rows(self, question: Question[Row]) -> list[Row]:
        return self._reader.rows(question, Limits(timeout_ms=60_000))

    def ended(self, span: Span) -> list[Trajectory]:
        return [one for one in self.all if is_in(one, span)]


def is_in(one: Trajectory, span: Span) -> bool:
    ended = one.ended_at_ms
    assert ended is not None
    return (
        one.tenant == span.tenant
        and not one.twin_of
        and one.status in TERMINAL_SESSION
        and span.from_ms <= ended < span.to_ms
        and span.workflow in ("", one.workflow, one.workflow.partition("@")[0])
        and (not span.component or any(row.component == span.component for row in one.calls))
    )


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    with Child(tmp_path_factory.mktemp("town")) as child:
        yield Town(child)


def spans() -> Iterator[Span]:
    """All of it, and parts of it in every way."""
    middle = AT_MS + SESSIONS * 25
    odd = COMPONENTS[2]
    for tenant, workflow, component, from_ms, to_ms in (
        ("default", "", "", AT_MS, AT_MS + 10_000_000),
        (BANK, "", "", AT_MS + 999, middle),
        ("default", "hotline", "", AT_MS + 999, middle),
        ("default", "", odd, AT_MS, AT_MS + 10_000_000),
        (BANK, "hotline@1.1", odd, AT_MS, middle),
        (BANK, "nowhere", "", AT_MS, AT_MS + 10_000_000),
    ):
        yield Span(
            tenant=tenant, from_ms=from_ms, to_ms=to_ms, workflow=workflow, component=component
        )


def test_the_golden_signals_are_those_of_the_trajectories(town: Town) -> None:
    for span in spans():
        wanted = signals(town.ended(span))
        versions = town.rows(workflows.by_version(span))
        assert {
            (f"{row.name}@{row.version}", row.succeeded, row.failed, row.cancelled): (
                row.success_rate,
                row.p95_ms,
            )
            for row in versions
        } == {
            (row.workflow, row.succeeded, row.failed, row.cancelled): (
                row.success_rate,
                row.p95_ms,
            )
            for row in wanted.workflows
        }
        blamed = [
            (row.name, row.sessions, row.fallbacks, row.fallback_rate)
            for row in town.rows(components.blame(span))
        ]
        assert blamed == [
            (row.component, row.sessions, row.fallbacks, row.fallback_rate)
            for row in wanted.components
        ]


@pytest.mark.parametrize("hundredths", [50, 95])
def test_quantiles_are_the_nearest_rank_also_where_it_is_whole(town: Town, hundredths: int) -> None:
    for count in (1, 2, 19, 20, 21, 40, 100, 101, 1_000):
        sql = f"SELECT {nearest_rank('number', hundredths)} AS at FROM numbers({count})"
        (found,) = town.rows(Question(sql=sql, row=At, values={}))
        assert found.at == quantile_ms(list(range(count)), hundredths / 100), count
    (nothing,) = town.rows(
        Question(
            sql=f"SELECT {nearest_rank('number', hundredths)} AS at FROM numbers(0)",
            row=At,
            values={},
        )
    )
    assert nothing.at is None


class At(msgspec.Struct, frozen=True):
    at: int | None


def test_attempts_and_their_errors_are_counted_per_version_and_action(town: Town) -> None:
    for span in spans():
        rows = [
            row
            for one in town.ended(span)
            for row in one.calls
            if row.component and not row.reused and span.component in ("", row.component)
        ]
        by_version = {
            (row.name, row.version): (row.calls, row.failed, row.wait_p95_ms, row.service_p95_ms)
            for row in town.rows(components.by_version(span))
        }
        assert by_version == counted(rows, lambda row: (row.component, row.component_version))
        by_action = {
            (row.action,): (row.calls, row.failed, row.wait_p95_ms, row.service_p95_ms)
            for row in town.rows(components.by_action(span))
        }
        assert by_action == counted(rows, lambda row: (row.action,))
        if span.component:
            reasons = {row.reason: row.count for row in town.rows(errors.of_attempts(span))}
            assert sum(reasons.values()) == sum(row.error is not None for row in rows)


def counted(
    rows: list[Attempt], key: Callable[[Attempt], tuple[str, ...]]
) -> dict[tuple[str, ...], tuple[int, int, int | None, int | None]]:
    groups: defaultdict[tuple[str, ...], list[Attempt]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return {name: _figures(group) for name, group in groups.items()}


def _figures(rows: list[Attempt]) -> tuple[int, int, int | None, int | None]:
    services = [row.service_ms for row in rows if row.service_ms is not None]
    return (
        len(rows),
        sum(row.error is not None for row in rows),
        quantile_ms([row.wait_ms for row in rows], 0.95),
        quantile_ms(services, 0.95) if services else None,
    )


def test_totals_steps_and_judgements_add_up(town: Town) -> None:
    for span in spans():
        ended = town.ended(span)
        named = town.rows(workflows.by_name(span))
        totals = [row for row in named if not row.name]
        assert [row.ended for row in totals] == ([len(ended)] if totals else [])
        assert sum(row.ended for row in named if row.name) == len(ended)
        waiting = sum(one.grounding == Grounding(review=Review.WAITING) for one in ended)
        assert sum(row.in_review for row in totals) == waiting
        points = town.rows(series.series(span, 1_000))
        assert sum(point.ended for point in points) == len(ended)
        assert [point.at for point in points] == sorted(point.at for point in points)
        assert all(point.at % 1_000 == 0 for point in points)
        (judged,) = town.rows(quality.judged(span))
        given = [found for one in ended if (found := session_page(one).quality) is not None]
        assert (judged.ended, judged.judged) == (len(ended), len(given))
        assert judged.quality == (pytest.approx(sum(given) / len(given)) if given else None)
        (opened,) = town.rows(workflows.opened(span))
        assert opened.opened == sum(
            one.tenant == span.tenant
            and not one.twin_of
            and span.from_ms <= one.opened_at_ms < span.to_ms
            and span.workflow in ("", one.workflow, one.workflow.partition("@")[0])
            for one in town.all
        )


FILTERS: tuple[Mapping[str, str | int], ...] = (
    {},
    {"workflow": "hotline"},
    {"workflow": "hotline@1.1", "status": "SUCCEEDED"},
    {"version": "1.0", "component": COMPONENTS[2], "review": "WAITING"},
    {"error": "TIMEOUT", "since": AT_MS + 2_000, "until": AT_MS + 9_000},
    {"error": "it's\nodd", "component": "mail", "status": "FAILED", "workflow": "hotline"},
    {"workflow": "' OR 1 = 1 --"},
    {"component": "{tenant:String}", "error": "%"},
    {"version": "\\' UNION ALL SELECT 1"},
)


@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize("tenant", ["default", BANK, "nobody' OR tenant != '"])
def test_all_filters_hold_together_and_pages_add_up_to_the_list(
    town: Town, tenant: str, filters: Mapping[str, str | int]
) -> None:
    wanted = [one for one in reversed(town.all) if passes(one, {"tenant": tenant, **filters})]
    got = [item for page in paged(town, tenant, filters, limit=9) for item in page]
    assert [item.session_id for item in got] == [one.session_id for one in wanted]
    for item, one in zip(got, wanted, strict=True):
        shown = session_page(one)
        assert (item.workflow, item.version, item.status, item.opened_at, item.ended_at) == (
            *(shown.workflow, shown.version, shown.status, shown.opened_at, shown.ended_at),
        )
        assert (item.duration_ms, item.quality, item.review, item.attempts) == (
            *(shown.duration_ms, shown.quality, shown.review, shown.attempts),
        )


def passes(one: Trajectory, filters: Mapping[str, str | int]) -> bool:
    said: dict[str, Callable[[str | int], bool]] = {
        "tenant": lambda value: one.tenant == value,
        "workflow": lambda value: value in (one.workflow, one.workflow.partition("@")[0]),
        "version": lambda value: one.workflow.partition("@")[2] == value,
        "component": lambda value: any(row.component == value for row in one.calls),
        "status": lambda value: one.status.value == value,
        "error": lambda value: value in reasons_of(one),
        "review": lambda value: one.grounding is not None and one.grounding.review.value == value,
        "since": lambda value: one.opened_at_ms >= int(value),
        "until": lambda value: one.opened_at_ms < int(value),
    }
    return not one.twin_of and all(said[name](value) for name, value in filters.items())


def reasons_of(one: Trajectory) -> set[str]:
    own = {one.error.reason} if one.error is not None else set[str]()
    return own | {row.error.reason for row in one.calls if row.error is not None}


def paged(
    town: Town, tenant: str, filters: Mapping[str, str | int], *, limit: int
) -> Iterator[list[SessionItem]]:
    after: dict[str, str | int] = {}
    while True:
        page = town.rows(session_questions.page(tenant, {**filters, **after}, limit=limit))
        yield page
        if len(page) < limit:
            return
        after = {"after": page[-1].session_id}


def test_pages_stay_what_they_were_while_sessions_come_and_are_judged(tmp_path: Path) -> None:
    chance = random.Random(6)

    def session(number: int) -> Trajectory:
        return msgspec.structs.replace(drawn(number, chance), tenant="default", twin_of="")

    with Child(tmp_path) as child:
        child.log_dir.mkdir(parents=True, exist_ok=True)
        log = new_log(child.log_dir)
        there = [session(number) for number in range(60)]
        put(log, *there)
        child.fed()
        reader = Reader(child.endpoint, timeout_ms_max=60_000)
        got: list[str] = []
        after: dict[str, str | int] = {}
        for turn in itertools.count():
            question = session_questions.page("default", after, limit=PAGE)
            page = reader.rows(question, Limits(timeout_ms=60_000))
            got += [item.session_id for item in page]
            if len(page) < PAGE:
                break
            after = {"after": page[-1].session_id}
            put(log, session(100 + turn), newer(there[3 * turn]), there[5])
            child.fed()
    assert sorted(got) == sorted({*got}), "nobody comes twice"
    assert set(got) >= {one.session_id for one in there}
