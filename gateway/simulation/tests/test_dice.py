"""Chance by name: repeatable, even, and apart."""

from gateway.simulation.dice import Dice
from gateway.simulation.random_workflows import parsed, workflow_text


def test_the_same_name_draws_the_same_and_another_name_others() -> None:
    first, again, other = [Dice(*name).random() for name in (("a", 1), ("a", 1), ("a", 2))]
    assert first == again != other


def test_draws_are_even() -> None:
    dice = Dice("even")
    counts = [0] * 10
    for _ in range(20_000):
        counts[dice.below(10)] += 1
    assert all(1_800 < count < 2_200 for count in counts)
    assert 900 < sum(dice.happens(0.05) for _ in range(20_000)) < 1_100


def test_shares_are_kept_and_the_rest_is_the_default() -> None:
    dice = Dice("shares")
    drawn = [dice.weighed(((0.2, "a"), (0.3, "b")), "c") for _ in range(10_000)]
    shares = {name: drawn.count(name) / 10_000 for name in "abc"}
    assert abs(shares["a"] - 0.2) < 0.03
    assert abs(shares["b"] - 0.3) < 0.03
    assert abs(shares["c"] - 0.5) < 0.03


def test_random_workflows_are_valid_and_between_them_use_every_key_of_a_step() -> None:
    keys: set[str] = set()
    for number in range(150):
        text = workflow_text(number, {})
        assert parsed(text).name == f"sim{number}"
        keys |= {key for key in KEYS if f'"{key}":' in text.decode()}
    assert keys == set(KEYS)


KEYS = (
    *(
        "name",
        "role",
        "component",
        "plan",
        "action",
        "condition",
        "input_mapping",
        "output_mapping",
    ),
    *("on", "on_error", "require", "recovery", "pin", "timeout_ms", "repeat"),
    *("fallback", "limits", "contract", "plan", "sla", "rules", "output_schema"),
)
