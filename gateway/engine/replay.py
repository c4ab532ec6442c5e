"""Running a journal through the engine again: the same commands, and every event explained.

Two proofs. At its end a session wrote down the hash of all its commands; the replay must come to
the same: before the end nothing is proven of the commands. And each event that the engine causes
must answer a command that was outstanding: a call that nobody asked for, or a timer that nobody
set, is a difference.
"""

from collections.abc import Iterable, Iterator

import msgspec

from gateway.engine import commanded
from gateway.engine.commands import Advance, Call, Command, Decide, Hedge, Send, StartTimer
from gateway.engine.definition import Workflow
from gateway.engine.events import (
    AnyEvent,
    AttemptEnded,
    AttemptStarted,
    CallCreated,
    CancelRequested,
    Decided,
    Deferred,
    FeedbackGiven,
    FinishRequested,
    Late,
    Opened,
    OperationEnded,
    Refused,
    SessionEnded,
    SessionErased,
    StepEnded,
    SubGoalEnded,
    TimerFired,
)
from gateway.engine.states import SessionState
from gateway.engine.step import begin, step

ANSWERS: dict[type, type | None] = {
    Opened: None,
    CancelRequested: None,
    FinishRequested: None,
    FeedbackGiven: None,
    SessionErased: None,
    Late: Send,
    CallCreated: Advance,
    SubGoalEnded: Advance,
    StepEnded: Advance,
    SessionEnded: Advance,
    Deferred: Call,
    Refused: Call,
    AttemptStarted: Call,
    AttemptEnded: Send,
    OperationEnded: Send,
    Decided: Decide,
    TimerFired: StartTimer,
}
"""Which command an event answers; None: it comes from outside."""


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """One event with the commands it led to; `digest`: of all commands before it."""

    number: int
    event: AnyEvent
    commands: tuple[Command, ...]
    digest: str = ""


class Replayed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a replay found; `difference` is empty when nothing is.

    `proven`: the session has ended, and the replay came to the hash of commands of that end. Until
    then `same` only says that every event so far is explained.
    """

    session_id: str
    events: int
    commands: int
    same: bool
    proven: bool
    difference: str = ""


def play(
    events: Iterable[AnyEvent], workflow: Workflow | None
) -> tuple[SessionState, list[Played]]:
    """The state the events fold to, and what each of them commanded."""
    last: SessionState | None = None
    played = []
    for state, one in _fold(events, workflow):
        last = state
        played.append(one)
    assert last is not None, "a journal holds at least the opening"
    return last, played


def _fold(
    events: Iterable[AnyEvent], workflow: Workflow | None
) -> Iterator[tuple[SessionState, Played]]:
    state: SessionState | None = None
    for number, event in enumerate(events, 1):
        digest = ""
        if state is None:
            assert isinstance(event, Opened), "a journal begins with the opening"
            state, commands = begin(workflow, event)
        else:
            digest = commanded.digest(state.commanded, opened=state.opened)
            state, commands = step(state, event)
        yield state, Played(number=number, event=event, commands=tuple(commands), digest=digest)


def check(events: Iterable[AnyEvent], workflow: Workflow | None) -> Replayed:
    """Replay a journal and say whether it commands what it did; a misfit is told, never raised."""
    session_id, difference = "", ""
    played: list[Played] = []
    try:
        for state, one in _fold(events, workflow):
            session_id = state.session_id
            played.append(one)
    except (AssertionError, LookupError) as problem:
        difference = f"event {len(played) + 1} does not fit what came before: {problem}"
    difference = difference or _digest_difference(played) or _unexplained(played)
    return Replayed(
        session_id=session_id,
        events=len(played),
        commands=sum(len(one.commands) for one in played),
        same=not difference,
        proven=not difference and any(_written_digest(one) for one in played),
        difference=difference,
    )


def _digest_difference(played: list[Played]) -> str:
    """The hash that the session wrote down at its end, against that of the commands before it."""
    for one in played:
        written = _written_digest(one)
        if written and one.digest != written:
            return f"event {one.number}: the commands before it hash to another digest"
    return ""


def _written_digest(one: Played) -> str:
    """The hash that this event wrote down, if it is the session's end."""
    return one.event.commands_digest if isinstance(one.event, SessionEnded) else ""


def _unexplained(played: list[Played]) -> str:
    given: set[type] = set()
    names: set[tuple[type, str]] = set()
    for one in played:
        event = one.event
        asked = ANSWERS[type(event)]
        name = str(getattr(event, "call_id", ""))
        if isinstance(event, CallCreated) and event.manual_key:
            asked = None
        if isinstance(event, AttemptStarted) and event.hedge:
            asked = Hedge
        if asked is not None and not _outstanding(asked, name, given=given, names=names):
            kind = type(event).__name__
            return f"event {one.number} ({kind}): no {asked.__name__} was commanded for it"
        given.update(type(command) for command in one.commands)
        names.update((type(c), str(getattr(c, "call_id", ""))) for c in one.commands)
    return ""


def _outstanding(asked: type, name: str, *, given: set[type], names: set[tuple[type, str]]) -> bool:
    return (asked, name) in names if name and asked is not Advance else asked in given
