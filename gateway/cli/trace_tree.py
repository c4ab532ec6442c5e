"""A trajectory as a tree for a person: plan, calls in order, attempts with times, decisions.

Times are milliseconds since the session opened. What is missing in the record is said, not drawn.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from rich.markup import escape
from rich.tree import Tree

from acp_spec.model.enums import SessionStatus
from acp_spec.model.errors import AcpError
from acp_spec.model.payload import Payload, is_absent
from acp_spec.model.recovery import Decision
from acp_spec.model.trajectory import Attempt, Trajectory

# A line that still fits a terminal; the whole stands in `acp sessions trajectory`.
PAYLOAD_CHARACTERS_MAX: Final = 100
_COLOUR: Final = {SessionStatus.SUCCEEDED: "green", SessionStatus.FAILED: "red"}


def tree_of(trajectory: Trajectory) -> Tree:
    """The whole session."""
    opened_at_ms = trajectory.opened_at_ms
    colour = _COLOUR.get(trajectory.status, "yellow")
    took = f" after {trajectory.ended_at_ms - opened_at_ms} ms" if trajectory.ended_at_ms else ""
    root = Tree(
        f"[bold]{trajectory.session_id}[/bold] {escape(trajectory.workflow)}"
        f" [{colour}]{trajectory.status.value}[/{colour}]{took}"
    )
    root.add(f"lineage {trajectory.lineage_id}")
    root.add(f"input {_short(trajectory.input)}")
    _add_plans(root, trajectory)
    decisions = _by_attempt(trajectory.decisions)
    for (loop, step), rows in groupby(trajectory.calls, key=lambda row: (row.loop, row.step)):
        again = f" (loop {loop})" if loop else ""
        branch = root.add(f"[bold]{escape(step)}[/bold]{again}")
        _add_calls(branch, rows, opened_at_ms=opened_at_ms, decisions=decisions)
    for reflection in trajectory.reflections:
        said = f": {escape(reflection.critique)}" if reflection.critique else ""
        root.add(f"verdict {reflection.verdict} by {escape(reflection.step)}{said}")
    _add_end(root, trajectory)
    return root


def _add_plans(root: Tree, trajectory: Trajectory) -> None:
    for version in trajectory.plan:
        branch = root.add(f"plan {version.generation} by {escape(version.step)}")
        for goal in version.plan.sub_goals:
            after = f" after {', '.join(goal.depends_on)}" if goal.depends_on else ""
            branch.add(escape(f"{goal.id}: {goal.action}{after}"))


def _add_calls(
    branch: Tree,
    rows: Iterable[Attempt],
    *,
    opened_at_ms: int,
    decisions: dict[tuple[str, int], list[Decision]],
) -> None:
    for call_id, attempts in groupby(rows, key=lambda row: row.call_id):
        listed = list(attempts)
        first = listed[0]
        what = first.action or first.role
        goal = f" for {first.sub_goal}" if first.sub_goal else ""
        node = branch.add(f"{escape(what + goal)} [dim]{call_id[:12]}[/dim]")
        for row in listed:
            node.add(_attempt_line(row, opened_at_ms))
            for decision in decisions.get((call_id, row.attempt), ()):
                node.add(_decision_line(decision))


def _attempt_line(row: Attempt, opened_at_ms: int) -> str:
    served = f"{row.component}@{row.component_version}" if row.component else "nobody"
    head = f"#{row.attempt} {served}"
    if row.reused:
        return escape(f"{head} reused from {row.reused_from[:12]}")
    parts = [head, f"at {row.queued_at_ms - opened_at_ms} ms"]
    if row.sent_at_ms is None:
        parts.append("not sent")
    elif row.ended_at_ms is not None:
        parts.append(f"waited {row.wait_ms} ms, took {row.ended_at_ms - row.sent_at_ms} ms")
    else:
        parts.append("no end recorded")
    if row.late:
        parts.append("late")
    outcome = _error_text(row.error) if row.error else _short(row.output)
    text = escape(f"{', '.join(parts)}: {outcome}")
    return f"[red]{text}[/red]" if row.error else text


def _decision_line(decision: Decision) -> str:
    options = ", ".join(
        f"{one.option.value} {'masked by ' + one.masked_by if one.masked_by else one.probability}"
        for one in decision.options
    )
    chosen = decision.chosen.value
    return f"[dim]{escape(f'{decision.trigger.value}: {chosen} ({options})')}[/dim]"


def _add_end(root: Tree, trajectory: Trajectory) -> None:
    for feedback in trajectory.feedback:
        score = "" if feedback.feedback.score is None else f" {feedback.feedback.score}"
        root.add(escape(f"feedback {feedback.feedback.kind.value}{score}"))
    for gap in trajectory.gaps:
        root.add(f"[yellow]missing: {escape(gap.what)} ({escape(gap.why)})[/yellow]")
    if trajectory.error is not None:
        root.add(f"[red]{escape(_error_text(trajectory.error))}[/red]")
    if not is_absent(trajectory.output):
        root.add(escape(f"output {_short(trajectory.output)}"))


def _by_attempt(decisions: Iterable[Decision]) -> dict[tuple[str, int], list[Decision]]:
    found: dict[tuple[str, int], list[Decision]] = {}
    for decision in decisions:
        found.setdefault((decision.call_id, decision.after_attempt), []).append(decision)
    return found


def _error_text(failure: AcpError) -> str:
    return f"{failure.reason}: {failure.message}"


def _short(value: Payload) -> str:
    if is_absent(value):
        return "-"
    text = bytes(value).decode()
    if len(text) <= PAYLOAD_CHARACTERS_MAX:
        return text
    return f"{text[:PAYLOAD_CHARACTERS_MAX]}... ({len(text)} characters)"
