"""The score of a scenario, from both sides: what its callers were told, what the component wrote.

A rule holds or it does not; how many sessions succeed is told, and is not the rule, except where a
fault must not cost any.
"""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.tests.e2e.client import TERMINAL

ATTEMPTS_MAX = 3
GRACE_MS = 4_000
"""Cancel grace and a busy machine: a session may end so long after its deadline, not counting the
time in which there was no gateway."""


@dataclass(frozen=True, slots=True)
class Log:
    """What the component wrote down."""

    asked: Counter[tuple[str, int]]
    did: Counter[str]

    @classmethod
    def read(cls, path: Path) -> "Log":
        asked: Counter[tuple[str, int]] = Counter()
        did: Counter[str] = Counter()
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        for line in text.splitlines(keepends=True):
            if not line.endswith("\n"):
                break  # it is being written: a page of it may be there already
            said = json.loads(line)
            if said["what"] == "asked":
                asked[said["call_id"], said["attempt"]] += 1
            elif said["action"] != "look":
                did[said["call_id"]] += 1
        return cls(asked, did)


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One session as its caller sees it."""

    view: dict[str, Any]
    rows: list[dict[str, Any]]


@dataclass(slots=True, kw_only=True)
class Score:
    """One line of the wall."""

    name: str
    sessions: int = 0
    succeeded: int = 0
    attempts: int = 0
    asked: int = 0
    did: int = 0
    broken: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        return "FAIL" if self.broken else "PASS"


def score(name: str, told: list[Told], log: Log, *, deadline_ms: int) -> Score:
    """Hold both sides against each other."""
    found = Score(name=name, sessions=len(told), asked=log.asked.total(), did=log.did.total())
    for session in told:
        found.succeeded += session.view["status"] == "SUCCEEDED" and _all_well(session)
        found.attempts += len(session.rows)
        found.broken += _session_rules(session, deadline_ms=deadline_ms)
        found.broken += _call_rules(session, log)
    known = {(row["call_id"], row["attempt"]) for session in told for row in session.rows}
    unknown = [address for address in log.asked if address not in known]
    if unknown:
        found.broken.append(f"{len(unknown)} requests arrived that no attempt accounts for")
    return found


def _all_well(session: Told) -> bool:
    return all(step["status"] == "SUCCEEDED" for step in session.view["steps"])


def _session_rules(session: Told, *, deadline_ms: int) -> list[str]:
    view, broken = session.view, []
    if view["status"] not in TERMINAL:
        broken.append(f"{view['session_id']} does not end: {view['status']}")
    else:
        times = view["times"]
        late_ms = _ms(times["ended_at"]) - _ms(times["opened_at"]) - deadline_ms
        if late_ms > GRACE_MS:
            broken.append(f"{view['session_id']} ended {late_ms} ms behind its deadline")
    return broken


def _call_rules(session: Told, log: Log) -> list[str]:
    broken: list[str] = []
    calls: dict[str, list[dict[str, Any]]] = {}
    for row in session.rows:
        calls.setdefault(row["call_id"], []).append(row)
    for call_id, rows in calls.items():
        action, did = rows[0]["action"], log.did[call_id]
        if len(rows) > ATTEMPTS_MAX:
            broken.append(f"{action}: {len(rows)} attempts")
        if action != "look" and did > 1:
            broken.append(f"{action}: done {did} times")
        effects = [row.get("side_effect", "UNKNOWN") for row in rows]
        if "PERFORMED" in effects and action != "look" and not did:
            broken.append(f"{action}: told as done, the component never did it")
        if set(effects) == {"NONE"} and action != "look" and did:
            broken.append(f"{action}: told as not done, the component did it")
        for row in rows:
            if "output" in row and not log.asked[call_id, row["attempt"]]:
                broken.append(f"{action}: an output of an attempt that never arrived")
    return broken


def _ms(text: str) -> float:
    from acp_spec.model.times import parse_rfc3339

    found = parse_rfc3339(text)
    assert found is not None
    return found


def table(scores: list[Score]) -> str:
    """The wall, to be read."""
    head = f"{'scenario':34} {'':4} {'sessions':>8} {'well':>5}"
    head += f" {'attempts':>8} {'asked':>6} {'did':>5}"
    lines = [head, "-" * len(head)]
    for one in scores:
        lines.append(
            f"{one.name:34} {one.verdict:4} {one.sessions:8} {one.succeeded:5}"
            f" {one.attempts:8} {one.asked:6} {one.did:5}"
        )
        lines += [f"    {what}" for what in dict.fromkeys(one.broken)]
    return "\n".join(lines)
