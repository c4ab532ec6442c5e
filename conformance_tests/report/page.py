"""The report as one HTML page without scripts, styles or pictures from elsewhere."""

from html import escape

from conformance_tests.report.text import summary
from conformance_tests.runner.results import Result, Run, Verdict

_STYLE = """
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem}
table{border-collapse:collapse;width:100%}
td,th{border-bottom:1px solid #8884;padding:.3rem .6rem;text-align:left;vertical-align:top}
.failure{background:#d3302f22}.warning{background:#f9a82522}.silent{opacity:.6}
code{font:13px ui-monospace,monospace}
"""
_ORDER = (Verdict.FAILURE, Verdict.WARNING, Verdict.SILENT, Verdict.OK)
_CLASS = {
    Verdict.FAILURE: "failure",
    Verdict.WARNING: "warning",
    Verdict.SILENT: "silent",
    Verdict.OK: "ok",
}


def to_html(run: Run) -> str:
    """The page; failures come first."""
    ordered = sorted(run.results, key=lambda result: _ORDER.index(result.verdict))
    rows = "\n".join(_row(result) for result in ordered)
    problems = "".join(f'<p class="failure">{escape(one)}</p>' for one in run.problems)
    title = f"ACP v1 conformance of {escape(run.target)}"
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style><h1>{title}</h1>"
        f"<p>As {escape(run.kind)}, seed {run.seed}. <strong>{escape(summary(run))}</strong></p>"
        f"{problems}<table><thead><tr><th>check</th><th>outcome</th><th>why</th>"
        f"<th>requirement</th></tr></thead><tbody>\n{rows}\n</tbody></table></html>\n"
    )


def _row(result: Result) -> str:
    known = f"<br>known failing: {escape(result.known)}" if result.known else ""
    return (
        f'<tr class="{_CLASS[result.verdict]}"><td><code>{escape(result.id)}</code></td>'
        f"<td>{escape(result.outcome.value)}</td><td>{escape(result.why)}{known}</td>"
        f"<td>{escape(result.requirement.text)}</td></tr>"
    )
