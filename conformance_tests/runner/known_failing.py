"""`known_failing.txt`: what fails and why, one line each: `pattern  # reason`.

A pattern is a shell glob over result ids. The list only shrinks honestly: a listed case still runs,
it fails the run when it passes, and a pattern that matches nothing is an error.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from conformance_tests.runner.results import Outcome, Result


class WrongList(ValueError):
    """A line that is no `pattern  # reason`; the message names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    pattern: str
    reason: str

    def matches(self, result: Result) -> bool:
        return fnmatchcase(result.id, self.pattern)


def read_list(text: str) -> list[Known]:
    """The lines of the file; empty ones and those that begin with `#` are for people."""
    return [_read_line(line, n) for n, line in enumerate(text.splitlines(), 1) if _counts(line)]


def _counts(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _read_line(line: str, number: int) -> Known:
    pattern, mark, reason = line.partition("  #")
    if not mark or not reason.strip() or " " in pattern.strip():
        raise WrongList(f"line {number}: write `pattern  # reason`, not {line!r}")
    return Known(pattern=pattern.strip(), reason=reason.strip())


def apply(known: Iterable[Known], results: Iterable[Result]) -> tuple[list[Result], list[str]]:
    """The results with known failures marked, and what is wrong with the list itself."""
    marked, problems = list(results), []
    for entry in known:
        hits = [index for index, result in enumerate(marked) if entry.matches(result)]
        if not hits:
            problems.append(f"known failing: {entry.pattern!r} matches no case")
        for index in hits:
            result = marked[index]
            if result.outcome is Outcome.PASSED:
                problems.append(f"known failing: {result.id} passes now: take it off the list")
            elif result.outcome in {Outcome.FAILED, Outcome.NOT_TESTED}:
                marked[index] = replace(result, known=entry.reason)
    return marked, problems
