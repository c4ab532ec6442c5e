"""The report as JUnit XML: one test case per result; not applicable is skipped, never passed."""

from xml.etree import ElementTree as Xml

from conformance_tests.runner.results import Outcome, Result, Run, Verdict


def to_junit(run: Run) -> str:
    """One `testsuite` document."""
    suite = Xml.Element(
        "testsuite",
        name=f"acp-conformance-{run.kind}",
        tests=str(len(run.results) + len(run.problems)),
        failures=str(_with(run, Verdict.FAILURE)),
        errors=str(len(run.problems)),
        skipped=str(_with(run, Verdict.SILENT)),
    )
    for result in run.results:
        suite.append(_case(result))
    for problem in run.problems:
        case = Xml.SubElement(suite, "testcase", classname="run", name=problem)
        Xml.SubElement(case, "error", message=problem)
    Xml.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + Xml.tostring(suite, encoding="unicode")


def _with(run: Run, verdict: Verdict) -> int:
    return sum(result.verdict is verdict for result in run.results)


def _case(result: Result) -> Xml.Element:
    case = Xml.Element(
        "testcase",
        classname=result.requirement.id,
        name=result.id,
        time=f"{result.elapsed_ms / 1000:.3f}",
    )
    why = _printable(result.why)
    match result.verdict:
        case Verdict.FAILURE:
            failed = Xml.SubElement(case, "failure", message=why, type=result.outcome.value)
            failed.text = f"{result.requirement.id}: {result.requirement.text}"
        case Verdict.SILENT:
            Xml.SubElement(case, "skipped", message=why)
        case Verdict.WARNING:
            Xml.SubElement(case, "system-out").text = f"warning, {result.outcome.value}: {why}"
        case Verdict.OK:
            assert result.outcome is Outcome.PASSED
    return case


def _printable(text: str) -> str:
    """XML has no control characters."""
    return "".join(c if c.isprintable() else " " for c in text)
