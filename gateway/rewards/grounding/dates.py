"""Dates and times of day as people and programs write them.

A date may lack parts (`May 2026`, `4 May`) and may be read two ways (`04/05/2026`). What is written
agrees with a source when one reading agrees in every part that both have.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from acp_spec.model.times import rfc3339

_MONTHS: Final = (
    "january jan januar janvier enero",
    "february feb februar février febrero",
    "march mar märz mars marzo",
    "april apr avril abril",
    "may mai mayo",
    "june jun juni juin junio",
    "july jul juli juillet julio",
    "august aug août agosto",
    "september sep sept septembre septiembre",
    "october oct oktober okt octobre octubre",
    "november nov novembre noviembre",
    "december dec dezember dez décembre diciembre",
)
MONTHS: Final = {word: number for number, row in enumerate(_MONTHS, 1) for word in row.split()}
WEEKDAYS: Final = {
    name[:length]: number
    for number, name in enumerate(
        ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    )
    for length in (3, len(name))
}
_MONTH = "(?P<month_{0}>" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\b\.?"
_CLOCK = r"(?P<{0}hour>\d{{1,2}}):(?P<{0}minute>\d{{2}})(?::(?P<{0}second>\d{{2}})(?:\.\d+)?)?"
_ZONE = r"(?:\s?(?P<{0}zone>Z\b|UTC\b|GMT\b|[+-]\d{{2}}:?\d{{2}}))?"
_HALF = r"(?:\s?(?P<half>[ap])\.?m\b\.?)?"

DATE: Final = re.compile(
    r"(?<![\w/.-])(?:(?P<weekday>" + "|".join(sorted(WEEKDAYS, key=len, reverse=True)) + r"),? )?"
    r"(?:(?P<y1>\d{4})-(?P<m1>\d{2})(?:-(?P<d1>\d{2}))?"
    rf"(?:[Tt ]{_CLOCK.format('t')}{_ZONE.format('t')})?(?![\w-])"
    r"|(?P<d2>\d{1,2})\.\s?(?P<m2>\d{1,2})\.\s?(?P<y2>\d{4})(?!\d)"
    r"|(?P<a3>\d{1,2})/(?P<b3>\d{1,2})/(?P<y3>\d{4}|\d{2})(?![\w/])"
    r"|(?P<m4>\d{2})/(?P<y4>\d{4}|\d{2})(?![\w/])"
    rf"|(?P<d5>\d{{1,2}})(?:st|nd|rd|th|\.)? (?:of )?{_MONTH.format(5)}(?:,? (?P<y5>\d{{4}})\b)?"
    rf"|{_MONTH.format(6)} (?P<d6>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,? (?P<y6>\d{{4}})\b)?"
    rf"|{_MONTH.format(7)},? (?P<y7>\d{{4}})\b)",
    re.IGNORECASE,
)
TIME: Final = re.compile(
    rf"(?<![\w:.]){_CLOCK.format('')}{_HALF}{_ZONE.format('')}(?![\w:])"
    r"|(?<![\w:.])(?P<only>\d{1,2})\s?(?P<side>[ap])\.?m\b",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"\d")
_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})(?:T(\d{2})(\d{2})(\d{2})Z?)?")
_EPOCH_MS = range(946_684_800_000, 4_102_444_800_000)
"""From 2000 to 2100: an integer in it, in a field named as a time, is one."""


@dataclass(frozen=True, slots=True)
class When:
    """Parts that are known; `minute_of_day` as written, without its zone. `zone` in minutes."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    minute_of_day: int | None = None
    second: int | None = None
    zone: int | None = None
    weekday: int | None = None

    def agrees(self, other: "When") -> bool:
        """Nothing that both know differs, and they know something together."""
        if self.weekday is not None and not _on(other, self.weekday):
            return False
        mine, theirs = self._known(other), other._known(self)
        both = [
            (a, b) for a, b in zip(mine, theirs, strict=True) if a is not None and b is not None
        ]
        return bool(both) and all(a == b for a, b in both)

    @property
    def has_date(self) -> bool:
        return self.month is not None

    def _known(self, other: "When") -> tuple[int | None, ...]:
        """Parts to compare; both in UTC where both name a zone."""
        here = self
        if self.zone and other.zone is not None and self.zone != other.zone:
            here = _in_utc(self)
        return (here.year, here.month, here.day, here.minute_of_day, here.second)


def when_of(text: str, *, name: str = "") -> When | None:
    """The moment that a source's whole text is; `name` tells a number of milliseconds apart."""
    text = text.strip()
    if not _DIGIT.search(text):
        return None
    found = DATE.fullmatch(text)
    if found is not None:
        return readings(found)[0] if readings(found) else None
    clock = TIME.fullmatch(text)
    if clock is not None:
        return time_of(clock)
    is_whole = text.isascii() and text.isdigit() and len(text) == 13
    if is_whole and int(text) in _EPOCH_MS and re.search(r"(at|time|date|since|until)", name):
        return when_of(rfc3339(int(text)))
    compact = _COMPACT.fullmatch(text) if re.search(r"date|time|day|_at$", name) else None
    if compact is None:
        return None
    year, month, day = (int(part) for part in compact.groups()[:3])
    return When(year, month, day) if _possible(month, day) else None


def readings(found: re.Match[str]) -> list[When]:
    """What a matched date may mean; empty if it is no possible date (13.25.2026)."""
    part = found.groupdict()
    if part["y1"]:
        options = [(part["y1"], part["m1"], part["d1"])]
    elif part["m2"]:
        options = [(part["y2"], part["m2"], part["d2"])]
    elif part["y3"]:
        year = part["y3"]
        options = [(year, part["b3"], part["a3"]), (year, part["a3"], part["b3"])]
    elif part["y4"]:
        options = [(part["y4"], part["m4"], None)]
    else:
        options = [_with_month_name(part)]
    weekday = WEEKDAYS.get((part["weekday"] or "").lower())
    dates = [_when(option, found) for option in options]
    return [replace(one, weekday=weekday) for one in dates if one is not None and _on(one, weekday)]


def time_of(found: re.Match[str]) -> When | None:
    """The time of day that was matched."""
    if found["only"]:
        hour = int(found["only"]) % 12 + (12 if found["side"].lower() == "p" else 0)
        return When(minute_of_day=hour * 60) if int(found["only"]) <= 12 else None
    hour, minute = int(found["hour"]), int(found["minute"])
    if found["half"]:
        hour = hour % 12 + (12 if found["half"].lower() == "p" else 0)
    if hour > 23 or minute > 59:
        return None
    second = int(found["second"]) if found["second"] else None
    return When(minute_of_day=hour * 60 + minute, second=second, zone=_zone(found["zone"]))


def _with_month_name(part: dict[str, str | None]) -> tuple[str | None, str, str | None]:
    for number in "567":
        name = part[f"month_{number}"]
        if name:
            return part[f"y{number}"], str(MONTHS[name.lower()]), part.get(f"d{number}")
    raise AssertionError("a matched date has one of its forms")


def _when(given: tuple[str | None, str | None, str | None], found: re.Match[str]) -> When | None:
    year, month, day = given
    y = int(year) + (2000 if len(year) == 2 else 0) if year else None
    m, d = int(month or 0), int(day) if day else None
    if not _possible(m, d):
        return None
    if found["thour"] is None:
        return When(y, m, d)
    minute = int(found["thour"]) * 60 + int(found["tminute"])
    second = int(found["tsecond"]) if found["tsecond"] else None
    return When(y, m, d, minute, second, _zone(found["tzone"]))


def _possible(month: int, day: int | None) -> bool:
    return 1 <= month <= 12 and (day is None or 1 <= day <= 31)


def _zone(text: str | None) -> int | None:
    if not text:
        return None
    if text.upper() in ("Z", "UTC", "GMT"):
        return 0
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return -minutes if text[0] == "-" else minutes


def _in_utc(one: When) -> When:
    """Across midnight the date is left out rather than guessed."""
    assert one.zone is not None
    if one.minute_of_day is None:
        return one
    minute = one.minute_of_day - one.zone
    if 0 <= minute < 1440:
        return When(one.year, one.month, one.day, minute, one.second, 0)
    return When(one.year, one.month, None, minute % 1440, one.second, 0)


def in_utc(one: When) -> When:
    """The same moment in UTC, where its zone is known."""
    return _in_utc(one) if one.zone else one


def _on(one: When, weekday: int | None) -> bool:
    """A weekday that is written must be that date's (Sakamoto's rule)."""
    if weekday is None or None in (one.year, one.month, one.day):
        return True
    assert one.year is not None
    assert one.month is not None
    assert one.day is not None
    year = one.year - (one.month < 3)
    offset = (0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4)[one.month - 1]
    sunday_based = (year + year // 4 - year // 100 + year // 400 + offset + one.day) % 7
    return (sunday_based - 1) % 7 == weekday
