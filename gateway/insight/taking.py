"""Samples from trajectories: each call that settled, with what it was given and what came of it.

Ids that differ from session to session (of calls, of the session, its lineage) are replaced by the
places they stand for before anything is compared. What a caller says to leave out (`Compared`) is
left out of input and output alike. Pure: rewards are as the trajectory has them.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import StepRole
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.payload import Payload
from acp_spec.model.trajectory import Attempt, Trajectory
from gateway.engine.finite_mean import mean_of
from gateway.engine.plan_order import plan_order
from gateway.insight.samples import CallSample, Json, SessionSample, StepSample

_DIGITS_MAX = 300
OK = "OK"
SUCCEEDED, QUALITY, SESSION, LONG_TERM = "succeeded", "quality", "session", "long_term"
INPUT = "input"
"""The session's own, among the steps."""
_ENVELOPE = ("/component", "/retries_spent", "/usage", "/llm_calls")
"""Of an answer: who gave it at what cost, not what it says."""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """What counts, as JSON pointers with array places as `*`. `ignore`: left out of every input and
    output. `only`: per step (`input`: the session's) what alone counts of its input."""

    ignore: tuple[str, ...] = ()
    only: dict[str, tuple[str, ...]] = {}


def session_sample(
    one: Trajectory, *, reward: str, compared: Compared | None = None
) -> SessionSample:
    """The session for `contribution`: calls as they settled. `reward`: see `reward_of`."""
    reader = _Reader(one, compared or Compared())
    return SessionSample(
        given=f"{reader.workflow} {_digest(reader.pruned(one.input, step=INPUT))}",
        steps=tuple(reader.step(slot, rows) for slot, rows in reader.calls.items()),
        reward=reward_of(one, reward),
        workflow=one.lineage.workflow_sha256,
    )


def call_samples(one: Trajectory, *, compared: Compared | None = None) -> Iterator[CallSample]:
    """The session's calls for `drift`: the first of each component and kind of work, because calls
    of one session are alike and must not count as many; of it the first attempt that was sent,
    because what a retry made good is a change too."""
    reader = _Reader(one, compared or Compared())
    seen: set[tuple[str, str, str]] = set()
    for rows in reader.calls.values():
        first = next((row for row in rows if row.sent_at and row.ended_at), None)
        if first is None:
            continue
        sample = reader.call(first)
        key = sample.component, sample.version, sample.link
        if key not in seen:
            seen.add(key)
            yield sample


class _Reader:
    """One trajectory's calls as values in which nothing is of this session alone."""

    def __init__(self, one: Trajectory, compared: Compared) -> None:
        self.workflow = one.workflow.partition("@")[0]
        self.calls = settled_calls(one)
        self._one = one
        self._compared = compared
        self._answers = msgspec.structs.replace(
            compared, ignore=(*compared.ignore, *_ENVELOPE), only={}
        )
        self._names = names_of(one, self.calls)

    def step(self, slot: str, rows: list[Attempt]) -> StepSample:
        row = settling(rows)
        if row.error is not None:
            came = f"error:{row.error.reason}"
        else:
            came = _digest(self._came(row)) if row.ended_at else "unended"
        return StepSample(
            slot=slot,
            component=row.component,
            link=self._link(row),
            given=_digest(self.pruned(row.arguments, step=row.step)),
            came=came,
        )

    def call(self, row: Attempt) -> CallSample:
        return CallSample(
            session_id=self._one.session_id,
            component=row.component,
            version=row.component_version,
            link=self._link(row),
            given=self.pruned(row.arguments, step=row.step),
            came=self._came(row),
            outcome=row.error.reason if row.error else OK,
        )

    def pruned(self, given: Payload, *, step: str) -> Json:
        """What of an input counts; with `only`, a list of what stands at those pointers."""
        value = _read(given, self._names, ignore=frozenset(self._compared.ignore))
        only = self._compared.only.get(step)
        return value if only is None else [_found(value, pointer) for pointer in only]

    def _came(self, row: Attempt) -> Json:
        if row.error is not None:
            return None
        is_action = row.role == StepRole.EXECUTE.value
        compared = self._compared if is_action else self._answers
        return _read(row.output, self._names, ignore=frozenset(compared.ignore))

    def _link(self, row: Attempt) -> str:
        """What was asked: the action, or the workflow's step of a call without one."""
        is_action = row.role == StepRole.EXECUTE.value
        return row.action if is_action else f"{self.workflow}.{row.step}"


def check_reward(reward: str) -> None:
    """INVALID_REQUEST for what `reward_of` does not know."""
    known = (SUCCEEDED, QUALITY, SESSION, LONG_TERM)
    if reward not in known and not reward.startswith(f"{QUALITY}:"):
        message = f"reward {reward!r} is none of {', '.join(known)}, {QUALITY}:NAME"
        raise AcpFailure(error(Reason.INVALID_REQUEST, message))


def reward_of(one: Trajectory, reward: str) -> float | None:
    """`succeeded`: 1 or 0. `quality`: the mean of what was judged, `quality:NAME` of that name.
    `session`, `long_term`: the quality of that part by reward rules. None where nobody judged."""
    kind, _, name = reward.partition(":")
    vector = one.rewards.vector
    if kind == SUCCEEDED:
        return float(one.rewards.operational.succeeded)
    if kind in (SESSION, LONG_TERM):
        part = vector and (vector.session if kind == SESSION else vector.long_term)
        return part.quality.value if part else None
    given = [
        row.value
        for row in one.rewards.quality
        if row.value is not None and name in ("", row.name) and math.isfinite(row.value)
    ]
    return mean_of(given) if given else None


def settled_calls(one: Trajectory) -> dict[str, list[Attempt]]:
    """Rows by the call's place in the workflow, in an order that does not depend on who was faster.

    Results that were taken over from an earlier loop are no calls.
    """
    rows: dict[str, list[Attempt]] = {}
    for row in one.calls:
        if not row.reused:
            rows.setdefault(row.call_id, []).append(row)
    begun = {call_id: place for place, call_id in enumerate(rows)}
    block: dict[tuple[str, int], int] = {}
    for call_id, attempts in rows.items():
        block.setdefault((attempts[0].step, attempts[0].loop), begun[call_id])
    order = plan_order(one.plan)

    def place(call_id: str) -> tuple[int, int, int]:
        first = rows[call_id][0]
        return block[first.step, first.loop], order.get(first.sub_goal, 0), begun[call_id]

    return dict(_slots(rows[call_id] for call_id in sorted(rows, key=place)))


def _slots(calls: Iterable[list[Attempt]]) -> Iterator[tuple[str, list[Attempt]]]:
    taken: dict[str, int] = {}
    for rows in calls:
        first = rows[0]
        name = first.step + (f"/{first.sub_goal}" if first.sub_goal else "")
        name += f"#{first.loop}" if first.loop else ""
        taken[name] = taken.get(name, 0) + 1
        yield (f"{name}~{taken[name]}" if taken[name] > 1 else name), rows


def settling(rows: list[Attempt]) -> Attempt:
    """The attempt whose answer stood: the one that succeeded, else the last."""
    return next((row for row in rows if row.error is None and row.ended_at), rows[-1])


def names_of(one: Trajectory, calls: Mapping[str, list[Attempt]]) -> dict[bytes, bytes]:
    """What an id of this session is called in every session. Lineage ids begin with the session's,
    so they come first."""
    named = {one.lineage_id: "(lineage)", one.session_id: "(session)"}
    for place, rows in enumerate(calls.values()):
        named[rows[0].call_id] = f"(call {place})"
    return {name.encode(): word.encode() for name, word in named.items() if name}


def _read(given: Payload, names: Mapping[bytes, bytes], *, ignore: frozenset[str]) -> Json:
    text = bytes(given)
    for name, word in names.items():
        text = text.replace(name, word)
    value: Json = json.loads(text, parse_int=_whole) if text else None
    return _kept(value, at="", ignore=ignore)


def _whole(digits: str) -> int | float:
    """A payload may hold a number of thousands of digits, which nobody compares to the last."""
    return int(digits) if len(digits) <= _DIGITS_MAX else float(digits)


def _kept(value: Json, *, at: str, ignore: frozenset[str]) -> Json:
    """Without what is ignored; whole numbers in one spelling."""
    if isinstance(value, dict):
        fields = ((name, f"{at}/{escaped(name)}") for name in value)
        return {
            name: _kept(value[name], at=where, ignore=ignore)
            for name, where in fields
            if where not in ignore
        }
    if isinstance(value, list):
        where = f"{at}/*"
        return [] if where in ignore else [_kept(one, at=where, ignore=ignore) for one in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _found(value: Json, pointer: str) -> Json:
    """What stands there, of a list what stands there in each."""
    for number, part in enumerate(parts := pointer.split("/")[1:]):
        if isinstance(value, list) and part == "*":
            rest = "".join(f"/{one}" for one in parts[number + 1 :])
            return [_found(one, rest) for one in value]
        if not isinstance(value, dict):
            return None
        value = value.get(part.replace("~1", "/").replace("~0", "~"))
    return value


def escaped(name: str) -> str:
    """A member's name as a pointer has it."""
    return name.replace("~", "~0").replace("/", "~1")


def _digest(value: Json) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:24]
