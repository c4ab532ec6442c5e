"""What is checked when a world is at rest: deliveries, ledgers, and each journal against itself."""

from gateway.engine import replay
from gateway.engine.events import Opened
from gateway.simulation.laws import Laws
from gateway.simulation.town import Town
from gateway.stores.errors import KeyGone
from gateway.stores.event_codec import Sealer
from gateway.stores.journal import read_events
from gateway.stores.ports import Store


def lines(laws: Laws) -> None:
    """The newest of every session left, and none twice: it tells what older ones that waited with
    it would have told (`gateway.runtime.outbox`)."""
    for session_id, book in laws.books.items():
        if book.is_erased or not book.records:
            continue
        newest = max(book.records)
        times = {sequence: laws.lines[session_id, sequence] for sequence in book.records}
        for sequence, count in times.items():
            if count > 1 or (sequence == newest and not count):
                what = f"sequence {sequence} was delivered {count} times"
                laws.broken("every trajectory exactly once", what, session=session_id)


def ledgers(laws: Laws, town: Town) -> None:
    """What must not be done twice was done once at most, as the components themselves know it.

    A wall clock that was set back lengthens the short keys of `tools` by as much (decisions).
    """
    for component in town.components.values():
        if laws.was_set_back and component.name == "tools":
            continue
        for call_id, attempts in component.done.items():
            if len(attempts) > 1:
                what = f"{component.name} did call {call_id} in attempts {attempts}"
                laws.broken("NONE never twice", what)


def journals(laws: Laws, store: Store) -> None:
    """Replay gives the same commands."""
    sealer = Sealer(store)
    for session_id, book in laws.books.items():
        try:
            events = [e for _, e in read_events(store, sealer, session_id=session_id)]
        except KeyGone:
            continue
        if book.is_told_erased:
            laws.broken("what was erased stays erased", "it can be read", session=session_id)
            continue
        if not events or not isinstance(events[0], Opened):
            laws.broken("what was written survives", "there is no journal", session=session_id)
            continue
        found = replay.check(events, laws.workflows.get(events[0].workflow_digest))
        if not found.same or not found.proven:
            laws.broken("replay gives the same commands", found.difference, session=session_id)
        if found.events != book.sequence:
            what = f"{found.events} events, {book.sequence} seen"
            laws.broken("what was written survives", what, session=session_id)
