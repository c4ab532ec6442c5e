"""One run, written for people and for programs: text, JUnit, JSON, a page of its own."""

from pathlib import Path

from conformance_tests.report.document import to_json
from conformance_tests.report.junit import to_junit
from conformance_tests.report.page import to_html
from conformance_tests.report.text import to_text
from conformance_tests.runner.results import Run

__all__ = ["to_html", "to_json", "to_junit", "to_text", "write_reports"]


def write_reports(run: Run, folder: Path) -> list[Path]:
    """Write all four below `folder`; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    documents = {
        "report.txt": to_text(run),
        "report.json": to_json(run),
        "report.xml": to_junit(run),
        "report.html": to_html(run),
    }
    for name, text in documents.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in documents]
