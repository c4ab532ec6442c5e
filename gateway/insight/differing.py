"""What two runs differ in, each difference by its place: versions, policies, inputs, plan, calls.

A run is read as facts, a text at each named place; two runs differ where their texts do. So nothing
differs from itself, the order of the two only swaps the sides, and what is not read cannot differ.
Ids of the runs are replaced by the places they stand for. Times are no facts: no two are alike.
Texts are as the trajectory has them: whoever shows them masks them.
"""

import enum
import hashlib
from collections.abc import Iterator
from decimal import Decimal
from itertools import zip_longest
from typing import NamedTuple

import msgspec

from acp_spec.model.payload import Payload, payload
from acp_spec.model.reward_vector import Quality
from acp_spec.model.session import Feedback
from acp_spec.model.trajectory import Attempt, Trajectory
from gateway.governance.comparison import Json, read, written
from gateway.insight.taking import escaped, names_of, settled_calls, settling

FIELDS_MAX = 2_000
"""Fields of one payload that are told apart; the others are compared together, as `(others)`."""

TEXT_CHARACTERS_MAX = 1_000
"""A longer text is told by its beginning, and compared by a digest of all of it."""

OTHERS, WHOLE = "(others)", "(whole)"
"""Places in a payload that are no pointers: those begin with a slash."""

_PLAIN_DIGITS_MAX = 40


class Subject(enum.Enum):
    """What a fact is about, in the order in which differences are told: causes before effects."""

    WORKFLOW = "WORKFLOW"
    INPUT = "INPUT"
    LABEL = "LABEL"
    ROLLOUT = "ROLLOUT"
    INTENDED = "INTENDED"
    POLICY = "POLICY"
    PLAN = "PLAN"
    SERVED = "SERVED"
    PARAMETERS = "PARAMETERS"
    ARGUMENTS = "ARGUMENTS"
    RESULT = "RESULT"
    ATTEMPTS = "ATTEMPTS"
    DECISION = "DECISION"
    OUTCOME = "OUTCOME"
    OUTPUT = "OUTPUT"
    REWARD = "REWARD"
    FEEDBACK = "FEEDBACK"


PARTING = (Subject.SERVED, Subject.ARGUMENTS, Subject.RESULT)
"""What makes a call another one."""


class Difference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One fact that is not the same. `call`: the call's place in the workflow, where it is about
    one; `at` names it within its subject (a JSON pointer, a role). A side that lacks it is null."""

    subject: Subject
    call: str = ""
    at: str = ""
    left: str | None
    right: str | None


class Parting(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first calls that are not the same: their places (empty where a run has no more calls),
    and in what they differ; nothing where they are calls of different places."""

    left: str = ""
    right: str = ""
    subjects: tuple[Subject, ...] = ()


class RunDiff(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What differs; no `parting` where all calls are the same."""

    differences: tuple[Difference, ...] = ()
    parting: Parting | None = None


class Place(NamedTuple):
    """What a fact is about."""

    subject: Subject
    call: str
    at: str


Facts = dict[Place, str]


def difference(left: Trajectory, right: Trajectory) -> RunDiff:
    """Everything in which the two differ, by subject, then as the runs tell it."""
    one, other = facts(left), facts(right)
    order = {subject: number for number, subject in enumerate(Subject)}
    places = sorted({**one, **other}, key=lambda place: order[place.subject])
    differing = [place for place in places if one.get(place) != other.get(place)]
    return RunDiff(
        differences=tuple(
            Difference(
                subject=place.subject,
                call=place.call,
                at=place.at,
                left=one.get(place),
                right=other.get(place),
            )
            for place in differing
        ),
        parting=_parting(
            list(settled_calls(left)), list(settled_calls(right)), differing=differing
        ),
    )


def facts(one: Trajectory) -> Facts:
    """All that is compared of a run."""
    return _Reader(one).facts()


def _parting(left: list[str], right: list[str], *, differing: list[Place]) -> Parting | None:
    by_call: dict[str, set[Subject]] = {}
    for place in differing:
        by_call.setdefault(place.call, set()).add(place.subject)
    for one, other in zip_longest(left, right, fillvalue=""):
        subjects = tuple(s for s in PARTING if s in by_call.get(one, ())) if one == other else ()
        if one != other or subjects:
            return Parting(left=one, right=other, subjects=subjects)
    return None


class _Reader:
    """One trajectory's facts."""

    def __init__(self, one: Trajectory) -> None:
        self._one = one
        self._calls = settled_calls(one)
        self._names = names_of(one, self._calls)
        self._slot_of = {rows[0].call_id: slot for slot, rows in self._calls.items()}
        self._found: Facts = {}

    def facts(self) -> Facts:
        self._opening()
        self._plans()
        for slot, rows in self._calls.items():
            self._call(slot, rows)
        self._decisions()
        self._end()
        self._rewards()
        for row in self._one.feedback:
            self._feedback(row.feedback)
        return self._found

    def _add(self, subject: Subject, at: str, *, text: str, call: str = "") -> None:
        """Of several at one place each is told: the second is `at~2`, which no pointer is."""
        place, number = Place(subject, call, at), 1
        while place in self._found:
            number += 1
            place = Place(subject, call, f"{at}~{number}")
        self._found[place] = _short(text)

    def _opening(self) -> None:
        one = self._one
        self._add(Subject.WORKFLOW, "version", text=one.workflow)
        self._add(Subject.WORKFLOW, "sha256", text=one.lineage.workflow_sha256)
        self._payload(Subject.INPUT, one.input)
        for name, value in one.labels.items():
            self._add(Subject.LABEL, name, text=value)
        for mark in one.rollouts:
            self._add(Subject.ROLLOUT, mark.rollout, text=f"{mark.stage} {mark.arm}")
        for role, pin in one.lineage.intended.items():
            self._add(Subject.INTENDED, role, text=pin)
        for name, policy in one.lineage.policies.items():
            self._add(Subject.POLICY, name, text=policy)

    def _plans(self) -> None:
        for version in self._one.plan:
            at = f"{version.step} {version.generation}"
            self._add(Subject.PLAN, f"{at} root_goal", text=version.plan.root_goal)
            for goal in version.plan.sub_goals:
                text = payload(msgspec.json.encode(goal))
                self._payload(Subject.PLAN, text, under=f"{at} {goal.id}")

    def _call(self, slot: str, rows: list[Attempt]) -> None:
        row = settling(rows)
        served = f"{row.component}@{row.component_version}" if row.component else "nobody"
        self._add(Subject.SERVED, row.action or row.role, text=served, call=slot)
        if row.parameter_version:
            self._add(Subject.PARAMETERS, "version", text=str(row.parameter_version), call=slot)
        self._payload(Subject.ARGUMENTS, row.arguments, call=slot)
        self._add(Subject.ATTEMPTS, "number", text=str(len(rows)), call=slot)
        if row.error is not None:
            self._add(Subject.RESULT, "error", text=row.error.reason, call=slot)
        elif row.ended_at:
            self._payload(Subject.RESULT, row.output, call=slot)
        else:
            self._add(Subject.RESULT, "error", text="not ended", call=slot)

    def _decisions(self) -> None:
        for row in self._one.decisions:
            call, at = self._slot(row.call_id), f"after {row.after_attempt}"
            chosen = f"{row.trigger.value}: {row.chosen.value}"
            self._add(Subject.DECISION, at, text=chosen, call=call)
            policy = f"{row.policy.name}@{row.policy.version}#{row.policy.digest}"
            self._add(Subject.POLICY, at, text=policy, call=call)

    def _end(self) -> None:
        one = self._one
        self._add(Subject.OUTCOME, "status", text=one.status.value)
        if one.error is not None:
            self._add(Subject.OUTCOME, "error", text=one.error.reason)
        self._add(Subject.OUTCOME, "fell_back", text=str(one.fell_back).lower())
        if one.fallback is not None and not one.fallback.probe:
            self._add(Subject.OUTCOME, "rule", text=f"{one.fallback.rule}@{one.fallback.version}")
        self._payload(Subject.OUTPUT, one.output)

    def _rewards(self) -> None:
        for row in self._one.rewards.quality:
            told = _judged(row.value, row.validity, reason=row.reason)
            at = f"{row.name} {row.source}".strip()
            self._add(Subject.REWARD, at, text=told, call=self._slot(row.call_id))
        vector = self._one.rewards.vector
        if vector is None:
            return
        rules = vector.rules
        self._add(Subject.REWARD, "rules", text=f"{rules.name}@{rules.version}#{rules.digest}")
        self._quality("session", vector.session.quality)
        self._quality("long_term", vector.long_term.quality)
        for step in vector.step:
            self._quality("step", step.quality, call=self._slot(step.call_id))

    def _quality(self, at: str, given: Quality, *, call: str = "") -> None:
        told = _judged(given.value, given.validity.value, reason=given.reason)
        self._add(Subject.REWARD, at, text=told, call=call)

    def _feedback(self, given: Feedback) -> None:
        target = given.target
        where = f"{target.step}#{target.loop}" if target.step else "session"
        score = "" if given.score is None else f"{given.score!r} "
        at = f"{where} {given.kind.value} {given.author}"
        told = f"{score}{given.comment}".strip()
        self._add(Subject.FEEDBACK, at, text=told, call=self._slot(target.call_id))

    def _slot(self, call_id: str) -> str:
        """Where a call stands; one that was taken over from an earlier loop has no place."""
        return self._slot_of.get(call_id, "(taken over)" if call_id else "")

    def _payload(
        self, subject: Subject, given: Payload, *, call: str = "", under: str = ""
    ) -> None:
        """Each field by its pointer; the first ones, when there are very many."""
        text = bytes(given)
        for name, word in self._names.items():
            text = text.replace(name, word)
        rest, others = hashlib.sha256(), 0
        for number, (pointer, leaf) in enumerate(_leaves(read(text), at="") if text else ()):
            if number < FIELDS_MAX:
                at = f"{under} {pointer or WHOLE}".strip()
                self._add(subject, at, text=leaf, call=call)
            else:
                rest.update(f"{pointer}\0{leaf}\0".encode())
                others += 1
        if others:
            told = f"{others} fields, sha256 {rest.hexdigest()[:24]}"
            self._add(subject, f"{under} {OTHERS}".strip(), text=told, call=call)


def _leaves(value: Json, *, at: str) -> Iterator[tuple[str, str]]:
    """What stands at each pointer that has nothing below it; members in one order."""
    if isinstance(value, dict) and value:
        for name in sorted(value):
            yield from _leaves(value[name], at=f"{at}/{escaped(name)}")
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from _leaves(item, at=f"{at}/{number}")
    elif isinstance(value, Decimal):
        yield at, _number(value)
    else:
        yield at, written(value)


def _number(value: Decimal) -> str:
    """One spelling for one number: 1.0 is 1. Plain, while it is short so."""
    if not value or abs(value.adjusted()) > _PLAIN_DIGITS_MAX:
        return written(value)
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _judged(value: float | None, validity: str, *, reason: str) -> str:
    return repr(value) if value is not None else f"{validity} {reason}".strip()


def _short(text: str) -> str:
    if len(text) <= TEXT_CHARACTERS_MAX:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:24]
    return f"{text[:TEXT_CHARACTERS_MAX]}... ({len(text)} characters, sha256 {digest})"
