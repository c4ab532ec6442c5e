"""Kept histories: whole sessions as files that must replay the same for ever.

A file holds the workflow's text, the events, and the commands that each event led to. Files are
written once by `python -m gateway.engine.tests.write_histories` and never changed: a change of
`step` that breaks one needs a new `BEHAVIOUR` that leaves old sessions alone.
"""

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from acp_spec.model.session import Deviation
from gateway.engine import replay
from gateway.engine.commands import Command
from gateway.engine.definition import Workflow
from gateway.engine.events import AnyEvent, AttemptStarted
from gateway.engine.states import SessionState
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import workflow_of


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One event and what it commanded."""

    event: AnyEvent
    commands: tuple[Command, ...] = ()


class History(msgspec.Struct, frozen=True, kw_only=True):
    """One session. `workflow`: the file's text, empty for a manual session without one."""

    story: str
    behaviour: int
    workflow: str
    entries: tuple[Entry, ...]
    status: str
    version: str

    def parsed(self) -> Workflow | None:
        return workflow_of(self.workflow) if self.workflow else None


def folder() -> Traversable:
    return resources.files("gateway.tests").joinpath("histories")


def kept() -> dict[str, Traversable]:
    """Every history by name."""
    files = (entry for entry in folder().iterdir() if entry.name.endswith(".json"))
    return {entry.name.removesuffix(".json"): entry for entry in files}


def read(name: str) -> History:
    return msgspec.json.decode(kept()[name].read_bytes(), type=History)


class AskedCall(msgspec.Struct, frozen=True):
    """A call as a reflector's request names it."""

    call_id: str
    action: str = ""


class _Asked(msgspec.Struct, frozen=True):
    calls: tuple[AskedCall, ...] = ()


def asked_calls(body: bytes) -> tuple[AskedCall, ...]:
    return msgspec.json.decode(body, type=_Asked).calls


def folded(events: list[AnyEvent], workflow: Workflow | None) -> SessionState:
    """The state that these events lead to."""
    state, _ = replay.play(events, workflow)
    return state


def deviated(started: AttemptStarted, deviation: Deviation) -> AttemptStarted:
    """The same start on another version than was meant."""
    _, _, version = deviation.served.partition("@")
    return msgspec.structs.replace(started, version=version, deviation=deviation)


def of_play(story: str, workflow: str, play: Play) -> History:
    """The history of a session that was played."""
    state, played = replay.play(play.journal, play.workflow)
    return History(
        story=story,
        behaviour=state.opened.behaviour,
        workflow=workflow,
        entries=tuple(Entry(event=one.event, commands=one.commands) for one in played),
        status=state.status.value,
        version=state.version_text,
    )


def write_new(name: str, history: History) -> bool:
    """Write the file if there is none of that name."""
    path = Path(str(folder().joinpath(f"{name}.json")))
    if path.exists():
        return False
    lines = b",\n".join(msgspec.json.encode(entry) for entry in history.entries)
    head = msgspec.structs.replace(history, entries=())
    text = msgspec.json.encode(head).replace(b'"entries":[]', b'"entries":[\n' + lines + b"\n]")
    path.write_bytes(text + b"\n")
    return True
