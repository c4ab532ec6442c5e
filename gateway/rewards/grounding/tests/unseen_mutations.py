"""Mutations for the held-out half alone: written before the rules were first run on it.

They take other ways to be right and wrong than those the rules were tuned on.
"""

import json
import re
from dataclasses import replace
from decimal import Decimal

from gateway.rewards.grounding.tests.claim_bases import Base
from gateway.rewards.grounding.tests.mutations import (
    MONTHS,
    Case,
    Draw,
    Mutation,
    grouped,
    numbers_in,
    plain_case,
    swap,
)


def transposed(base: Base, draw: Draw) -> Case | None:
    """Two neighbouring digits changed places."""
    for key in numbers_in(base):
        shown = base.member(key)
        pairs = [
            i
            for i in range(len(shown) - 1)
            if shown[i : i + 2].isdigit() and shown[i] != shown[i + 1]
        ]
        if pairs:
            i = draw.one_of("pair", pairs)
            wrong = shown[:i] + shown[i + 1] + shown[i] + shown[i + 2 :]
            return replace(plain_case(base), text=swap(base.text, shown, wrong))
    return None


def ten_times(base: Base, draw: Draw) -> Case | None:
    """The point slipped by one place."""
    keys = [key for key in numbers_in(base) if Decimal(base.member(key))]
    if not keys:
        return None
    shown = base.member(draw.one_of("key", keys))
    wrong = Decimal(shown) * 10
    return replace(plain_case(base), text=swap(base.text, shown, f"{wrong.normalize():f}"))


def other_in_locale(base: Base, draw: Draw) -> Case | None:
    """Another number, and written in another country's way."""
    keys = [key for key in numbers_in(base) if len(base.member(key)) > 6]
    if not keys:
        return None
    shown = base.member(draw.one_of("key", keys))
    places = len(shown.partition(".")[2])
    wrong = f"{Decimal(shown) * Decimal('1.07'):.{places}f}"
    group, point = draw.one_of("way", ((".", ","), (" ", ","), (",", "."), ("\u00a0", ",")))
    return replace(plain_case(base), text=swap(base.text, shown, grouped(wrong, group, point)))


def other_month_in_words(base: Base, draw: Draw) -> Case | None:
    found = re.search(r"(\d{4})-(\d{2})-(\d{2})", base.text)
    if found is None:
        return None
    month = (int(found[2]) + 1 + draw.number("by", 10)) % 12
    name = MONTHS[month]
    if month + 1 == int(found[2]):
        return None
    wrong = draw.one_of("way", (f"{int(found[3])} {name} {found[1]}", f"{name} {int(found[3])}"))
    return replace(plain_case(base), text=base.text.replace(found[0], wrong))


def flag_turned(base: Base, draw: Draw) -> Case | None:
    """Yes for no, and in other words."""
    if base.value not in ("true", "false"):
        return None
    thing = base.text.split(":")[0].lower()
    wrong = "off" if base.value == "true" else "on"
    denied = f"The {thing} is not enabled." if base.value == "true" else f"The {thing} is enabled."
    text = draw.one_of("way", (f"{thing.capitalize()}: {wrong}.", denied))
    return replace(plain_case(base), text=text)


def flag_in_words(base: Base, draw: Draw) -> Case | None:
    """True: the flag in other words."""
    if base.value not in ("true", "false"):
        return None
    thing = base.text.split(":")[0]
    state = "enabled" if base.value == "true" else draw.one_of("no", ("disabled", "not enabled"))
    return replace(plain_case(base), text=f"{thing} is {state}.")


_COUNTED = {
    "fee": "fee", "arrears": "arrears", "delivery_days": "delivery", "duty": "duty",
    "pin_tries_left": "tries", "seats": "seats",
}  # fmt: skip
_PERHAPS_NONE = {
    "fee": "fee", "arrears": "arrears", "duty": "duty", "shipping": "shipping",
    "pin_tries_left": "tries left", "snapshots": "snapshots", "delay_minutes": "delay",
}  # fmt: skip


def nothing_said(base: Base, draw: Draw) -> Case | None:
    """Says that there is none of what there is."""
    members: dict[str, object] = json.loads(base.output, parse_float=Decimal)
    for key, what in _COUNTED.items():
        value = members.get(key)
        if isinstance(value, int | Decimal) and value:
            case = plain_case(base)
            sources = (f"/calls/c1/output/{key}",)
            return replace(case, text=f"There is no {what}.", value="", unit="", sources=sources)
    return None


def nothing_there(base: Base, draw: Draw) -> Case | None:
    """True: there is none, and so it is said."""
    members: dict[str, object] = json.loads(base.output, parse_float=Decimal)
    for key, what in _PERHAPS_NONE.items():
        if key in members and not members[key]:
            case = plain_case(base)
            text = draw.one_of("way", (f"There is no {what}.", f"It comes without {what}."))
            sources = (f"/calls/c1/output/{key}",)
            return replace(case, text=text, value="", unit="", sources=sources)
    return None


def other_field(base: Base, draw: Draw) -> Case | None:
    """The value's source is another member of the same output."""
    members: dict[str, object] = json.loads(base.output, parse_float=str, parse_int=str)
    own = members[base.value_key]
    others = [
        k for k, v in members.items() if k not in base.keys and isinstance(v, str) and v != own
    ]
    if not others or isinstance(own, bool | list):
        return None
    case = plain_case(base)
    wrong = f"/calls/c1/output/{draw.one_of('key', others)}"
    return replace(case, sources=(wrong, *case.sources[1:]))


def wrong_derivation(base: Base, draw: Draw) -> Case | None:
    """The expression over the sources gives another number than the value."""
    keys = numbers_in(base)
    if base.value_key not in keys or not Decimal(base.member(base.value_key)):
        return None
    by = draw.one_of("by", ("sources[0] * 2", "sources[0] + 1", f"{base.value_key} - 3"))
    return replace(plain_case(base), derivation=by)


def right_derivation(base: Base, draw: Draw) -> Case | None:
    """True: twice the value, and the expression says so."""
    if base.value_key not in numbers_in(base):
        return None
    twice = Decimal(base.member(base.value_key)) * 2
    case = plain_case(base)
    return replace(
        case,
        text=f"Twice that is {twice} {base.unit}".strip() + ".",
        value=str(twice),
        sources=case.sources[:1],
        derivation="sources[0] * 2",
    )


def roles_swapped(base: Base, draw: Draw) -> Case | None:
    """What was given as from is given as to; or as is and was."""
    found = re.search(r"from account (\w+) to (\w+)", base.text)
    if found is not None:
        swapped = f"from account {found[2]} to {found[1]}"
        return replace(plain_case(base), text=base.text.replace(found[0], swapped))
    found = re.search(r"is now (\w+); it was (\w+)", base.text)
    if found is not None and found[1] != found[2]:
        swapped = f"is now {found[2]}; it was {found[1]}"
        return replace(plain_case(base), text=base.text.replace(found[0], swapped))
    return None


def over(base: Base, draw: Draw) -> Case | None:
    """True: a limit that the number keeps, near to it."""
    return _limit(base, draw, true=True)


def not_over(base: Base, draw: Draw) -> Case | None:
    """A limit that the number does not keep."""
    return _limit(base, draw, true=False)


def _limit(base: Base, draw: Draw, *, true: bool) -> Case | None:
    keys = [key for key in numbers_in(base) if Decimal(base.member(key)) >= 20]
    if not keys or "at most" in base.text or "one" in base.text.lower():
        return None
    shown = base.member(draw.one_of("key", keys))
    near = Decimal(shown) * (Decimal("0.9") if true else Decimal("1.1"))
    word = draw.one_of("word", ("more than", "over"))
    return replace(plain_case(base), text=swap(base.text, shown, f"{word} {near:.0f}"))


def polite(base: Base, draw: Draw) -> Case | None:
    """True: words around it that say nothing."""
    before = draw.one_of(
        "before", ("I have checked: ", "As you asked, ", "Good news - ", "Please note: ")
    )
    return replace(plain_case(base), text=before + base.text)


TRUE: tuple[Mutation, ...] = (flag_in_words, nothing_there, right_derivation, over, polite)
FALSE: tuple[Mutation, ...] = (
    transposed, ten_times, other_in_locale, other_month_in_words, flag_turned, nothing_said,
    other_field, wrong_derivation, roles_swapped, not_over,
)  # fmt: skip
