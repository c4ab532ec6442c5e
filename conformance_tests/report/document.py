"""The report as JSON: every result, also those that passed; fields only ever get more."""

import msgspec

from conformance_tests.runner.results import Outcome, Result, Run


def to_json(run: Run) -> str:
    """One document."""
    document = {
        "target": run.target,
        "kind": run.kind,
        "seed": run.seed,
        "conformant": not run.failed,
        "counts": {outcome.value: run.count(outcome) for outcome in Outcome},
        "warnings": run.warnings,
        "problems": run.problems,
        "results": [_row(result) for result in run.results],
    }
    return msgspec.json.format(msgspec.json.encode(document)).decode() + "\n"


def _row(result: Result) -> dict[str, object]:
    return {
        "id": result.id,
        "requirement": result.requirement.id,
        "level": result.level.value,
        "outcome": result.outcome.value,
        "verdict": result.verdict.value,
        "reason": result.reason,
        "findings": [{"check": f.check, "message": f.message} for f in result.findings],
        "known": result.known,
        "checks_planned": result.checks_planned,
        "checks_done": result.checks_done,
        "elapsed_ms": round(result.elapsed_ms, 1),
    }
