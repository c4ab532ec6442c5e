"""Which SQL a person may run: one statement that reads. Pure.

The engine runs it read-only and within limits; that is what holds. This says no to what read-only
does not cover (`INTO OUTFILE` writes a file also there, `KILL QUERY` ends the feed's work) and says
it in words that help.
"""

import re
from typing import Final

READING: Final = ("select", "with", "show", "describe", "desc", "explain", "exists")
SQL_CHARACTERS_MAX: Final = 100_000

# Comments before it are the engine's notion of one: to the end of the line, or to the first `*/`.
_FIRST = re.compile(r"(?:[\s(]|--[^\n]*(?:\n|$)|/\*.*?\*/)*+([A-Za-z]+)", re.DOTALL)
# The word alone, wherever it stands: no comment or quote can hide it from the engine but be missed.
_OUTFILE = re.compile("outfile", re.IGNORECASE)
_SKIPPED = re.compile(
    r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`(?:[^`\\]|\\.|``)*`|--[^\n]*|/\*.*?\*/",
    re.DOTALL,
)


def refusal(sql: str) -> str:
    """Why this may not be run, for the person who wrote it; empty if it may."""
    if len(sql) > SQL_CHARACTERS_MAX:
        return f"sql: at most {SQL_CHARACTERS_MAX} characters"
    first = _FIRST.match(sql)
    if first is None or first.group(1).lower() not in READING:
        return f"sql: must begin with one of {', '.join(READING).upper()}: records are only read"
    if _OUTFILE.search(sql):
        return "sql: INTO OUTFILE writes a file; the word may not stand in a query"
    if ";" in _SKIPPED.sub(" ", sql).rstrip("; \t\r\n"):
        return "sql: one statement at a time, without a semicolon inside"
    return ""


def one_statement(sql: str) -> str:
    """The statement without a semicolon at its end, so that a FORMAT can follow it."""
    return sql.strip().rstrip("; \t\r\n")
