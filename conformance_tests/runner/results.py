"""What a run found: one result per planned check of a case, counted against the plan.

Not applicable is never green: it is listed with its reason. Not tested is a failure of its own:
declared but without an example, or unreachable. A planned case without a result, or with fewer
checks than it has, fails: a scenario that dies early must not look short and green.
"""

import enum
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from conformance_tests.runner.requirements import Level, Requirement


class Outcome(enum.Enum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"
    NOT_TESTED = "not tested"
    HARNESS_ERROR = "harness error"
    """The suite itself sent what its own schema refuses; never the peer's fault."""


class Verdict(enum.Enum):
    """What a result means for the run."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"
    SILENT = "not applicable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Why a check did not pass. `check` is its name in the case (`2.code`), for programs."""

    check: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One case in one variant over one binding."""

    case: str
    variant: str
    requirement: Requirement
    outcome: Outcome
    level: Level
    checks_planned: int = 0
    checks_done: int = 0
    findings: tuple[Finding, ...] = ()
    reason: str = ""
    elapsed_ms: float = 0.0
    known: str = ""
    """Why this failure is listed in known_failing.txt."""

    @property
    def id(self) -> str:
        return f"{self.case}@{self.variant}" if self.variant else self.case

    @property
    def verdict(self) -> Verdict:
        match self.outcome:
            case Outcome.PASSED:
                return Verdict.OK
            case Outcome.NOT_APPLICABLE:
                return Verdict.SILENT
            case Outcome.HARNESS_ERROR:
                return Verdict.FAILURE
            case Outcome.FAILED | Outcome.NOT_TESTED:
                if self.known or self.level is not Level.MUST:
                    return Verdict.WARNING
                return Verdict.FAILURE

    @property
    def why(self) -> str:
        """One line for a person."""
        return (
            "; ".join(f"{found.check}: {found.message}" for found in self.findings) or self.reason
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A finished run: who was asked, what was planned, what came, what is wrong with the run."""

    target: str
    kind: str
    seed: int
    results: tuple[Result, ...]
    problems: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        return bool(self.problems) or any(r.verdict is Verdict.FAILURE for r in self.results)

    def count(self, outcome: Outcome) -> int:
        return sum(result.outcome is outcome for result in self.results)

    @property
    def warnings(self) -> int:
        return sum(result.verdict is Verdict.WARNING for result in self.results)


def settle(result: Result) -> Result:
    """The result, failed when fewer checks were done than planned."""
    if result.outcome is not Outcome.PASSED or result.checks_done == result.checks_planned:
        return result
    message = f"only {result.checks_done} of {result.checks_planned} checks were done"
    return replace(
        result,
        outcome=Outcome.FAILED,
        findings=(*result.findings, Finding(check="count", message=message)),
    )


def compare(planned: Sequence[str], emitted: Iterable[Result]) -> list[str]:
    """What is wrong between the plan and the results: missing, doubled or foreign ones."""
    counted = Counter(result.id for result in emitted)
    problems = [f"{id_} was planned and gave no result" for id_ in planned if not counted[id_]]
    problems += [f"{id_} gave {n} results" for id_, n in counted.items() if n > 1]
    foreign = sorted(set(counted) - set(planned))
    problems += [f"{id_} gave a result and was not planned" for id_ in foreign]
    return problems
