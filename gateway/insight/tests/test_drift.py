"""No change, planted changes, and changes of the inputs alone; false alarms are counted.

Every draw has its seed, and every bound is the exact binomial one that chance breaks once in a
million: a test fails because the code changed.
"""

from collections.abc import Callable, Sequence
from functools import cache
from math import comb

import numpy as np
import pytest

from gateway.insight.drift import (
    Drift,
    FieldDrift,
    Looking,
    Verdict,
    drift,
    exchanges_for,
)
from gateway.insight.fields import FieldKind
from gateway.insight.samples import CallSample, Json, Side
from gateway.insight.strata import EQUAL

LOOKS, UNCHANGED = 40, 120
QUICK = Looking(exchanges_least=239)
"""As few exchanges as six tests can do with."""
ONE_IN_A_MILLION = 1e-6
WORDS = ("your card is blocked", "please wait", "the transfer was booked", "no such account")


def chance_of_more(least: int, *, of: int, p: float) -> float:
    """P(X >= least) of a binomial."""
    return sum(comb(of, hits) * p**hits * (1 - p) ** (of - hits) for hits in range(least, of + 1))


@cache
def most_by_chance(of: int, p: float) -> int:
    """So many hits and more come once in a million or less."""
    return next(k for k in range(of + 2) if chance_of_more(k, of=of, p=p) <= ONE_IN_A_MILLION)


Answer = Callable[[np.random.Generator, str], Json]


def answer(chance: np.random.Generator, kind: str) -> Json:
    """A code, a number and a text, all of which depend on the kind asked for."""
    hard = kind == "hard"
    return {
        "status": "OPEN" if chance.random() < (0.8 if hard else 0.3) else "CLOSED",
        "amount": float(chance.normal(10.0 + 3 * hard, 2.0)),
        "text": str(WORDS[int(chance.integers(2)) + 2 * hard]) + f", case {chance.integers(99)}",
    }


def window(
    sessions: int,
    chance: np.random.Generator,
    *,
    hard: float = 0.5,
    says: Answer = answer,
    failing: float = 0.0,
    version: str = "1.0.0",
) -> list[CallSample]:
    found = []
    for number in range(sessions):
        kind = "hard" if chance.random() < hard else "easy"
        fails = chance.random() < failing
        found.append(
            CallSample(
                session_id=str(number),
                component="desk",
                version=version,
                link="desk.ask",
                given={"kind": kind},
                came=None if fails else says(chance, kind),
                outcome="INTERNAL" if fails else "OK",
            )
        )
    return found


def looked(
    seed: int,
    *,
    sessions: int = 200,
    says: Answer = answer,
    hard: float = 0.5,
    failing: float = 0.0,
    looking: Looking = QUICK,
) -> Drift:
    """One look at a window after a plain baseline."""
    chance = np.random.default_rng(seed)
    old = window(sessions, chance)
    new = window(sessions, chance, says=says, hard=hard, failing=failing, version="1.1.0")
    return drift(old, new, chance=chance, looking=looking)


def drifted(found: Drift) -> set[str]:
    return {one.field for one in found.drifted}


def field(found: Drift, name: str, kind: FieldKind) -> FieldDrift:
    (row,) = (one for one in found.fields if one.field == name and one.kind is kind)
    return row


@pytest.fixture(scope="module")
def unchanged() -> Sequence[Drift]:
    return [looked(seed) for seed in range(UNCHANGED)]


def test_of_looks_without_a_change_no_more_than_promised_raise_an_alarm(
    unchanged: Sequence[Drift],
) -> None:
    """Without the correction for all fields it would be more."""
    most = most_by_chance(UNCHANGED, 0.05)
    alarms = sum(bool(found.drifted) for found in unchanged)
    assert alarms < most, alarms
    plain = sum(any(row.p is not None and row.p <= 0.05 for row in one.fields) for one in unchanged)
    assert plain >= most, plain


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_p_values_without_a_change_are_as_even_as_they_claim(
    unchanged: Sequence[Drift], share: float
) -> None:
    """Too few small ones would mean that real drift is missed."""
    rows = [field(found, "/amount", FieldKind.NUMBER) for found in unchanged]
    small = sum(row.p is not None and row.p <= share for row in rows)
    assert small < most_by_chance(UNCHANGED, share), small
    assert UNCHANGED - small < most_by_chance(UNCHANGED, 1 - share), small


def test_what_is_shown_is_about_nothing_without_a_change(unchanged: Sequence[Drift]) -> None:
    """The plain divergence is not: bins alone make some. Five standard errors."""
    rows = [field(found, "/amount", FieldKind.NUMBER) for found in unchanged]
    shown = np.array([row.drift for row in rows], dtype=float)
    plain = np.array([row.kl for row in rows], dtype=float)
    error = shown.std(ddof=1) / np.sqrt(UNCHANGED)
    assert abs(shown.mean()) < 5 * error
    assert plain.mean() > 5 * error


def test_other_inputs_alone_raise_no_alarm_at_the_output_and_one_at_the_input() -> None:
    """Half of the inputs were hard, now three of four are; answers to each kind are the same."""
    looks = [looked(seed, hard=0.75) for seed in range(LOOKS)]
    output = [one for found in looks for one in found.drifted if one.side is Side.OUTPUT]
    assert len(output) < most_by_chance(LOOKS, 0.05)
    seen = sum("/kind" in drifted(found) for found in looks)
    assert seen > LOOKS * 0.9, seen
    assert {one.alike_in for one in looks[0].fields if one.side is Side.OUTPUT} == {(EQUAL,)}


def bigger(chance: np.random.Generator, kind: str) -> Json:
    """One and a half standard deviations."""
    plain = answer(chance, kind)
    assert isinstance(plain, dict)
    return {**plain, "amount": float(chance.normal(13.0 + 3 * (kind == "hard"), 2.0))}


def more_open(chance: np.random.Generator, kind: str) -> Json:
    plain = answer(chance, kind)
    assert isinstance(plain, dict)
    return {**plain, "status": "OPEN" if chance.random() < 0.85 else "CLOSED"}


def other_code(chance: np.random.Generator, kind: str) -> Json:
    """A value that the baseline never had, now and then."""
    plain = answer(chance, kind)
    assert isinstance(plain, dict)
    return {**plain, "status": "PENDING"} if chance.random() < 0.3 else plain


def other_words(chance: np.random.Generator, kind: str) -> Json:
    """As long as before, and in other words."""
    plain = answer(chance, kind)
    assert isinstance(plain, dict)
    return {**plain, "text": str(plain["text"])[::-1]}


def longer(chance: np.random.Generator, kind: str) -> Json:
    plain = answer(chance, kind)
    assert isinstance(plain, dict)
    return {**plain, "text": str(plain["text"]) * 2}


def without(chance: np.random.Generator, kind: str) -> Json:
    plain = answer(chance, kind)
    assert isinstance(plain, dict)
    return {name: plain[name] for name in ("status", "text")}


PLANTED: Sequence[tuple[Answer, str, FieldKind]] = (
    (bigger, "/amount", FieldKind.NUMBER),
    (more_open, "/status", FieldKind.CODE),
    (other_code, "/status", FieldKind.CODE),
    (other_words, "/text", FieldKind.WORDS),
    (longer, "/text", FieldKind.LENGTH),
    (without, "/amount", FieldKind.NUMBER),
)


def test_a_planted_change_is_found_where_it_is() -> None:
    """In each of its five looks; elsewhere no more alarms are raised than promised."""
    elsewhere = 0
    for says, name, kind in PLANTED:
        for seed in range(5):
            found = looked(seed, says=says)
            row = field(found, name, kind)
            assert row.verdict is Verdict.DRIFT, row
            assert row.drift is not None
            assert row.drift > 0.02
            elsewhere += drifted(found) != {name}
    assert elsewhere < most_by_chance(30, 0.05), elsewhere


def test_failures_drift_as_outcomes_and_do_not_blur_the_answers() -> None:
    looks = [drifted(looked(seed, failing=0.2, sessions=300)) for seed in range(8)]
    assert all("(outcome)" in one for one in looks)
    assert sum(one != {"(outcome)"} for one in looks) < most_by_chance(8, 0.05)


def test_a_hidden_change_is_found_under_other_inputs_too() -> None:
    for seed in range(4):
        assert drifted(looked(seed, says=bigger, hard=0.75, sessions=300)) >= {"/kind", "/amount"}


def test_under_two_hundred_records_it_says_so_instead_of_a_p_value() -> None:
    found = looked(1, sessions=199, says=bigger)
    assert {one.verdict for one in found.fields} == {Verdict.TOO_FEW}
    assert {(one.p, one.drift, one.baseline, one.new) for one in found.fields} == {
        (None, None, 199, 199)
    }
    assert found.tests == 0


def test_inputs_that_never_repeat_are_compared_by_what_they_have_in_common() -> None:
    """Each has an id of its own; the kind, whose mix changed most, is what counts."""
    chance = np.random.default_rng(3)

    def marked(calls: list[CallSample]) -> list[CallSample]:
        return [
            CallSample(
                session_id=one.session_id,
                component=one.component,
                version=one.version,
                link=one.link,
                given={**one.given, "id": f"{chance.random()}"},  # type: ignore[dict-item]
                came=one.came,
            )
            for one in calls
        ]

    old, new = marked(window(300, chance)), marked(window(300, chance, hard=0.75))
    found = drift(old, new, chance=chance)
    assert "/kind" in field(found, "/amount", FieldKind.NUMBER).alike_in
    assert field(found, "/kind", FieldKind.CODE).verdict is Verdict.DRIFT
    assert field(found, "/amount", FieldKind.NUMBER).verdict is Verdict.STEADY


def test_versions_are_looked_at_apart_and_newcomers_are_named() -> None:
    chance = np.random.default_rng(4)
    old = window(200, chance)
    good, bad = (
        window(200, chance, version="1.1.0"),
        window(200, chance, says=bigger, version="2.0.0"),
    )
    stranger = CallSample(session_id="s", component="other", version="1.0.0", link="other.do")
    found = drift(old, [*good, *bad, stranger], chance=chance)
    assert [one.version for one in found.drifted if one.field == "/amount"] == ["2.0.0"]
    assert {one.version for one in found.fields} == {"1.1.0", "2.0.0"}
    assert found.only_new == ("other@1.0.0 other.do",)


def test_declared_codes_are_bins_of_their_own_although_never_seen() -> None:
    chance = np.random.default_rng(5)
    codes = {("desk", "desk.ask"): {"/amount": ("1", "2")}}
    found = drift(window(200, chance), window(200, chance), chance=chance, declared=codes)
    assert field(found, "/amount", FieldKind.CODE).verdict is not Verdict.TOO_FEW


def test_the_same_seed_gives_the_same_look() -> None:
    """To what a library's summing in other orders may leave of it."""
    one, other = looked(6), looked(6)
    assert [row.p for row in one.fields] == [row.p for row in other.fields]
    assert [row.drift for row in one.fields] == pytest.approx([row.drift for row in other.fields])


def test_more_tests_get_more_exchanges_so_that_the_strictest_can_be_reached() -> None:
    looking = Looking()
    assert exchanges_for(10, looking) == looking.exchanges_least
    assert exchanges_for(100, looking) == 3_999
    assert exchanges_for(100_000, looking) == looking.exchanges_max
    assert 100 / (1 + exchanges_for(100, looking)) <= looking.level / 2
