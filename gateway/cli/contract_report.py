"""What a check of a contract found, as text, Markdown, JUnit and JSON.

A check is one thing that passed or failed, with a sentence; checks over a load have figures too.
"""

from collections.abc import Iterable
from typing import Final
from xml.etree import ElementTree

import msgspec

from acp_spec.model.enums import Word
from acp_spec.sdk.cli import harmless


class Kind(Word):
    """What was checked: files, an input with its outcome, a component under load."""

    SCHEMA = "schema"
    CASE = "case"
    LOAD = "load"


class Figures(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One component under load. Rates are shares from 0 to 1; times are service time."""

    component: str
    calls: int = 0
    failed: int = 0
    slow: int = 0
    sessions: int = 0
    fell_back: int = 0
    success_rate: float = 0.0
    fallback_rate: float = 0.0
    p50_ms: int = 0
    p95_ms: int = 0
    p99_ms: int = 0
    max_ms: int = 0
    calls_per_s: float = 0.0
    demanded: dict[str, float] = {}


class Check(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that was checked."""

    kind: Kind
    name: str
    passed: bool
    message: str = ""
    seconds: float = 0.0
    figures: Figures | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All that was checked of one file."""

    file: str
    target: str
    passed: bool
    checks: tuple[Check, ...]
    sessions: dict[str, int] = {}

    @property
    def failed(self) -> int:
        return sum(not check.passed for check in self.checks)


COLUMNS: Final = (
    "component", "calls", "success", "p50 ms", "p95 ms", "max ms", "fallback", "demanded",
    "verdict",
)  # fmt: skip


def row_of(check: Check) -> tuple[str, ...]:
    """A component's figures as cells of a table."""
    found = check.figures
    assert found is not None, "only what ran under load has figures"
    demanded = ", ".join(f"{key} {value:g}" for key, value in found.demanded.items()) or "-"
    return (
        found.component,
        str(found.calls),
        f"{found.success_rate:.2%}",
        str(found.p50_ms),
        str(found.p95_ms),
        str(found.max_ms),
        f"{found.fallback_rate:.2%}",
        demanded,
        "pass" if check.passed else "FAIL",
    )


def lines_of(report: Report) -> list[str]:
    """The checks without figures, one line each, and what failed of the others."""
    lines = []
    for check in report.checks:
        word = "ok  " if check.passed else "FAIL"
        if check.figures is None or not check.passed:
            about = f": {check.message}" if check.message else ""
            lines.append(f"{word} {check.kind.value} {check.name}{about}")
    return lines


def summary(report: Report) -> str:
    verdict = "the contract holds" if report.passed else f"{report.failed} checks failed"
    counted = ", ".join(f"{count} {status}" for status, count in report.sessions.items())
    return f"{verdict}: {len(report.checks)} checks" + (f"; sessions: {counted}" if counted else "")


def markdown(report: Report) -> str:
    """For a pull request's comment."""
    word = "holds" if report.passed else "does not hold"
    lines = [f"## Contract of `{report.file}` {word}", "", summary(report), ""]
    lines += [*_table(("", "check", ""), _told(report)), ""]
    loaded = [check for check in report.checks if check.figures is not None]
    if loaded:
        lines += ["### Under load", "", *_table(COLUMNS, map(row_of, loaded)), ""]
    return "\n".join(lines)


def _told(report: Report) -> Iterable[tuple[str, ...]]:
    for check in report.checks:
        mark = "ok" if check.passed else "**failed**"
        yield mark, f"{check.kind.value}: {check.name}", check.message


def _table(columns: Iterable[str], rows: Iterable[tuple[str, ...]]) -> list[str]:
    head = [_cell(column) for column in columns]
    lines = [_row(head), _row(["---"] * len(head))]
    return [*lines, *(_row([_cell(cell) for cell in row]) for row in rows)]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return harmless(text, lines=False).replace("|", "\\|").replace("\\u000a", " ")


def junit(report: Report) -> bytes:
    """For a pipeline: one suite per kind of check."""
    root = ElementTree.Element("testsuites", name=f"contract of {report.file}")
    for kind in Kind:
        checks = [check for check in report.checks if check.kind is kind]
        if not checks:
            continue
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=kind.value,
            tests=str(len(checks)),
            failures=str(sum(not check.passed for check in checks)),
            time=f"{sum(check.seconds for check in checks):.3f}",
        )
        for check in checks:
            _junit_case(suite, check)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text


def _junit_case(suite: ElementTree.Element, check: Check) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=f"contract.{check.kind.value}",
        name=harmless(check.name, lines=False),
        time=f"{check.seconds:.3f}",
    )
    message = harmless(check.message)
    if not check.passed:
        ElementTree.SubElement(case, "failure", message=message.partition("\n")[0]).text = message
    if check.figures is not None:
        figures = msgspec.json.format(msgspec.json.encode(check.figures)).decode()
        ElementTree.SubElement(case, "system-out").text = figures
