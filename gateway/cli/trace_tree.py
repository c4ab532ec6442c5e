"""A trajectory as a tree for a person: plan, calls in order, attempts with times, decisions.

Times are milliseconds since the session opened. What is missing in the record is said, not drawn.
Every word passes `shown`: most of them were written by components and clients.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from rich.text import Text
from rich.tree import Tree

from acp_spec.model.enums import SessionStatus
from acp_spec.model.errors import AcpError
from acp_spec.model.payload import Payload, is_absent
from acp_spec.model.semantics import MappedValue
from acp_spec.model.trajectory import Attempt, DecisionRow, FallbackRow, Trajectory
from acp_spec.sdk.cli import shown

# A line that still fits a terminal; the whole stands in `acp sessions trajectory`.
PAYLOAD_CHARACTERS_MAX: Final = 100
_COLOUR: Final = {SessionStatus.SUCCEEDED: "green", SessionStatus.FAILED: "red"}


def tree_of(trajectory: Trajectory) -> Tree:
    """The whole session."""
    opened_at_ms = trajectory.opened_at_ms
    colour = _COLOUR.get(trajectory.status, "yellow")
    took = f" after {trajectory.ended_at_ms - opened_at_ms} ms" if trajectory.ended_at_ms else ""
    root = Tree(
        Text.assemble(
            shown(trajectory.session_id, "bold"),
            shown(f" {trajectory.workflow} "),
            shown(trajectory.status.value, colour),
            took,
        )
    )
    root.add(shown(f"lineage {trajectory.lineage_id}"))
    taken_in = root.add(shown(f"input {_short(trajectory.input)}"))
    _add_mapped(taken_in, trajectory.input_mapped)
    if trajectory.fallback is not None:
        root.add(shown(_fallback_text(trajectory.fallback), "yellow"))
    _add_plans(root, trajectory)
    decisions = _by_attempt(trajectory.decisions)
    for (loop, step), rows in groupby(trajectory.calls, key=lambda row: (row.loop, row.step)):
        again = f" (loop {loop})" if loop else ""
        branch = root.add(shown(step, "bold") + shown(again))
        _add_calls(branch, rows, opened_at_ms=opened_at_ms, decisions=decisions)
    for reflection in trajectory.reflections:
        said = f": {reflection.critique}" if reflection.critique else ""
        root.add(shown(f"verdict {reflection.verdict} by {reflection.step}{said}"))
    _add_end(root, trajectory)
    return root


def _add_plans(root: Tree, trajectory: Trajectory) -> None:
    for version in trajectory.plan:
        branch = root.add(shown(f"plan {version.generation} by {version.step}"))
        for goal in version.plan.sub_goals:
            after = f" after {', '.join(goal.depends_on)}" if goal.depends_on else ""
            branch.add(shown(f"{goal.id}: {goal.action}{after}"))


def _add_calls(
    branch: Tree,
    rows: Iterable[Attempt],
    *,
    opened_at_ms: int,
    decisions: dict[tuple[str, int], list[DecisionRow]],
) -> None:
    for call_id, attempts in groupby(rows, key=lambda row: row.call_id):
        listed = list(attempts)
        first = listed[0]
        what = first.action or first.role
        goal = f" for {first.sub_goal}" if first.sub_goal else ""
        node = branch.add(shown(f"{what}{goal} ") + shown(call_id[:12], "dim"))
        _add_mapped(node, first.arguments_mapped)
        for row in listed:
            _add_mapped(node.add(_attempt_line(row, opened_at_ms)), row.output_mapped)
            for decision in decisions.get((call_id, row.attempt), ()):
                node.add(_decision_line(decision))


def _add_mapped(branch: Tree, values: Iterable[MappedValue]) -> None:
    """Values that were not in their domain as they came."""
    for value in values:
        to = f"{value.to!r}" if value.to else "nothing"
        how = f"{value.how.value}, {value.confidence:.2f}"
        branch.add(shown(f"{value.at or 'value'}: {value.from_!r} meant {to} ({how})", "dim"))


def _fallback_text(row: FallbackRow) -> str:
    if row.probe:
        return "a probe: rules answer this workflow, this session tried its components"
    return f"answered by the rule {row.rule} (rules {row.version}), no component was called"


def _attempt_line(row: Attempt, opened_at_ms: int) -> Text:
    served = f"{row.component}@{row.component_version}" if row.component else "nobody"
    head = f"#{row.attempt} {served}"
    if row.reused:
        return shown(f"{head} reused from {row.reused_from[:12]}")
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
    return shown(f"{', '.join(parts)}: {outcome}", "red" if row.error else "")


def _decision_line(decision: DecisionRow) -> Text:
    options = ", ".join(
        f"{one.option.value} {'masked by ' + one.masked_by if one.masked_by else one.probability}"
        for one in decision.options
    )
    chosen = decision.chosen.value
    return shown(f"{decision.trigger.value}: {chosen} ({options})", "dim")


def _add_end(root: Tree, trajectory: Trajectory) -> None:
    for feedback in trajectory.feedback:
        score = "" if feedback.feedback.score is None else f" {feedback.feedback.score}"
        root.add(shown(f"feedback {feedback.feedback.kind.value}{score}"))
    for gap in trajectory.gaps:
        root.add(shown(f"missing: {gap.what} ({gap.why})", "yellow"))
    if trajectory.error is not None:
        root.add(shown(_error_text(trajectory.error), "red"))
    if not is_absent(trajectory.output):
        root.add(shown(f"output {_short(trajectory.output)}"))


def _by_attempt(decisions: Iterable[DecisionRow]) -> dict[tuple[str, int], list[DecisionRow]]:
    found: dict[tuple[str, int], list[DecisionRow]] = {}
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
