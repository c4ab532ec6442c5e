"""Sessions as clients use them (`/v1/sessions`): the one service behind HTTP and gRPC.

Every promise leaves after its sync: an opening, an awaited end, a cancel, feedback.
A session of another tenant is NOT_FOUND. All failures are AcpFailure.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from acp_spec.bindings.errors import error, refused_by_state
from acp_spec.codec.json import encode
from acp_spec.model.enums import Boundary, Mode, SessionStatus
from acp_spec.model.errors import AcpError, AcpFailure, Reason
from acp_spec.model.gateway_calls import GiveFeedbackRequest
from acp_spec.model.ids import is_session_id
from acp_spec.model.session import (
    CompleteOperation,
    Feedback,
    FeedbackAccepted,
    FinishRequest,
    ManualStep,
    Opened,
    OpenSession,
    SessionPage,
    SessionView,
    StepResult,
)
from gateway.engine import views
from gateway.engine.contract_checks import output_problem
from gateway.engine.events import (
    AttemptEnded,
    CancelRequested,
    FeedbackGiven,
    FinishRequested,
    Late,
)
from gateway.engine.manual import manual_call
from gateway.engine.states import (
    AttemptState,
    CallState,
    Phase,
    SessionState,
    parse_version,
    version_met,
)
from gateway.governance.meanings import refused_values
from gateway.runtime.context import ContextMaker
from gateway.runtime.driver import Driver
from gateway.runtime.erasing import Erasing
from gateway.runtime.judging import Judged, JudgedMany, complete, recorder_of, takes
from gateway.runtime.live import Erased, Live, Notify
from gateway.runtime.opening import Openings, check_key
from gateway.runtime.operations import ended_from_callback, result_digest
from gateway.runtime.output_check import checked_operation
from gateway.runtime.pages import Pages
from gateway.runtime.principal import NO_TRACE, Principal, Scope, Trace
from gateway.runtime.scored import Scored
from gateway.runtime.streams import Streams
from gateway.runtime.unknown_values import Seen
from gateway.runtime.wakeup import Wakeup

JUDGED_AT_ONCE: Final = 16
"""Of many judgements, some 3 ms: then others have their turn."""


def _not_manual(message: str) -> AcpError:
    """It is the session's mode that forbids it (GWY-053)."""
    return refused_by_state("NOT_MANUAL", message)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceParts:
    """What the service puts together."""

    driver: Driver
    openings: Openings
    pages: Pages
    streams: Streams
    erasing: Erasing
    contexts: ContextMaker
    scored: Scored = field(default_factory=Scored)


class SessionService:
    """The sessions of one gateway."""

    def __init__(self, parts: ServiceParts) -> None:
        self._driver = parts.driver
        self._openings = parts.openings
        self._pages = parts.pages
        self._streams = parts.streams
        self._erasing = parts.erasing
        self._contexts = parts.contexts
        self._scored = parts.scored

    def close(self) -> None:
        """Open no more sessions: the gateway stops."""
        self._openings.closed = True

    # ---- open and look -----------------------------------------------------------------------

    async def open(
        self,
        request: OpenSession,
        principal: Principal,
        *,
        wait_s: float = 0,
        trace: Trace = NO_TRACE,
    ) -> tuple[Opened | SessionView, bool]:
        """Open once durable; the view if it ended within `wait_s`. False: the key was used."""
        session_id, created = self._openings.open(request, principal, trace=trace)
        if wait_s > 0:
            live = self._find(session_id, principal)
            await self._until(live.on_end, lambda: live.state.terminal, wait_s=wait_s)
            if live.state.terminal:
                return views.session_view(live.state), created
        state = self._find(session_id, principal).state  # what it is now is on disk after the sync
        await self._driver.committer.synced()
        return views.opened_view(state), created

    async def view(
        self, session_id: str, principal: Principal, *, min_version: str = ""
    ) -> SessionView:
        tombstone = self._erasing.tombstone(session_id, principal)
        if tombstone is not None:
            return tombstone
        state = await self._tellable(self._find(session_id, principal))
        if min_version:
            _check_version(state, min_version)
        return views.session_view(state)

    async def page(
        self,
        principal: Principal,
        *,
        status: SessionStatus | None = None,
        workflow: str = "",
        after: str = "",
        limit: int = 50,
    ) -> SessionPage:
        page = self._pages.page(
            principal.tenant, status=status, workflow=workflow, after=after, limit=limit
        )
        await self._driver.committer.synced()  # it may tell of sessions that have just ended
        return page

    # ---- manual sessions ---------------------------------------------------------------------

    async def manual_step(
        self, session_id: str, step: ManualStep, *, principal: Principal, wait_s: float
    ) -> StepResult:
        live = self._find(session_id, principal)
        state = live.state
        if state.opened.mode is not Mode.MANUAL:
            message = "steps are run by the workflow: open the session with mode MANUAL"
            raise AcpFailure(_not_manual(message))
        check_key("step_key", step.step_key)
        key = step.step_key or _free_key(state)
        if key not in state.manual:
            _refuse_ended(state)
            named = msgspec.structs.replace(step, step_key=key)
            made = manual_call(state, named, world=self._driver.world(live))
            if isinstance(made, AcpError):
                self._keep_refused(state, made, key=key)
                raise AcpFailure(made)
            self._driver.feed(live, made)
        else:
            _same_step(state, step, key=key)
        call_id = live.state.manual[key]

        def settled() -> bool:
            return not live.state.calls[call_id].open

        await self._until(live.on_change, settled, wait_s=wait_s)
        state = live.state  # a change was synced, but a later one may have settled the step
        await self._driver.committer.synced()
        return views.step_result(state, state.calls[call_id])

    def _keep_refused(self, state: SessionState, refusal: AcpError, *, key: str) -> None:
        """Values that kept a step from being made: no event tells of them."""
        opened = state.opened
        where = Seen(
            tenant=opened.tenant,
            workflow=opened.workflow,
            field=f"arguments of {key}",
            session_id=opened.session_id,
        )
        self._openings.on_refused_values(where, refused_values(refusal))

    async def step_result(
        self, session_id: str, step_key: str, *, principal: Principal
    ) -> StepResult:
        state = self._find(session_id, principal).state
        call_id = state.manual.get(step_key)
        if call_id is None:
            raise AcpFailure(error(Reason.NOT_FOUND, f"the session has no step {step_key!r}"))
        await self._driver.committer.synced()
        return views.step_result(state, state.calls[call_id])

    async def finish(
        self, session_id: str, request: FinishRequest, *, principal: Principal
    ) -> SessionView:
        live = self._find(session_id, principal)
        state = live.state
        if state.opened.mode is not Mode.MANUAL:
            message = "only a MANUAL session is finished by its client; cancel this one"
            raise AcpFailure(_not_manual(message))
        if state.terminal and bytes(state.output) == bytes(request.output):
            return views.session_view(await self._tellable(live))
        _refuse_ended(state)
        if state.open_calls():
            message = "a step is still running: wait for it, or cancel the session"
            raise _too_early(message)
        _check_output(state, bytes(request.output))
        at_ms = self._driver.now_ms(live)
        self._driver.feed(live, FinishRequested(at_ms=at_ms, output=request.output))
        return views.session_view(await self._on_disk(live))

    # ---- judging, stopping, erasing ----------------------------------------------------------

    async def feedback(
        self, session_id: str, feedback: Feedback, *, principal: Principal
    ) -> FeedbackAccepted:
        live, feedback_id = self._judge(session_id, feedback, by=principal)
        version = (await self._on_disk(live)).version_text
        return FeedbackAccepted(feedback_id=feedback_id, state_version=version)

    async def feedback_in_bulk(
        self, asked: Sequence[GiveFeedbackRequest], *, principal: Principal
    ) -> JudgedMany:
        """Each judgement is taken or refused for itself; what was taken is on disk on return."""
        results: list[Judged] = []
        for one in asked:
            if results and len(results) % JUDGED_AT_ONCE == 0:
                await asyncio.sleep(0)
            try:
                live, feedback_id = self._judge(one.session_id, one.feedback, by=principal)
            except AcpFailure as refused:
                results.append(Judged(session_id=one.session_id, error=refused.error))
                continue
            version = live.state.version_text
            results.append(
                Judged(session_id=one.session_id, feedback_id=feedback_id, state_version=version)
            )
        await self._driver.committer.synced()
        taken = sum(one.error is None for one in results)
        return JudgedMany(taken=taken, refused=len(results) - taken, results=tuple(results))

    def _judge(self, session_id: str, feedback: Feedback, *, by: Principal) -> tuple[Live, str]:
        """The session with this judgement, and its id; the same one again changes nothing."""
        live = self._find(session_id, by)
        at_ms = self._driver.now_ms(live)
        full = complete(live.state, feedback, by=by, at_ms=at_ms)
        if takes(live.state.feedback_log, full.feedback_id):
            given = FeedbackGiven(
                at_ms=at_ms,
                feedback=full,
                feedback_id=full.feedback_id,
                recorded_by=recorder_of(full, by=by),
            )
            self._driver.feed(live, given)
        return live, full.feedback_id

    async def cancel(self, session_id: str, principal: Principal) -> SessionView:
        live = self._find(session_id, principal)
        if not live.state.terminal:
            at_ms = self._driver.now_ms(live)
            self._driver.feed(live, CancelRequested(at_ms=at_ms, by=principal.subject))
        return views.session_view(await self._on_disk(live))

    async def erase(self, session_id: str, principal: Principal) -> None:
        if self._erasing.tombstone(session_id, principal) is not None:
            return
        live = self._find(session_id, principal)
        if not live.state.terminal:
            raise _too_early("the session is still running: cancel it first, then delete it")
        await self._erasing.erase(live, principal)

    # ---- the record --------------------------------------------------------------------------

    async def trajectory(self, session_id: str, principal: Principal) -> bytes:
        return encode(self._scored.record(await self._tellable(self._find(session_id, principal))))

    async def lineage(self, lineage_id: str, principal: Principal) -> bytes:
        session_id, _, digest = lineage_id.partition(".")
        live = self._find(session_id, principal) if digest else None
        if live is None or live.state.opened.lineage_id != lineage_id:
            raise AcpFailure(error(Reason.NOT_FOUND, f"there is no lineage {lineage_id!r}"))
        return msgspec.json.encode(views.lineage_page(await self._tellable(live)))

    def events(
        self, session_id: str, principal: Principal, *, after: int
    ) -> AsyncIterator[tuple[int, str, bytes]]:
        gone = self._erasing.epitaph(session_id, principal)
        if gone:
            raise AcpFailure(error(Reason.EVENTS_EXPIRED, f"{gone}, events too"))
        live = self._find(session_id, principal)
        return self._streams.events(live.state.session_id, after)

    # ---- operations --------------------------------------------------------------------------

    async def complete_operation(
        self, call_id: str, token: str, *, result: CompleteOperation
    ) -> None:
        live = self._live_of(call_id, token)
        call = live.state.calls.get(call_id) if live else None
        stands = call.attempt if call else None
        if live is None or call is None or stands is None:
            message = "the call-back token does not belong to this call"
            raise AcpFailure(error(Reason.UNAUTHENTICATED, message))
        if (result.error is None) is (not bytes(result.output)):
            message = "give exactly one of `output` and `error`"
            raise AcpFailure(error(Reason.INVALID_REQUEST, message))
        known = stands.operation
        if call.phase in (Phase.OPERATION, Phase.SENT):
            self._complete(live, call, result=result)
        elif _nobody_answered(stands):
            self._too_late(live, call, result=result)
        else:
            _check_repeat(known.result_digest if known else "", result)
        await self._driver.committer.synced()

    def _live_of(self, call_id: str, token: str) -> Live | None:
        """The session that this call-back token opens; none once it was deleted."""
        session_id = self._contexts.session_of(call_id, token)
        try:
            return self._driver.sessions.find(session_id) if session_id else None
        except Erased:
            return None

    def _complete(self, live: Live, call: CallState, *, result: CompleteOperation) -> None:
        at_ms = self._driver.now_ms(live)
        card = self._driver.card_of(call)
        ended = ended_from_callback(call, result, at_ms=at_ms)
        ended = self._driver.meaning.of_answer(live.state, ended)
        ended = checked_operation(ended, card, action=call.created.action)
        if call.phase is Phase.OPERATION:
            self._driver.feed(live, ended)
            return
        # The call-back overtook the answer: the call was accepted, since it is done (SPEC 9.5).
        accepted = AttemptEnded(
            at_ms=at_ms,
            call_id=call.created.call_id,
            attempt=call.number,
            operation_poll_after_ms=1,
        )
        self._driver.feed(live, accepted, ended)

    def _too_late(self, live: Live, call: CallState, *, result: CompleteOperation) -> None:
        """The call was given up before: what it did is known now, its outcome stays (SPEC 9.3)."""
        attempt = call.attempt
        assert attempt is not None, "a call-back token belongs to an attempt"
        if attempt.late is None:
            at_ms = self._driver.now_ms(live)
            ended = ended_from_callback(call, result, at_ms=at_ms)
            late = Late(
                at_ms=at_ms,
                call_id=call.created.call_id,
                attempt=attempt.number,
                response=ended.response,
                error=ended.error,
                side_effect=ended.side_effect,
            )
            self._driver.feed(live, late)

    # ---- inside ------------------------------------------------------------------------------

    def _find(self, session_id: str, principal: Principal) -> Live:
        live = self._driver.find(session_id) if is_session_id(session_id) else None
        if live is None or not _may_see(live.state, principal):
            message = self._erasing.epitaph(session_id, principal)
            message = message or f"there is no session {session_id!r}"
            raise AcpFailure(error(Reason.NOT_FOUND, message))
        return live

    async def _on_disk(self, live: Live) -> SessionState:
        """The state of this moment, once a power cut cannot take it back."""
        state = live.state
        await self._driver.committer.synced()
        return state

    async def _tellable(self, live: Live) -> SessionState:
        """The state of this moment; that a session has ended is told only when it is on disk."""
        if not live.state.terminal or live.end_on_disk:
            return live.state
        state = await self._on_disk(live)
        live.end_on_disk = True
        return state

    async def _until(
        self, signals: list[Notify], done: Callable[[], bool], *, wait_s: float
    ) -> None:
        """Wait until `done()` holds, at most `wait_s` seconds; what holds then is on disk."""
        committer = self._driver.committer
        if not done() and wait_s > 0:
            wakeup = Wakeup(wait_s)
            signals.append(wakeup.wake)
            try:
                with committer.waking(wakeup.wake):
                    while not (done() or wakeup.is_over or committer.failed):
                        await wakeup.wait()
            finally:
                signals.remove(wakeup.wake)
                wakeup.close()
            committer.refuse_if_failed()
            if not wakeup.is_over:
                return
        if done():
            await committer.synced()


def _may_see(state: SessionState, principal: Principal) -> bool:
    """Its tenant may; a twin is no caller's session, so only operators find it by its id."""
    if state.opened.tenant != principal.tenant:
        return False
    return not state.opened.twin_of or principal.may(Scope.OPERATE)


def _too_early(message: str) -> AcpFailure:
    """The caller asks for what must wait until a call has ended."""
    return AcpFailure(error(Reason.CALL_IN_PROGRESS, message, boundary=Boundary.CLIENT))


def _refuse_ended(state: SessionState) -> None:
    if state.terminal or state.ending is not None:
        message = f"the session is {state.status.value}; it takes no more steps"
        raise AcpFailure(error(Reason.SESSION_ENDED, message))


def _free_key(state: SessionState) -> str:
    """A key for a step that brings none: a client may have taken such a name itself."""
    number = len(state.manual) + 1
    while f"step-{number}" in state.manual:
        number += 1
    return f"step-{number}"


def _same_step(state: SessionState, step: ManualStep, *, key: str) -> None:
    """A step_key used again must mean the same step."""
    body = state.calls[state.manual[key]].created.body
    if bytes(body) != (bytes(step.payload) or b"{}"):
        message = f"step_key {key!r} was used with another payload"
        raise AcpFailure(error(Reason.ALREADY_EXISTS, message))


def _check_version(state: SessionState, min_version: str) -> None:
    least = parse_version(min_version)
    if least is None:
        message = f"min_version: {min_version!r} is not plan.execution.feedback, such as 3.12.0"
        raise AcpFailure(error(Reason.INVALID_REQUEST, message))
    if not version_met(state.version, least):
        message = f"the session is at {state.version_text}, older than {min_version}"
        raise AcpFailure(error(Reason.STALE_STATE, message))


def _nobody_answered(attempt: AttemptState) -> bool:
    """It ended by its time, a reset or a restart, or its operation did: no peer told the end."""
    if attempt.operation is not None:
        return not attempt.operation.result_digest
    return attempt.ended is not None and not attempt.ended.answered


def _check_repeat(known_digest: str, result: CompleteOperation) -> None:
    """The first terminal result wins: the same body again is fine, another one is not."""
    if known_digest != result_digest(result):
        message = "the operation has ended with another result"
        raise AcpFailure(error(Reason.ALREADY_EXISTS, message))


def _check_output(state: SessionState, output: bytes) -> None:
    """CONTRACT_VIOLATION for an output that may not be the session's; it stays open."""
    problem = output_problem(state.workflow.contract, output) if state.workflow else None
    if problem is not None:
        raise AcpFailure(msgspec.structs.replace(problem, boundary=Boundary.CLIENT))
