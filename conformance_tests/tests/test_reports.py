"""Four reports of one run: they agree, and none hides what was not seen."""

import json
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from conformance_tests.report import to_html, to_json, to_junit, to_text, write_reports
from conformance_tests.runner.requirements import Level, requirements
from conformance_tests.runner.results import Finding, Outcome, Result, Run


def of(outcome: Outcome, *, requirement: str = "VER-001", reason: str = "") -> Result:
    found = requirements()[requirement]
    return Result(
        case=f"{requirement}/{outcome.value.replace(' ', '-')}",
        variant="http",
        requirement=found,
        outcome=outcome,
        level=found.level,
        findings=(Finding(check="1.code", message="<b>not & that</b>\x00"),)
        if outcome is Outcome.FAILED
        else (),
        reason=reason,
    )


@pytest.fixture
def run() -> Run:
    results = (
        of(Outcome.PASSED),
        of(Outcome.FAILED),
        of(Outcome.NOT_TESTED, reason="no example"),
        of(Outcome.NOT_APPLICABLE, reason="no such role"),
        of(Outcome.FAILED, requirement="WIR-009"),
    )
    assert results[-1].level is Level.SHOULD
    return Run(target="http://t", kind="component", seed=7, results=results, problems=("lost one",))


def test_text_names_each_failure_with_its_requirement(run: Run) -> None:
    text = to_text(run)
    assert "FAILED VER-001/failed@http: failed\n  1.code: <b>not & that</b>" in text
    assert "FAILED VER-001/not-tested@http: not tested\n  no example" in text
    assert "VER-001/not-applicable@http: no such role" in text
    assert "PROBLEM with this run: lost one" in text
    assert "NOT CONFORMANT: 5 checks: 1 passed, 2 failed, 1 not applicable, 1 not tested" in text


def test_junit_counts_as_the_run_does(run: Run) -> None:
    suite = Xml.fromstring(to_junit(run))
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("2", "1", "1")
    assert len(suite.findall("testcase")) == int(suite.get("tests", 0))
    assert len(suite.findall("testcase/failure")) == 2


def test_json_holds_every_result(run: Run) -> None:
    document = json.loads(to_json(run))
    assert document["conformant"] is False
    assert len(document["results"]) == 5
    assert sum(document["counts"].values()) == 5


def test_the_page_needs_nothing_else_and_escapes(run: Run) -> None:
    page = to_html(run)
    assert "<b>not" not in page
    assert "http://t" in page
    assert not any(word in page for word in ("<script", "<link", "src=", "@import"))


def test_all_four_are_written(run: Run, tmp_path: Path) -> None:
    written = write_reports(run, tmp_path / "out")
    assert sorted(path.suffix for path in written) == [".html", ".json", ".txt", ".xml"]
    assert all(path.stat().st_size for path in written)
