"""The shapes of secrets: each is found, and what only resembles it is not."""

import pytest

from gateway.telemetry.secret_shapes import SHAPES, may_hold_a_card, may_hold_a_key

BY_KIND = {shape.kind: shape for shape in SHAPES}
LONG = "abcdefGHIJKLMNOP0123456789abcdefGHIJ"

FOUND = [
    ("card", "4111111111111111"),
    ("card", "5555-5555-5555-4444"),
    ("card", "2223003122003222"),
    ("card", "3782 822463 10005"),
    ("card", "30569309025904"),
    ("card", "3530111333300000"),
    ("card", "6011111111111117"),
    ("card", "6200000000000005"),
    *(
        ("key", key)
        for key in (
            "AKIAIOSFODNN7EXAMPLE",
            f"ghp_{LONG}",
            f"github_pat_{LONG}",
            f"glpat-{LONG}",
            "xoxb-123456789012-abcdef",
            f"sk-proj-{LONG}",
            f"sk_live_{LONG}",
            f"AIza{LONG}",
            f"ya29.{LONG}",
            f"npm_{LONG}",
            f"hf_{LONG}",
            f"pypi-{LONG}",
            f"SG.{LONG}.{LONG}",
        )
    ),
    ("web_token", f"eyJhbGciOiJIUzI1NiJ9.{LONG}.{LONG}"),
]


@pytest.mark.parametrize(("kind", "secret"), FOUND)
def test_every_shape_is_found_where_it_stands(kind: str, secret: str) -> None:
    text = f"so {secret}, and"
    assert [text[a:b] for a, b in BY_KIND[kind].find(text)] == [secret]
    assert not BY_KIND[kind].needs or any(need in text.lower() for need in BY_KIND[kind].needs)
    assert may_hold_a_card(text.encode()) if kind == "card" else may_hold_a_key(text.encode())


@pytest.mark.parametrize(
    "text",
    ["4111111111111112", "1234567812345670", "0.4111111111111111", "41111111111111110000",
     "1764480000000", "+49 30 1234567", "2026-11-30T10:11:12"],
)  # fmt: skip
def test_other_numbers_are_no_cards(text: str) -> None:
    assert list(BY_KIND["card"].find(text)) == []


@pytest.mark.parametrize(
    "text", ["task-management-systems", "asia", f"x{LONG}", "sg.", "risk-averse"]
)
def test_other_words_are_no_keys(text: str) -> None:
    assert list(BY_KIND["key"].find(text)) == []


def test_numbers_around_a_card_hide_no_digit_of_it() -> None:
    text = "on 30 4111-1111-1111-1111, 378282246310005 4111111111111111"
    hidden = "".join(text[a:b] for a, b in BY_KIND["card"].find(text))
    assert "4111-1111-1111-1111" in hidden
    assert "378282246310005" in hidden
    assert "4111111111111111" in hidden
