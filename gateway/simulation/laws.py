"""The laws of every session, checked at every event, every send, every write and every answer.

The checker counts for itself (`books`) and believes no figure of the engine. A law has a name; a
mutant must break the law that it is said to break. Nothing here touches what it watches.
"""

import zlib
from collections import Counter
from collections.abc import Callable, Sequence

from acp_spec.model.card import Limits
from acp_spec.model.enums import Effect, Idempotency, SessionStatus
from acp_spec.model.recovery import Option
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
    Late,
    Opened,
    OperationEnded,
    Refused,
    SessionEnded,
    SessionErased,
    Timer,
    TimerFired,
)
from gateway.engine.states import RETRIES_PER_CALL, Phase, SessionState
from gateway.runtime.connection import Outgoing
from gateway.simulation.books import CallBook, SessionBook, Violation, call_of
from gateway.simulation.component import effect_of
from gateway.simulation.target_laws import TargetLaws
from gateway.simulation.town import NUMBER
from gateway.simulation.virtual_loop import Process
from gateway.stores.memory import Operation
from gateway.stores.ports import Table
from gateway.stores.tables import SESSION_BYTES
from gateway.stores.trajectory_log import head_of

VIOLATIONS_MAX = 20
WAIT_S_MAX = 20.0
"""Longer than any queue of a world takes to empty; a session of 20 to 40 s tells the difference."""
SLACK_MS = 10_000
"""Gateways that are down, stopped or slow end no session meanwhile."""
SYNCS_MAX = 3
"""What an attempt waits for at most: a sync that had begun before its record was written, the one
that covers it, and one more where another record was written before anybody asked."""
AFTER_END = (FeedbackGiven, Late, SessionErased)


class Laws:
    """The books of one world, and what was found wrong."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.now_s = now_s
        self.books: dict[str, SessionBook] = {}
        self.violations: list[Violation] = []
        self.counts: Counter[str] = Counter()
        self.digest = 0
        self.lines: Counter[tuple[str, int]] = Counter()
        self.wall_ms: Callable[[], int] = lambda: 0
        self.is_reading_back = False
        self.open_sessions = 0
        self.slack_ms = SLACK_MS
        self.was_set_back = False
        self.workflows: dict[str, Workflow] = {}
        self.causes: list[BaseException | None] = []
        self._careful: dict[str, int] = {}
        self.targets = TargetLaws(now_s, self.broken)
        self._book: SessionBook
        self._state: SessionState
        self._covered: dict[str, int] = {}
        self._unsynced: dict[str, int] = {}
        self._syncs = 0
        self._is_syncing = False
        self._rules: dict[type, Callable[[AnyEvent], None]] = {
            CallCreated: self._call_created,
            AttemptStarted: self._attempt_started,
            AttemptEnded: self._attempt_ended,
            OperationEnded: self._operation_ended,
            TimerFired: self._timer_fired,
            Decided: self._decided,
            SessionEnded: self._session_ended,
            SessionErased: self._erased,
            CancelRequested: self._cancelled,
            Deferred: self._deferred,
            Refused: self._waited,
            FeedbackGiven: self._recorded_again,
            Late: self._recorded_again,
        }

    # ---- telling -----------------------------------------------------------------------------

    def broken(self, law: str, what: str, *, session: str = "") -> None:
        if len(self.violations) < VIOLATIONS_MAX:
            book = self.books.get(session)
            number = book.number if book else ""
            self.violations.append(
                Violation(law=law, what=f"{what} [{session}]", session=number, at_s=self.now_s())
            )

    def note(self, text: str) -> None:
        """A thing that happened: the digest of a run is over all of them."""
        self.digest = zlib.crc32(text.encode(), self.digest)

    # ---- events ------------------------------------------------------------------------------

    def seen(self, state: SessionState, event: AnyEvent) -> None:
        """Right after an event was applied."""
        session_id = state.opened.session_id
        kind = type(event)
        book = self.books.get(session_id)
        if book is None:
            number = state.opened.labels.get(NUMBER, "")
            book = self.books[session_id] = SessionBook(number, budget=state.opened.retry_budget)
        if kind is Opened:
            self.open_sessions += 1
            if state.opened.rollouts:
                book.faults.add("rollout")
            if book.sequence:
                self.broken("one opening", "a session opened twice", session=session_id)
        version = state.version
        self._numbers(book, state, session_id=session_id)
        book.state = state
        if book.is_over and kind not in AFTER_END:
            self.broken("nothing after the end", f"{kind.__name__} came", session=session_id)
        book.sequence, book.version, book.at_ms = state.sequence, version, state.now_ms
        rule = self._rules.get(kind)
        if rule is not None:
            self._book, self._state = book, state
            rule(event)
        call_id = call_of(event)
        if call_id:
            self._outcome(book, state, call_id=call_id)
        if not self.is_reading_back:
            self.note(f"{kind.__name__} {event.at_ms} {state.sequence} {call_id}")

    def _numbers(self, book: SessionBook, state: SessionState, *, session_id: str) -> None:
        version, before = state.version, book.version
        if state.sequence != book.sequence + 1 or sum(version) != state.sequence:
            what = f"event {state.sequence} behind {book.sequence}, version {version}"
            self.broken("versions count every event", what, session=session_id)
        if version[0] < before[0] or version[1] < before[1] or version[2] < before[2]:
            self.broken("versions are monotone", f"{before} to {version}", session=session_id)
        if state.now_ms < book.at_ms:
            self.broken("time is monotone", "an event before its last one", session=session_id)
        if not 0 <= state.budget_left <= book.budget:
            what = f"{state.budget_left} of {book.budget} left"
            self.broken("the budget is lent, never made", what, session=session_id)

    def _call_created(self, event: AnyEvent) -> None:
        assert isinstance(event, CallCreated)
        book, state = self._book, self._state
        if event.call_id in book.calls:
            self.broken("a call id names one call", event.call_id, session=state.session_id)
        book.calls[event.call_id] = CallBook(body=bytes(event.body), digest=event.body_digest)
        if not self.is_reading_back:
            self.counts["calls"] += 1

    def _attempt_started(self, event: AnyEvent) -> None:
        assert isinstance(event, AttemptStarted)
        book, state = self._book, self._state
        call, session_id = book.calls[event.call_id], state.session_id
        created = state.calls[event.call_id].created
        if event.attempt <= call.number or len(call.out) != event.hedge:
            what = f"attempt {event.attempt} behind {call.number} (out: {sorted(call.out)})"
            self.broken("attempts are numbered in a row", what, session=session_id)
        harmless = (created.effect, created.idempotency) == (Effect.READ, Idempotency.NATURAL)
        if event.hedge and not harmless:
            self.broken("READ only is hedged", created.action, session=session_id)
        if event.attempt > 1 + RETRIES_PER_CALL:
            self.broken("attempts within budget", f"{event.attempt} attempts", session=session_id)
        if state.ending is not None or book.is_cancelled:
            self.broken("nothing is sent after a cancel", "an attempt began", session=session_id)
        self._waited(event)
        deadline_ms = state.deadline_at(event.at_ms)
        if event.timeout_ms <= 0 or (deadline_ms and event.at_ms >= deadline_ms):
            self.broken("nothing is sent after the deadline", "it began", session=session_id)
        if call.least_lease is not None and event.lease > call.least_lease:
            self.broken("a later attempt never carries more", "its lease", session=session_id)
        if created.idempotency is Idempotency.NONE and call.doubtful:
            what = f"{created.action}: an earlier attempt may have done it"
            self.broken("NONE never twice", what, session=session_id)
        first_ms, ttl_ms = call.first_sent_ms, created.idempotency_ttl_ms
        keyed = created.idempotency is Idempotency.BY_KEY and first_ms is not None and ttl_ms
        if keyed and event.at_ms - (first_ms or 0) >= ttl_ms:
            self.broken("never after the key's time", created.action, session=session_id)
        self._stays(event, state)
        call.starts(event, state.sequence, syncs=self._syncs)
        if not self.is_reading_back:
            self.targets.started(event)

    def _stays(self, event: AttemptStarted, state: SessionState) -> None:
        """Its pins were fixed when it opened, by every rollout that ran then, too."""
        created, pins = state.calls[event.call_id].created, state.opened.pins.values()
        pin = f"{created.component}@{created.version}"
        others = [one for one in pins if one.startswith(f"{created.component}@")]
        is_pinned = pin in others or not others  # a client that runs its own steps pins nothing
        is_served = pin == f"{event.component}@{event.version}" or event.deviation is not None
        if created.version and not (is_pinned and is_served):
            what = f"{pin} of {others}, {event.version} is asked"
            self.broken("a session stays with its versions", what, session=state.session_id)

    def _attempt_ended(self, event: AnyEvent) -> None:
        assert isinstance(event, AttemptEnded)
        book, state = self._book, self._state
        call = book.calls[event.call_id]
        if event.attempt not in call.out:
            what = f"attempt {event.attempt} of {call.number} ended, out are {sorted(call.out)}"
            self.broken("one end per attempt", what, session=state.session_id)
        call.ends(event)
        if not self.is_reading_back:
            self.targets.ended(event)
        if event.answered and event.retries_spent:
            book.spent += min(event.retries_spent, call.least_lease or 0)
            self._budget(book, state.session_id)

    def _operation_ended(self, event: AnyEvent) -> None:
        assert isinstance(event, OperationEnded)
        self._operation_over(event.call_id)

    def _timer_fired(self, event: AnyEvent) -> None:
        """An operation whose time is over ends with its timer, without an event of its own."""
        assert isinstance(event, TimerFired)
        if event.timer is Timer.OPERATION and event.call_id in self._state.calls:
            self._operation_over(event.call_id)

    def _operation_over(self, call_id: str) -> None:
        last = self._state.calls[call_id].attempt
        assert last is not None, "an operation was accepted by an attempt"
        if last.started is not None and last.operation is not None and not self.is_reading_back:
            self.targets.operation_ended(last.started.instance, last.operation)

    def _decided(self, event: AnyEvent) -> None:
        assert isinstance(event, Decided)
        book, state = self._book, self._state
        if event.decision.chosen is Option.RETRY:
            book.retries += 1
            self._budget(book, state.session_id)

    def _budget(self, book: SessionBook, session_id: str) -> None:
        if book.retries + book.spent > book.budget:
            what = f"{book.retries} retries and {book.spent} below, of {book.budget}"
            self.broken("attempts within budget", what, session=session_id)

    def _session_ended(self, event: AnyEvent) -> None:
        assert isinstance(event, SessionEnded)
        book, state = self._book, self._state
        book.is_over = True
        book.status, book.end = event.status, state.sequence
        self.open_sessions -= 1
        book.records.add(state.sequence)
        session_id = state.session_id
        self._waited(event)
        self._late_end(state, event)
        if any(call.open for call in state.calls.values()):
            self.broken("a session ends with its calls", "a call is open", session=session_id)
        for call_id, call in book.calls.items():
            if call.out:
                what = f"attempt {call.number} of {call_id} has no end"
                self.broken("one end per attempt", what, session=session_id)
            if call.outcome is None:
                self._outcome(book, state, call_id=call_id)
        if book.told_status is not None and book.told_status is not event.status:
            self.broken("no acknowledged end is lost", event.status.value, session=session_id)
        if not self.is_reading_back:
            self.note(f"end {event.status.value} {event.commands_digest}")

    def _late_end(self, state: SessionState, event: SessionEnded) -> None:
        """Its deadline, the grace of its last calls, and what the world itself held up."""
        allowed_ms = state.deadline_at_ms + state.opened.cancel_grace_ms + self.slack_ms
        if state.deadline_at_ms and event.at_ms > allowed_ms:
            what = f"{event.at_ms - state.deadline_at_ms} ms behind its deadline"
            self.broken("a session ends in its time", what, session=state.session_id)

    def _cancelled(self, event: AnyEvent) -> None:
        book = self._book
        book.is_cancelled = not book.is_over

    def _deferred(self, event: AnyEvent) -> None:
        assert isinstance(event, Deferred)
        book = self._book
        book.waits.setdefault(event.call_id, self.now_s())

    def _waited(self, event: AnyEvent) -> None:
        """A call that was put off is started or refused, or its session is over."""
        book, state = self._book, self._state
        call_ids = [call_of(event)] if call_of(event) else list(book.waits)
        for call_id in call_ids:
            since_s = book.waits.pop(call_id, None)
            if since_s is not None and self.now_s() - since_s > WAIT_S_MAX:
                what = f"{self.now_s() - since_s:.1f} s"
                self.broken("nobody waits for ever", what, session=state.session_id)

    def _erased(self, event: AnyEvent) -> None:
        book = self._book
        book.is_erased = True

    def _recorded_again(self, event: AnyEvent) -> None:
        book, state = self._book, self._state
        if book.is_over:
            book.records.add(state.sequence)

    def _outcome(self, book: SessionBook, state: SessionState, *, call_id: str) -> None:
        call, kept = state.calls.get(call_id), book.calls.get(call_id)
        if call is None or kept is None or call.phase is not Phase.SETTLED:
            return
        if kept.outcome is None:
            kept.outcome = (call.status, bytes(call.output))
        elif kept.outcome[0] is not call.status or kept.outcome[1] != bytes(call.output):
            what = f"{kept.outcome[0].value} became {call.status.value}"
            self.broken("one outcome per call", what, session=state.session_id)

    # ---- sends -------------------------------------------------------------------------------

    def sent(self, outgoing: Outgoing, *, life: Process, idempotency: Idempotency) -> None:
        """An attempt leaves the gateway now."""
        context = outgoing.context
        session_id, attempt = context.session_id, context.attempt
        self.counts["attempts"] += 1
        book = self.books.get(session_id)
        if book is None:
            self._twin_sent(outgoing, life=life)
            return
        call, state = book.calls[context.call_id], book.state
        if not life.is_alive or state is None:
            self.broken("the dead send nothing", context.call_id, session=session_id)
            return
        if attempt not in call.out:
            what = f"attempt {attempt}, journaled {call.number}"
            self.broken("nothing is sent unjournaled", what, session=session_id)
        if attempt <= max(call.sent, self._careful.get(context.call_id, 0)):
            self.broken("an attempt is sent once", f"attempt {attempt}", session=session_id)
        call.sent = attempt
        if idempotency is not Idempotency.NATURAL:  # what a power cut must not make forgotten
            self._careful[context.call_id] = attempt
        reached = book.written if idempotency is Idempotency.NATURAL else book.durable
        if reached < call.started_at:
            what = f"{idempotency.value}: event {call.started_at}, on disk {reached}"
            self.broken("append first, act second", what, session=session_id)
        if state.ending is not None or book.is_over or book.is_cancelled:
            self.broken("nothing is sent after a cancel", context.call_id, session=session_id)
        waited = self._syncs - call.syncs_at_start
        harmless = state.calls[context.call_id].created.idempotency is Idempotency.NATURAL
        if waited > (0 if harmless else SYNCS_MAX):
            what = f"it waited while {waited} syncs came to their end"
            self.broken("what may leave leaves", what, session=session_id)
        self._in_time(state, context.timeout_ms, session_id=session_id)
        if bytes(outgoing.body) != call.body or context.body_digest != call.digest:
            self.broken("the same bytes under the same key", context.call_id, session=session_id)
        self.note(f"sent {context.call_id} {attempt}")

    def _twin_sent(self, outgoing: Outgoing, *, life: Process) -> None:
        """A twin is nobody's session: no observer is told of it. What its elders call a WRITE it
        never sends, whatever a candidate's card says."""
        context = outgoing.context
        if not life.is_alive:
            self.broken("the dead send nothing", context.call_id)
        if effect_of(outgoing) is not Effect.READ:
            self.broken("twins only read", f"{context.step}: {bytes(outgoing.body)[:80]!r}")
        self.counts["twins"] += 1
        self.note(f"twin sent {context.call_id} {context.attempt}")

    def answered(self, outgoing: Outgoing, instance: str, *, is_failure: bool) -> None:
        """The gateway hears of an attempt."""
        if is_failure and outgoing.context.session_id not in self.books:
            self.targets.failed_beside(instance)

    def _in_time(self, state: SessionState, timeout_ms: int, *, session_id: str) -> None:
        now_ms = max(self.wall_ms(), state.now_ms)
        deadline_ms = state.deadline_at(now_ms)
        if timeout_ms <= 0 or (deadline_ms and timeout_ms > deadline_ms - now_ms):
            what = f"{timeout_ms} ms given, {deadline_ms - now_ms} left"
            self.broken("nothing is sent after the deadline", what, session=session_id)

    def flying(self, place: str, count: int, *, limits: Limits) -> None:
        """So many attempts are at one instance now."""
        limit = limits.max_concurrency
        if limit and count > limit:
            self.broken("permits bound what is in flight", f"{count} at {place}, limit {limit}")

    def arrives(self, call_id: str, attempt: int) -> None:
        self.targets.arrives((call_id, attempt))

    def struck(self, session_id: str, fault: str) -> None:
        book = self.books.get(session_id)
        if book is not None:
            book.faults.add(fault)

    def struck_all(self, fault: str) -> None:
        """Everything that is open meets it."""
        for book in self.books.values():
            if not book.is_over:
                book.faults.add(fault)

    # ---- the disk ----------------------------------------------------------------------------

    def written(self, operations: Sequence[Operation]) -> None:
        """A batch was written: what was seen of its sessions is in it."""
        for table, key, _ in operations:
            if table is Table.JOURNAL:
                session_id = key[:SESSION_BYTES].decode()
                book = self.books.get(session_id)
                if book is not None:  # a twin is in no book
                    book.written = self._unsynced[session_id] = book.sequence

    def sync_begins(self) -> None:
        self._covered, self._unsynced = self._unsynced, {}
        self._is_syncing = True

    def synced(self) -> None:
        for session_id, sequence in self._covered.items():
            book = self.books[session_id]
            if sequence > book.durable:
                book.durable = sequence
        self._covered = {}
        self._syncs += self._is_syncing  # other work of that thread, such as erasing, is none
        self._is_syncing = False

    def lines_kept(self, lines: Sequence[bytes]) -> None:
        """Trajectories reached a file: once each, and only what a power cut leaves."""
        for line in lines:
            head = head_of(line)
            assert head is not None, "the outbox writes trajectories"
            book = self.books.get(head.session_id)
            if book is None:
                self.broken("every trajectory exactly once", "a twin's left", session="")
                continue
            self.lines[head] += 1
            if self.lines[head] > 1:
                what = f"sequence {head.sequence} twice"
                self.broken("every trajectory exactly once", what, session=head.session_id)
            if head.sequence > book.durable:
                what = f"{head.sequence} left, {book.durable} on disk"
                self.broken("only synced events leave", what, session=head.session_id)

    def life_ended(self, *, power_cut: bool) -> None:
        """The books are read again from what the disk has."""
        self._covered, self._unsynced, self.open_sessions = {}, {}, 0
        self._is_syncing = False
        self.targets.life_ended()
        for book in self.books.values():
            if power_cut:
                book.written = book.durable
            book.forget_life()

    # ---- what clients were told --------------------------------------------------------------

    def leaves(self, session_id: str, sequence: int) -> None:
        """An answer that promises so many events leaves the gateway."""
        book = self.books.get(session_id)
        durable = book.durable if book else 0
        if sequence > durable:
            what = f"told of event {sequence}, on disk {durable}"
            self.broken("a promise leaves after its sync", what, session=session_id)

    def end_leaves(self, session_id: str, status: SessionStatus) -> None:
        """An answer that tells of the end leaves the gateway."""
        book = self.books[session_id]
        if book.status is not status:
            what = f"told {status.value}, it is {book.status.value}"
            self.broken("a promise leaves after its sync", what, session=session_id)
        self.leaves(session_id, book.end)

    def told(self, session_id: str, sequence: int) -> None:
        """A client was told of so many events."""
        book = self.books[session_id]
        book.acknowledged = max(book.acknowledged, sequence)

    def told_end(self, session_id: str, status: SessionStatus) -> None:
        """A client was told how the session ended."""
        book = self.books[session_id]
        book.told_status = status
        book.acknowledged = max(book.acknowledged, book.end)

    def found(self, book: SessionBook) -> None:
        """A life found so much of it; a store that was opened has it on disk."""
        book.written = book.durable = book.sequence
