"""RFC 3339 text from and to milliseconds since the epoch, without a clock (SPEC section 1).

Pure arithmetic (Howard Hinnant's civil calendar), because `datetime` stands for the clock and is
kept out of pure code. Only UTC is written; any offset is read.
"""

import functools
import re

MS_PER_DAY = 86_400_000

_FORM = re.compile(
    r"(\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2})(\.\d+)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
)
_KEPT = 1024
"""Texts and numbers kept of each kind: a gateway meets the same ones thousands of times."""
_KEPT_CHARACTERS_MAX = 40
"""Of a text that is kept: what comes from outside may be of any length."""
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


@functools.lru_cache(maxsize=_KEPT)
def rfc3339(time_ms: int) -> str:
    """`2026-11-29T15:14:16.123Z`."""
    seconds, ms = divmod(time_ms, 1000)
    return f"{_to_the_second(seconds)}.{ms:03}Z"


@functools.lru_cache(maxsize=_KEPT)
def _to_the_second(seconds: int) -> str:
    days, rest = divmod(seconds, 86_400)
    year, month, day = _civil(days)
    minutes, second = divmod(rest, 60)
    hour, minute = divmod(minutes, 60)
    return f"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"


def parse_rfc3339(text: str) -> int | None:
    """Milliseconds since the epoch, or None when `text` is not an RFC 3339 time."""
    return _short(text) if len(text) <= _KEPT_CHARACTERS_MAX else _parse(text)


def _parse(text: str) -> int | None:
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    clock, fraction, zone = found.groups()
    seconds, offset = _seconds(clock), _offset_minutes(zone)
    if seconds is None or offset is None:
        return None
    return (seconds - offset * 60) * 1000 + int(float(fraction or 0) * 1000)


_short = functools.lru_cache(maxsize=_KEPT)(_parse)


@functools.lru_cache(maxsize=_KEPT)
def _seconds(clock: str) -> int | None:
    """Since the epoch, of `2026-11-29T15:14:16`; None where there is no such time."""
    year, month, day = int(clock[:4]), int(clock[5:7]), int(clock[8:10])
    hour, minute, second = int(clock[11:13]), int(clock[14:16]), int(clock[17:])
    leap = month == 2 and day == 29 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not (1 <= day <= _DAYS[month - 1] or leap):
        return None
    if hour > 23 or minute > 59 or second > 60:
        return None
    return (_days(year, month, day=day) * 24 + hour) * 3600 + minute * 60 + second


def _offset_minutes(text: str) -> int | None:
    if text in "Zz":
        return 0
    hours, minutes = int(text[1:3]), int(text[4:6])
    if hours > 23 or minutes > 59:
        return None
    return (hours * 60 + minutes) * (-1 if text[0] == "-" else 1)


def _days(year: int, month: int, *, day: int) -> int:
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


def _civil(days: int) -> tuple[int, int, int]:
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (
        day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096
    ) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return year_of_era + era * 400 + (month <= 2), month, day
