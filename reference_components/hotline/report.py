"""What the demo says in the end: results per component, outcomes, one session whole, where to look.

A trajectory and a lineage are printed by the gateway's own commands, run as anyone would run them.
"""

import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

from acp_spec.sdk.cli import Output
from reference_components.hotline import story
from reference_components.hotline.calls import Ended
from reference_components.hotline.house import ESSENTIAL, SKILLS, House
from reference_components.hotline.story import Told
from reference_components.hotline.tally import Calls, Tally, answer_of, outcome_of

ROWS_MAX = 12
ANSWER_CHARACTERS_MAX = 60
QUESTION_CHARACTERS_MAX = 44
COMMAND_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything there is to report. `problems`: what should not have been; empty = all well."""

    house: House
    tally: Tally
    told: Told
    shown: list[Ended]
    took_s: float

    def problems(self) -> list[str]:
        """One sentence per thing that went wrong and was not to be expected."""
        found = [f"{one.name} did not start: {one.why}" for one in self.house.broken]
        found += [
            f"{one.name} ended by itself; {one.last_words()}"
            for one in self.house.running
            if not one.is_alive
        ]
        for view in self.tally.unexpected:
            why = f"{view.error.reason}: {view.error.message}" if view.error else "no reason given"
            found.append(f"session {view.session_id} is {view.status.value}: {why}")
        if not self.told.changed:
            found.append("the second plan was not changed by what the first session remembered")
        return found


@dataclass(frozen=True, slots=True)
class _Line:
    """A row of the table of components."""

    name: str
    language: str
    calls: Calls | None
    note: str


def show(out: Output, results: Results) -> None:
    """For a person."""
    _show_answers(out, results)
    rows = [_cells(line) for line in _lines(results)]
    columns = ("component", "language", "calls", "ok", "failed", "p50 ms", "p95 ms", "notes")
    shown = len(columns) if any(row[-1] for row in rows) else len(columns) - 1
    out.rows(
        rows,
        columns=columns[:shown],
        cells=lambda row: row[:shown],
        title="Results per component",
    )
    outcomes = ", ".join(f"{n} {what}" for what, n in results.tally.outcomes.most_common())
    rate = results.tally.sessions / max(results.took_s, 0.001)
    ran = f"{results.tally.sessions} sessions in {results.took_s:.1f} s ({rate:.0f}/s)"
    out.value(None, text=f"{ran}: {outcomes}")
    _show_story(out, results.told)
    example = results.tally.example or results.told.after.view
    out.value(None, text="\nOne session, whole:")
    out.value(None, text=printed(results.house, "sessions", "trace", example.session_id))
    out.value(None, text="Its lineage, from one id back to everything that took part:")
    out.value(None, text=printed(results.house, "lineage", example.lineage_id))
    for problem in results.problems():
        out.note(f"problem: {problem}")


def _show_answers(out: Output, results: Results) -> None:
    out.rows(
        results.shown[:ROWS_MAX],
        columns=("customer", "question", "outcome", "answer"),
        cells=lambda one: (
            one.question.customer,
            _cut(one.question.text, QUESTION_CHARACTERS_MAX),
            outcome_of(one.view),
            _cut(answer_of(one.view), ANSWER_CHARACTERS_MAX),
        ),
        title="Some of the calls",
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _lines(results: Results) -> list[_Line]:
    missing: dict[str, list[str]] = {}
    for lack in results.house.missing:
        missing.setdefault(lack.name, []).append(lack.package)
    broken = {one.name for one in results.house.broken}
    languages = {one.name: one.spec.language for one in results.house.running}
    lines = []
    for name in (*ESSENTIAL, *SKILLS):
        note = "did not start" if name in broken else ""
        if name in missing:
            note = f"not installed: apt-get install {' '.join(missing[name])}"
        language = languages.get(name, "")
        lines.append(_Line(name, language, results.tally.components.get(name), note))
    return lines


def _cells(line: _Line) -> tuple[str, ...]:
    calls = line.calls or Calls()
    times = (str(calls.percentile_ms(share)) if calls.count else "-" for share in (0.5, 0.95))
    reasons = ", ".join(f"{count} {reason}" for reason, count in calls.reasons.most_common(3))
    counts = (str(calls.count), str(calls.ok), str(calls.failed))
    return (line.name, line.language, *counts, *times, line.note or reasons)


def _show_story(out: Output, told: Told) -> None:
    lines = [
        f"\nMemory: {told.story.customer} asks twice, {told.story.question!r}",
        "  first plan",
        *(f"    {line}" for line in story.plan_lines(told.before)),
        f"  between, {told.story.between!r}",
        *(f"    {line}" for line in story.plan_lines(told.between)),
        "  second plan" if told.changed else "  second plan (not changed)",
        *(f"    {line}" for line in story.plan_lines(told.after)),
    ]
    if told.changed:
        lines.append(f"  {told.story.why}")
    out.value(None, text="\n".join(lines))


def printed(house: House, *command: str, as_json: bool = False) -> str:
    """What `acp COMMAND` prints about this house."""
    run = [sys.executable, "-m", "gateway", *command, "--gateway", house.url]
    done = subprocess.run(
        [*run, "--json"] if as_json else run,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=COMMAND_S,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "FORCE_COLOR": "",  # what is printed here is shown as text
        },
        check=False,
    )
    return (done.stdout or done.stderr).decode(errors="replace").rstrip()


def as_data(results: Results) -> dict[str, object]:
    """For a program: one document."""
    tally, house = results.tally, results.house
    example = tally.example or results.told.after.view
    return {
        "sessions": tally.sessions,
        "seconds": round(results.took_s, 3),
        "outcomes": dict(tally.outcomes),
        "components": [_component(line) for line in _lines(results)],
        "missing": [
            {"name": one.name, "tool": one.tool, "package": one.package} for one in house.missing
        ],
        "memory": story.as_data(results.told),
        "trajectory": _json(house, "sessions", "trace", example.session_id),
        "lineage": _json(house, "lineage", example.lineage_id),
        "problems": results.problems(),
        "data_dir": str(house.data_dir),
        "look_next": look_next(results, kept=False),
    }


def _component(line: _Line) -> dict[str, object]:
    calls = line.calls or Calls()
    return {
        "name": line.name,
        "language": line.language,
        "calls": calls.count,
        "ok": calls.ok,
        "failed": calls.failed,
        "p50_ms": calls.percentile_ms(0.5),
        "p95_ms": calls.percentile_ms(0.95),
        "reasons": dict(calls.reasons),
        "note": line.note,
    }


def _json(house: House, *command: str) -> object:
    return msgspec.json.decode(printed(house, *command, as_json=True))


def look_next(results: Results, *, kept: bool) -> list[str]:
    """Commands to copy: for a gateway that still runs, else for what it left behind."""
    example = results.tally.example or results.told.after.view
    house = results.house
    folder = shlex.quote(str(_short(house.data_dir)))
    if kept:
        url = f"--gateway {house.url}"
        return [
            f"acp sessions list {url}",
            f"acp sessions trace {example.session_id} {url}",
            f"acp lineage {example.lineage_id} {url}",
            f"acp components list {url}",
            f"open {house.url}/docs",
        ]
    return [
        "acp demo --keep    # the same, and everything keeps running for you to look at",
        f"acp sessions replay {example.session_id} --data-dir {folder}",
        f"acp serve --data-dir {folder}    # then: acp sessions list",
        f"head -c 2000 {folder}/trajectories/*/*",
    ]


def _short(path: Path) -> Path:
    """Relative to where the reader stands, if it lies below."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
