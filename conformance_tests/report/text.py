"""The report for a terminal: what failed with its reason, what was not tested, the counts."""

from collections.abc import Iterator

from conformance_tests.runner.results import Outcome, Result, Run, Verdict

_TITLES = {
    Verdict.FAILURE: "FAILED",
    Verdict.WARNING: "WARNING",
}


def to_text(run: Run) -> str:
    """The whole report."""
    return "\n".join(_lines(run)) + "\n"


def _lines(run: Run) -> Iterator[str]:
    yield f"ACP v1 conformance of {run.target} as {run.kind}, seed {run.seed}"
    for verdict, title in _TITLES.items():
        for result in run.results:
            if result.verdict is verdict:
                yield from _told(title, result)
    silent = [r for r in run.results if r.verdict is Verdict.SILENT]
    if silent:
        yield ""
        yield "Not applicable:"
        yield from (f"  {result.id}: {result.reason}" for result in silent)
    for problem in run.problems:
        yield f"PROBLEM with this run: {problem}"
    yield ""
    yield summary(run)


def _told(title: str, result: Result) -> Iterator[str]:
    yield ""
    yield f"{title} {result.id}: {result.outcome.value}"
    yield f"  {result.why}"
    if result.known:
        yield f"  known failing: {result.known}"
    yield f"  {result.requirement.id}: {result.requirement.text}"


def summary(run: Run) -> str:
    """One line of counts; it adds up to the number of results."""
    counts = ", ".join(f"{run.count(outcome)} {outcome.value}" for outcome in Outcome)
    verdict = "NOT CONFORMANT" if run.failed else "CONFORMANT"
    return f"{verdict}: {len(run.results)} checks: {counts}; {run.warnings} warnings"
