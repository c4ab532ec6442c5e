"""A session's state as the trajectory that training reads (SPEC section 7): every attempt, one row.

What is known to be missing is said in `gaps`. Rewards are added by whoever scores (`rewards`).
"""

from typing import Final

import msgspec

from acp_spec.codec.json import encode, reread
from acp_spec.codec.json_text import array_of
from acp_spec.model.calls import Claim, ExecuteResponse, ObserveResponse, Reward
from acp_spec.model.enums import StepRole, StepStatus
from acp_spec.model.errors import AcpError, AcpFailure
from acp_spec.model.payload import ABSENT, payload
from acp_spec.model.recovery import Decision, Option
from acp_spec.model.times import rfc3339
from acp_spec.model.trajectory import (
    SCHEMA_VERSION,
    Attempt,
    DecisionOption,
    DecisionRow,
    FeedbackRow,
    Gap,
    LlmCallRow,
    ObservationRow,
    PlanVersion,
    ReflectionRow,
    Trajectory,
)
from gateway.engine.events import AttemptStarted, CallCreated
from gateway.engine.states import AttemptState, CallState, SessionState
from gateway.engine.views import lineage


def trajectory(state: SessionState) -> Trajectory:
    """The whole record, as far as it is known now."""
    opened = state.opened
    return Trajectory(
        schema_version=SCHEMA_VERSION,
        session_id=opened.session_id,
        lineage_id=opened.lineage_id,
        lineage=lineage(state),
        tenant=opened.tenant,
        workflow=opened.workflow,
        labels=opened.labels,
        status=state.status,
        fell_back=state.fell_back,
        fallback=opened.fallback,
        input=opened.input,
        input_mapped=opened.mapped,
        plan=_plans(state),
        calls=tuple(_calls(state)),
        decisions=_decisions(state),
        llm_calls=_llm_calls(state),
        observations=_observations(state),
        reflections=_reflections(state),
        feedback=_feedback(state),
        reflector_rewards=_rewards(state),
        output=state.output,
        error=state.error,
        claims=_claims(state),
        gaps=_gaps(state),
        opened_at=rfc3339(opened.at_ms),
        ended_at=rfc3339(state.ended_at_ms) if state.ended_at_ms is not None else "",
        sequence=state.sequence,
        state_version=state.version_text,
        rollouts=opened.rollouts,
        twin_of=opened.twin_of,
        traceparent=opened.traceparent,
    )


def _calls(state: SessionState) -> list[Attempt]:
    rows: list[Attempt] = []
    for call in state.calls.values():
        rows += attempts(call)
    return rows


def _decisions(state: SessionState) -> tuple[DecisionRow, ...]:
    return tuple(
        _decision(decision, _ended_as(state.calls[decision.call_id]))
        for decision in state.decisions
    )


def _decision(decision: Decision, ended_as: str) -> DecisionRow:
    """The decision with what became of the call that it was about."""
    return DecisionRow(
        decision_id=decision.decision_id,
        index=decision.index,
        call_id=decision.call_id,
        after_attempt=decision.after_attempt,
        caused_attempt=decision.caused_attempt,
        trigger=decision.trigger,
        at=rfc3339(decision.at_ms),
        features=decision.features,
        feature_schema=decision.feature_schema,
        signals_age_ms=decision.signals_age_ms,
        options=tuple(
            DecisionOption(
                option=one.option,
                params={"wait_ms": one.wait_ms} if one.option is Option.RETRY else {},
                probability=one.probability,
                masked_by=one.masked_by,
            )
            for one in decision.options
        ),
        chosen=decision.chosen,
        draw=decision.draw,
        policy=decision.policy,
        guardrails_digest=decision.guardrails_digest,
        override=decision.override,
        ended_as=ended_as,
    )


def _ended_as(call: CallState) -> str:
    return "" if call.open else call.status.value


def _plans(state: SessionState) -> tuple[PlanVersion, ...]:
    return tuple(
        PlanVersion(
            generation=taken.generation,
            step=taken.step,
            call_id=taken.call_id,
            plan=taken.plan,
            rationale=taken.rationale,
            confidence=taken.confidence,
        )
        for taken in state.plans
    )


def attempts(call: CallState) -> list[Attempt]:
    """The rows of one call: one per attempt, and one for a result taken over or never begun."""
    if not call.attempts:
        return [_unsent_row(call)]
    return [_attempt_row(call, attempt) for attempt in call.attempts]


def _unsent_row(call: CallState) -> Attempt:
    created = call.created
    return Attempt(
        call_id=created.call_id,
        attempt=1,
        loop=created.loop,
        step=created.step,
        sub_goal=created.sub_goal,
        role=created.role.value,
        component=created.component,
        component_version=created.version,
        action=created.action,
        effect=created.effect,
        arguments=_arguments(created),
        output=call.output,
        error=call.error,
        side_effect=call.side_effect,
        reused=created.reused_from != "",
        reused_from=created.reused_from,
        retry_of=created.retry_of,
        queued_at=rfc3339(created.at_ms),
        arguments_mapped=created.mapped,
        secret_paths=created.secret_paths,
    )


def _attempt_row(call: CallState, attempt: AttemptState) -> Attempt:
    """Every column at once. What did not happen to this attempt is as the column's default is."""
    created, started, ended = call.created, attempt.started, attempt.ended
    final = attempt.operation or ended
    last = final or attempt.refused
    sent = started or _NEVER_SENT
    served = ended.served_version if ended else ""
    return Attempt(
        call_id=created.call_id,
        attempt=attempt.number,
        loop=created.loop,
        step=created.step,
        sub_goal=created.sub_goal,
        role=created.role.value,
        component=started.component if started else created.component,
        component_version=served or (started.version if started else created.version),
        instance=sent.instance,
        action=created.action,
        effect=created.effect,
        arguments=_arguments(created),
        output=_output(call, final.response) if final and final.error is None else ABSENT,
        error=(last.error or _refusal(call, attempt)) if last else None,
        side_effect=attempt.side_effect,
        retry_of=created.retry_of,
        queued_at=rfc3339(attempt.queued_at_ms),
        sent_at=rfc3339(started.at_ms) if started else "",
        ended_at=rfc3339(last.at_ms) if last else "",
        wait_ms=sent.wait_ms,
        service_ms=ended.service_ms if ended else None,
        timeout_ms=sent.timeout_ms,
        breaker=sent.breaker,
        signals=sent.signals,
        parameter_version=sent.parameter_version,
        hedge=sent.hedge,
        budget_left=attempt.budget_left,
        retries_spent=ended.retries_spent if ended else 0,
        late=attempt.late is not None,
        arguments_mapped=created.mapped,
        secret_paths=created.secret_paths,
        output_mapped=final.mapped if final else (),
    )


_NEVER_SENT: Final = AttemptStarted(
    at_ms=0, call_id="", attempt=0, component="", version="", instance="", timeout_ms=0
)
"""What the columns of a start hold where there was none."""


def _arguments(created: CallCreated) -> msgspec.Raw:
    return created.arguments if created.role is StepRole.EXECUTE else created.body


def _refusal(call: CallState, attempt: AttemptState) -> AcpError | None:
    """Why an answer that came was not taken: it could not be read, or its plan cannot run."""
    return call.error if call.status is StepStatus.FAILED and attempt is call.attempt else None


def _output(call: CallState, response: msgspec.Raw) -> msgspec.Raw:
    if call.created.role is not StepRole.EXECUTE:
        return response
    if call.status is StepStatus.SUCCEEDED:
        return call.output
    try:
        return reread(ExecuteResponse, bytes(response)).output
    except AcpFailure:  # what could not be read made the call fail; the row's error says so
        return ABSENT


def _llm_calls(state: SessionState) -> tuple[LlmCallRow, ...]:
    rows = []
    for call in state.calls.values():
        for attempt in call.attempts:
            for item in attempt.ended.llm_calls if attempt.ended else ():
                call_id, number = call.created.call_id, attempt.number
                rows.append(LlmCallRow(call_id=call_id, attempt=number, llm_call=item))
    return tuple(rows)


def _observations(state: SessionState) -> tuple[ObservationRow, ...]:
    rows = []
    for call in state.calls.values():
        if call.created.role is StepRole.OBSERVE and call.status is StepStatus.SUCCEEDED:
            answer = reread(ObserveResponse, bytes(call.response))
            memory = array_of([encode(item) for item in answer.memory])
            rows.append(
                ObservationRow(
                    step=call.created.step,
                    call_id=call.created.call_id,
                    stored=answer.stored,
                    memory=payload(memory),
                )
            )
    return tuple(rows)


def _reflections(state: SessionState) -> tuple[ReflectionRow, ...]:
    return tuple(
        ReflectionRow(
            step=reflection.step,
            call_id=reflection.call_id,
            verdict=reflection.response.verdict.value,
            critique=reflection.response.critique,
            loop=reflection.loop,
            refused_retries=reflection.refused_retries,
        )
        for reflection in state.reflections
    )


def _feedback(state: SessionState) -> tuple[FeedbackRow, ...]:
    """What stands: the last judgement by its time per target, kind and author (SPEC section 6).

    A superseded one is in the journal only; here it would become a reward that nobody means.
    """
    return tuple(
        FeedbackRow(
            feedback=entry.given.feedback,
            received_at=rfc3339(entry.given.at_ms),
            state_version=entry.version,
            recorded_by=entry.given.recorded_by,
        )
        for entry in state.feedback.values()
    )


def _rewards(state: SessionState) -> tuple[Reward, ...]:
    return tuple(reward for r in state.reflections for reward in r.response.rewards)


def _claims(state: SessionState) -> tuple[Claim, ...]:
    return state.reflections[-1].response.claims if state.reflections else ()


def _gaps(state: SessionState) -> tuple[Gap, ...]:
    gaps = []
    for call in state.calls.values():
        for attempt in call.attempts:
            ended = attempt.ended
            if ended is not None and not ended.answered and not ended.not_sent:
                what = f"answer of call {call.created.call_id} attempt {attempt.number}"
                why = ended.error.message if ended.error else "no answer came"
                gaps.append(Gap(what=what, why=why))
    if not state.terminal:
        gaps.append(Gap(what="end", why="the session is still running"))
    return tuple(gaps)
