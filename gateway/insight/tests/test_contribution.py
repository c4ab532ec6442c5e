"""Simulated components whose contributions are known on paper; nothing here depends on luck."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.insight.contribution import STEPS_MAX, Asking, Contribution, PartKind, contribution
from gateway.insight.samples import SessionSample, StepSample
from gateway.insight.tests.worlds import HALF, World, always, by_input, coin, named

CLOSE = 1e-12
FEW = Asking(resamples=20)


def asked(
    baseline: Sequence[SessionSample], new: Sequence[SessionSample], asking: Asking = FEW
) -> Contribution:
    return contribution(baseline, new, chance=np.random.default_rng(7), asking=asking)


def parts(found: Contribution) -> dict[str, float]:
    assert not found.refused, found.refused
    return {part.name: part.value for part in found.parts}


def added(known: Mapping[str, str]) -> float:
    return 0.3 * int(known["a"]) + 0.5 * int(known["b"])


def both(known: Mapping[str, str]) -> float:
    return float(known["a"] == "1" and known["b"] == "1")


def a_and_b(a: Fraction, b: Fraction, reward: object = added) -> list[SessionSample]:
    return World({"a": coin(a), "b": coin(b)}, reward).population()  # type: ignore[arg-type]


def test_components_whose_effects_add_up_get_their_own_effect() -> None:
    found = asked(a_and_b(HALF, HALF), a_and_b(Fraction(4, 5), Fraction(3, 10)))
    assert parts(found) == pytest.approx(
        {"a": 0.09, "b": -0.10, "(inputs)": 0.0, "(uncovered)": 0.0}, abs=CLOSE
    )
    assert found.coverage == 1.0


def test_what_two_do_together_is_shared_between_them() -> None:
    """a: 0.5 -> 0.9, b: 0.25 -> 0.5. Each gains less when it comes first, more behind the other."""
    quarter = Fraction(1, 4)
    new = World({"a": coin(Fraction(9, 10)), "b": coin(HALF)}, both).population()
    found = parts(asked(a_and_b(HALF, quarter, both), new))
    first_a, last_a = 0.4 * 0.25, 0.4 * 0.5
    first_b, last_b = 0.25 * 0.5, 0.25 * 0.9
    assert found["a"] == pytest.approx((first_a + last_a) / 2, abs=CLOSE)
    assert found["b"] == pytest.approx((first_b + last_b) / 2, abs=CLOSE)
    assert sum(found.values()) == pytest.approx(0.45 - 0.125, abs=CLOSE)


def masked(a: Fraction, *, masks: bool) -> list[SessionSample]:
    """b gets what a gave, and the reward is what b gives."""
    passing = by_input({"0": always("0"), "1": always("1")})
    return World(
        {"a": coin(a), "b": always("1") if masks else passing},
        lambda known: float(known["b"]),
        wiring={"b": lambda known: known["a"]},
    ).population()


def test_what_a_later_step_makes_good_is_no_contribution() -> None:
    found = asked(masked(Fraction(9, 10), masks=True), masked(HALF, masks=True))
    assert parts(found) == {"a": 0.0, "b": 0.0, "(inputs)": 0.0, "(uncovered)": 0.0}


def test_who_stops_masking_shares_what_it_lets_through() -> None:
    """Only together do a's fault and b's letting it through cost anything: (0 + 0.4) / 2 for a, and
    b alone loses the 0.1 that a did wrong before."""
    found = parts(asked(masked(Fraction(9, 10), masks=True), masked(HALF, masks=False)))
    assert found["a"] == pytest.approx(-(0.0 + 0.4) / 2, abs=CLOSE)
    assert found["b"] == pytest.approx(-(0.1 + 0.5) / 2, abs=CLOSE)


def mixed(hard: Fraction) -> list[SessionSample]:
    """The same components on easy and hard inputs."""
    on = {"easy": coin(Fraction(9, 10)), "hard": coin(Fraction(1, 5))}
    inputs = {"easy": 1 - hard, "hard": hard}
    return World({"a": by_input(on), "b": by_input(on)}, added, inputs=inputs).population()


def test_other_inputs_alone_are_no_components_doing() -> None:
    found = asked(mixed(Fraction(1, 5)), mixed(Fraction(4, 5)))
    told = parts(found)
    assert told["a"] == pytest.approx(0.0, abs=CLOSE)
    assert told["b"] == pytest.approx(0.0, abs=CLOSE)
    assert told["(inputs)"] == pytest.approx(found.change, abs=CLOSE)
    assert found.change == pytest.approx(-0.8 * 0.7 * 0.6, abs=CLOSE)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_parts_sum_to_the_whole_change(data: st.DataObject) -> None:
    """Whatever the records are: whole populations, scraps, or nothing alike in the two windows."""
    step = st.builds(
        lambda slot, given, came: StepSample(
            slot=slot, component=slot, link=slot, given=given, came=came
        ),
        *(st.sampled_from(words) for words in ("ab", "xy", "01")),
    )
    sessions = st.builds(
        SessionSample,
        given=st.sampled_from("xy"),
        steps=st.lists(step, max_size=3, unique_by=lambda one: one.slot).map(tuple),
        reward=st.one_of(st.none(), st.floats(-1, 1)),
    )
    windows = [data.draw(st.lists(sessions, max_size=12)) for _ in range(2)]
    found = asked(windows[0], windows[1], Asking(resamples=3, coverage_least=0.0))
    if not found.refused:
        assert sum(part.value for part in found.parts) == pytest.approx(found.change, abs=CLOSE)


def test_the_same_through_drawn_orders_beyond_eight_components() -> None:
    def worlds(chance: Fraction) -> list[SessionSample]:
        behaviours = {f"c{place}": coin(chance) for place in range(3)}
        return World(behaviours, lambda known: float("1" not in list(known.values()))).population()

    low, high = worlds(Fraction(1, 4)), worlds(HALF)
    exact = asked(low, high)
    drawn = asked(low, high, Asking(resamples=5, exact_components=2, order_pairs=30))
    assert exact.exact
    assert not drawn.exact
    assert sum(parts(drawn).values()) == pytest.approx(drawn.change, abs=CLOSE)
    # Alike components: each has a third of it, and drawn orders come near.
    for name in ("c0", "c1", "c2"):
        assert parts(exact)[name] == pytest.approx(exact.change / 3, abs=CLOSE)
        assert parts(drawn)[name] == pytest.approx(exact.change / 3, abs=0.02)


def test_a_new_answer_that_nothing_downstream_ever_met_is_uncovered_and_nothing_is_told() -> None:
    wiring = {"b": lambda known: known["a"]}
    old = World({"a": always("1"), "b": always("1")}, added, wiring=wiring).population()
    new = World({"a": always("2"), "b": always("0")}, added, wiring=wiring).population()
    found = asked(old * 10, new * 10)
    assert found.coverage == 0.0
    assert found.parts == ()
    assert "counterparts" in found.refused
    assert found.change == pytest.approx(-0.2)


def test_a_little_that_is_uncovered_stands_beside_the_parts() -> None:
    step = StepSample(slot="a", component="a", link="a", given="never seen again", came="1")
    strange = SessionSample(given="never seen again", steps=(step,), reward=100.0)
    found = asked(a_and_b(HALF, HALF) * 5, [*a_and_b(HALF, HALF) * 5, strange])
    told = parts(found)
    assert found.new.coverage == pytest.approx(20 / 21)
    assert found.coverage == pytest.approx(20 / 21)
    assert told["(uncovered)"] == pytest.approx(found.change, abs=CLOSE)
    assert found.change > 4
    assert told["a"] == pytest.approx(0.0, abs=CLOSE)


def test_a_component_replaced_by_another_is_one_player_with_it() -> None:
    new = named(("a", "b2"), a_and_b(HALF, Fraction(3, 10)))
    assert parts(asked(a_and_b(HALF, HALF), new))["b+b2"] == pytest.approx(-0.1, abs=CLOSE)


def test_stricter_judges_are_no_components_doing() -> None:
    strict = [
        msgspec.structs.replace(one, reward=(one.reward or 0.0) - 0.2)
        for one in a_and_b(HALF, HALF)
    ]
    found = asked(a_and_b(HALF, HALF), strict)
    assert parts(found) == pytest.approx(
        {"(judging)": -0.2, "a": 0.0, "b": 0.0, "(inputs)": 0.0, "(uncovered)": 0.0}, abs=CLOSE
    )


def test_another_workflow_version_is_a_part_of_its_own() -> None:
    """The new version leaves b out for half of the sessions."""

    def versioned(word: str, sessions: Sequence[SessionSample]) -> list[SessionSample]:
        return [msgspec.structs.replace(one, workflow=word) for one in sessions]

    old = versioned("1", a_and_b(HALF, HALF))
    cut = [
        msgspec.structs.replace(one, steps=one.steps[:1], reward=0.3 * int(one.steps[0].came))
        for one in old
    ]
    new = versioned("2", [*old, *cut])
    found = asked(old, new)
    kinds = {part.name: part.kind for part in found.parts}
    assert kinds["(workflow)"] is PartKind.WORKFLOW
    assert parts(found)["(workflow)"] == pytest.approx(-0.125, abs=CLOSE)


def test_in_a_chain_it_does_not_matter_how_a_step_was_reached() -> None:
    """Every input is new, so whole histories never meet; the kind that a finds does."""

    def window(mark: str, a: Fraction) -> list[SessionSample]:
        ways = World(
            {"a": coin(a), "b": by_input({"0": always("0"), "1": always("1")})},
            lambda known: float(known["b"]),
            wiring={"b": lambda known: known["a"]},
        ).population()
        return [msgspec.structs.replace(one, given=f"{mark}{n}") for n, one in enumerate(ways)]

    old, new = window("old", HALF), window("new", Fraction(9, 10))
    assert asked(old * 3, new * 3).refused
    chained = asked(old * 3, new * 3, Asking(resamples=20, chain=True))
    assert parts(chained)["a"] == pytest.approx(0.4, abs=CLOSE)


def test_sessions_that_nobody_judged_are_counted_and_never_a_zero() -> None:
    silent = SessionSample(given="x", reward=None)
    found = asked([*a_and_b(HALF, HALF), silent, silent], a_and_b(HALF, HALF))
    assert found.baseline.unrewarded == 2
    assert found.baseline.mean == pytest.approx(0.4)
    assert asked([silent], [silent]).refused


def test_sessions_of_endless_steps_are_left_out_and_counted() -> None:
    steps = tuple(
        StepSample(slot=str(place), component="a", link="a", given="x", came="1")
        for place in range(STEPS_MAX + 1)
    )
    longest = SessionSample(given="x", steps=steps[:STEPS_MAX], reward=1.0)
    found = asked([longest, SessionSample(given="x", steps=steps, reward=0.0)], [longest])
    assert (found.baseline.sessions, found.baseline.too_long) == (1, 1)
    assert parts(found)["a"] == 0.0


def test_the_same_seed_gives_the_same_answer() -> None:
    windows = a_and_b(HALF, HALF), a_and_b(HALF, Fraction(3, 10))
    assert asked(*windows) == asked(*windows)


WORLDS = 40


def drawn_worlds(a: Fraction, *, worlds: int = WORLDS) -> list[Contribution]:
    """Looks at a change from 1/2 to `a`, each at other sessions."""
    old = World({"a": coin(HALF), "b": coin(HALF)}, added)
    new = World({"a": coin(a), "b": coin(HALF)}, added)
    found = []
    for seed in range(worlds):
        chance = np.random.default_rng(seed)
        windows = old.drawn(150, chance), new.drawn(150, chance)
        found.append(contribution(*windows, chance=chance, asking=Asking(resamples=60)))
    return found


def test_the_intervals_hold_what_is_true() -> None:
    """Of 40 intervals of 95%, fewer than 30 hold the truth once in 7 million times."""
    truth = {"a": 0.3 * 0.3, "b": 0.0}
    held = dict.fromkeys(truth, 0)
    for found in drawn_worlds(Fraction(4, 5)):
        for part in found.parts:
            if part.name in truth and part.span is not None:
                held[part.name] += part.span.low <= truth[part.name] <= part.span.high
    assert min(held.values()) >= 30, held


def test_without_a_change_the_variance_of_contributions_is_about_nothing() -> None:
    """Five of its own standard errors; the plain variance of the parts is far over that."""
    found = drawn_worlds(HALF, worlds=100)
    signals = np.array([one.variance for one in found], dtype=float)
    error = signals.std(ddof=1) / np.sqrt(len(found))
    assert abs(signals.mean()) < 5 * error
    plain = [np.var([parts(one)["a"], parts(one)["b"]], ddof=1) for one in found]
    assert np.mean(plain) > 5 * error


def test_with_a_change_the_variance_of_contributions_is_what_is_true() -> None:
    signals = np.array([one.variance for one in drawn_worlds(Fraction(4, 5))], dtype=float)
    truth = float(np.var([0.09, 0.0], ddof=1))
    error = signals.std(ddof=1) / np.sqrt(WORLDS)
    assert abs(signals.mean() - truth) < 5 * error
    assert signals.mean() > 5 * error
