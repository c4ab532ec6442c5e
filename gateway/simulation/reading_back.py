"""After a death: the books are written anew from what the journal holds, as the next life finds it.

What was written must be there, after a power cut what was synced; whatever a client was told must
be there in any case.
"""

from gateway.engine.events import AnyEvent, Opened
from gateway.engine.step import begin, step
from gateway.simulation.books import SessionBook
from gateway.simulation.laws import Laws
from gateway.stores.errors import KeyGone
from gateway.stores.event_codec import Sealer
from gateway.stores.journal import read_events
from gateway.stores.ports import Store


def read_back(laws: Laws, store: Store) -> None:
    """Every session that was ever seen."""
    sealer = Sealer(store)
    laws.is_reading_back = True
    for session_id, book in list(laws.books.items()):
        try:
            events = [e for _, e in read_events(store, sealer, session_id=session_id)]
        except KeyGone:
            book.is_erased = True
            continue
        _compare(laws, session_id, book=book, events=events)
    laws.is_reading_back = False


def _compare(laws: Laws, session_id: str, *, book: SessionBook, events: list[AnyEvent]) -> None:
    if not events and not book.acknowledged and not book.written:
        del laws.books[session_id]
        return
    _fold(laws, session_id, events=events)
    if book.is_told_erased:
        laws.broken("what was erased stays erased", "it is there again", session=session_id)
    if book.sequence < book.written:
        what = f"{book.sequence} of {book.written} events are there"
        laws.broken("what was written survives", what, session=session_id)
    if book.sequence < book.acknowledged:
        what = f"{book.sequence} of {book.acknowledged} events are there"
        laws.broken("nothing acknowledged is lost", what, session=session_id)
    laws.found(book)


def _fold(laws: Laws, session_id: str, *, events: list[AnyEvent]) -> None:
    state = None
    try:
        for event in events:
            if state is None:
                assert isinstance(event, Opened), "a journal begins with the opening"
                state, _ = begin(laws.workflows.get(event.workflow_digest), event)
            else:
                state, _ = step(state, event)
            laws.seen(state, event)
    except (AssertionError, LookupError) as misfit:
        laws.broken("replay gives the same commands", str(misfit), session=session_id)
