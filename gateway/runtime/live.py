"""Sessions in memory: an LRU over the journal (R07).

A session that is not here is its journal; `find` reads it back by replaying its events. Only a
session with nothing unwritten and nobody waiting on it is evicted; calls in flight and timers hold
names and find it again.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary
from acp_spec.model.errors import AcpFailure, Reason
from gateway.engine.definition import Workflow
from gateway.engine.events import AnyEvent, Opened, SessionErased
from gateway.engine.states import SessionState
from gateway.engine.step import apply, begin
from gateway.stores.errors import KeyGone, RecordError, StoreCorrupt
from gateway.stores.event_codec import Sealer
from gateway.stores.journal import read_events
from gateway.stores.ports import Store

WorkflowOf = Callable[[str], Workflow | None]
Notify = Callable[[], None]


class Live:
    """One session in memory. `state` is replaced by the driver only."""

    __slots__ = ("end_on_disk", "on_change", "on_end", "state", "unwritten", "waiting")

    def __init__(self, state: SessionState) -> None:
        self.state = state
        self.unwritten = 0
        """Appends whose batch is not written yet."""
        self.waiting: set[str] = set()
        """Calls that stand in an admission queue or wait for a component."""
        self.on_change: list[Notify] = []
        """Called after a sync that covers a change: event streams, manual steps."""
        self.on_end: list[Notify] = []
        """Called after the sync that covers the end: clients who wait for that alone."""
        self.end_on_disk = False
        """Its end is known to be synced; False where nobody has looked since it was read back."""

    @property
    def idle(self) -> bool:
        return not self.unwritten and not self.on_change and not self.on_end


class Erased(Exception):
    """The session's payloads are gone; only its tombstone is left."""


class LiveSessions:
    """The sessions of this gateway, `limit` of them kept in memory."""

    def __init__(
        self, store: Store, sealer: Sealer, *, workflow_of: WorkflowOf, limit: int
    ) -> None:
        self._store = store
        self._sealer = sealer
        self._workflow_of = workflow_of
        self._limit = limit
        self._live: OrderedDict[str, Live] = OrderedDict()

    def __len__(self) -> int:
        return len(self._live)

    def states(self) -> tuple[SessionState, ...]:
        """Those in memory as they stand now; nothing is read back, and none is looked at longer."""
        return tuple(live.state for live in self._live.values())

    def add(self, state: SessionState) -> Live:
        """Keep a session that was just opened."""
        live = self._live[state.session_id] = Live(state)
        self._evict(keep=live)
        return live

    def find(self, session_id: str) -> Live | None:
        """The session, from memory or from its journal; None when there is none.

        Raises Erased, or AcpFailure DATA_LOSS when its journal cannot be read.
        """
        live = self._live.get(session_id)
        if live is not None:
            self._live.move_to_end(session_id)
            return live
        state = self._read(session_id)
        return None if state is None else self.add(state)

    def drop(self, session_id: str) -> None:
        """Forget a session that was erased."""
        self._live.pop(session_id, None)

    def _read(self, session_id: str) -> SessionState | None:
        try:
            return replay(
                (
                    event
                    for _, event in read_events(self._store, self._sealer, session_id=session_id)
                ),
                self._workflow_of,
            )
        except KeyGone as gone:
            raise Erased(session_id) from gone
        except (RecordError, StoreCorrupt) as problem:
            raise unreadable(session_id, problem) from problem

    def _evict(self, *, keep: Live) -> None:
        """Drop the least recently used idle ones; look at a few only, the next call goes on.

        Never `keep`: whoever asked for it is about to write to it, and there must be one of each.
        """
        looked = 0
        while len(self._live) > self._limit and looked < 8:
            session_id, live = next(iter(self._live.items()))
            if live.idle and live is not keep:
                del self._live[session_id]
            else:
                self._live.move_to_end(session_id)
            looked += 1


def unreadable(session_id: str, problem: Exception) -> AcpFailure:
    """One session's journal is damaged: this session is lost, the others are not.

    A store's own words name files: they are for the log, where the caller of this puts them.
    """
    what = str(problem) if isinstance(problem, RecordError) else "the store is damaged"
    message = f"session {session_id} cannot be read back: {what}"
    return AcpFailure(error(Reason.DATA_LOSS, message, boundary=Boundary.GATEWAY))


def replay(events: Iterable[AnyEvent], workflow_of: WorkflowOf) -> SessionState | None:
    """The state that these events fold to; their commands are not acted on."""
    state: SessionState | None = None
    for event in events:
        if isinstance(event, SessionErased) and state is None:
            raise Erased
        if state is None:
            assert isinstance(event, Opened), "a journal begins with the opening"
            state, _ = begin(workflow_of(event.workflow_digest), event)
        else:
            apply(state, event)
    return state
