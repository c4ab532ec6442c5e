"""A component as it really is: what it did stands in its ledger, whatever it managed to say of it.

It is honest: an error it makes before its work says that nothing was done, one behind it does not.
`BY_KEY` outcomes are kept for their time, shared by all replicas; a repeat is answered from there.
"""

from dataclasses import dataclass, field

import msgspec

from acp_spec.bindings.errors import ERRORS, error
from acp_spec.model.calls import OperationState
from acp_spec.model.card import Action, Card
from acp_spec.model.enums import Effect, Idempotency, OperationStatus, SideEffect, StepRole
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.payload import payload
from gateway.runtime.connection import Answer, Outgoing
from gateway.simulation import answers
from gateway.simulation.cards import DECLARED
from gateway.simulation.dice import Dice

OF_ROLE = {
    StepRole.PLAN: (Effect.READ, Idempotency.NATURAL),
    StepRole.OBSERVE: (Effect.WRITE, Idempotency.BY_KEY),
    StepRole.REFLECT: (Effect.READ, Idempotency.NATURAL),
}
OWN_ERRORS = tuple(
    reason for reason in Reason if reason not in (Reason.BREAKER_OPEN, Reason.RETRY_UNSAFE)
)
"""What a component may say by itself: every reason but those that only a gateway gives."""

KEYS_DAY_MS = 86_400_000.0
DONE = payload(b'{"done":1}')


class _Named(msgspec.Struct):
    action: str = ""


_named = msgspec.json.Decoder(_Named)


@dataclass(slots=True)
class Kept:
    """A remembered outcome, or a call that still runs (`answer` None)."""

    digest: str
    answer: Answer | None
    until_ms: float


@dataclass(slots=True)
class RunningOperation:
    """A long operation. `over_at_ms` beyond every clock: it stays silent."""

    call_id: str
    token: str
    over_at_ms: float
    fault: str
    is_stopped: bool = False


@dataclass(slots=True)
class Component:
    """One name, all its replicas. `done`: attempts that really did something, by call."""

    name: str
    done: dict[str, list[int]] = field(default_factory=dict)
    kept: dict[str, Kept] = field(default_factory=dict)
    operations: dict[str, RunningOperation] = field(default_factory=dict)

    def refuses(
        self, outgoing: Outgoing, idempotency: Idempotency, *, now_ms: float
    ) -> Answer | None:
        """What a repeat gets at once: the outcome that was kept, or that the first still runs."""
        if idempotency is not Idempotency.BY_KEY:
            return None
        context = outgoing.context
        kept = self.kept.get(context.call_id)
        if kept is None or kept.until_ms <= now_ms:
            return None
        if kept.digest != context.body_digest:
            return failed(error(Reason.IDEMPOTENCY_CONFLICT, "another body"), outgoing.effect)
        if kept.answer is None:
            return failed(error(Reason.CALL_IN_PROGRESS, "it still runs"), outgoing.effect)
        return kept.answer

    def begins(self, outgoing: Outgoing, idempotency: Idempotency) -> None:
        if idempotency is Idempotency.BY_KEY:
            context = outgoing.context
            self.kept[context.call_id] = Kept(context.body_digest, None, KEYS_DAY_MS * 1e6)

    def forgets(self, outgoing: Outgoing) -> None:
        """It ended and did nothing: a repeat begins anew."""
        kept = self.kept.get(outgoing.context.call_id)
        if kept is not None and kept.answer is None:
            del self.kept[outgoing.context.call_id]

    def works(self, outgoing: Outgoing, action: Action | None, *, dice: Dice) -> Answer:
        """Do it; the answer as it should be."""
        context = outgoing.context
        idempotency = action.idempotency if action else OF_ROLE[outgoing.role][1]
        if outgoing.effect is Effect.WRITE and idempotency is not Idempotency.NATURAL:
            self.done.setdefault(context.call_id, []).append(context.attempt)
        if action is not None and action.operation_timeout_ms and dice.happens(0.7):
            accepted = b'{"operation":{"poll_after_ms":100}}'
            return Answer(
                response=payload(accepted),
                side_effect=SideEffect.UNKNOWN,
                operation_poll_after_ms=100,
            )
        text = answers.response(outgoing.role, bytes(outgoing.body), dice=dice)
        did = SideEffect.NONE if outgoing.effect is Effect.READ else SideEffect.PERFORMED
        return Answer(response=payload(text), side_effect=did)

    def keeps(self, outgoing: Outgoing, answer: Answer, *, ttl_ms: int, now_ms: float) -> None:
        """Remember an outcome for as long as the card says."""
        context = outgoing.context
        kept = self.kept.get(context.call_id)
        if kept is not None and kept.answer is None:
            kept.answer = answer
            kept.until_ms = now_ms + ttl_ms

    def operation_state(self, call_id: str, now_ms: float) -> OperationState | AcpError | None:
        """What a poll finds; None is silence."""
        running = self.operations.get(call_id)
        if running is None or running.fault == "operation forgotten":
            return error(Reason.NOT_FOUND, "there is no such operation")
        if running.fault == "operation silent":
            return None
        if running.is_stopped:
            return OperationState(status=OperationStatus.CANCELLED, side_effect=SideEffect.UNKNOWN)
        if now_ms < running.over_at_ms:
            return OperationState(status=OperationStatus.RUNNING, poll_after_ms=400)
        if running.fault == "operation failed":
            failure = error(Reason.INTERNAL, "it broke", side_effect=SideEffect.UNKNOWN)
            return OperationState(
                status=OperationStatus.FAILED, error=failure, side_effect=SideEffect.UNKNOWN
            )
        return OperationState(status=OperationStatus.SUCCEEDED, output=DONE)


def action_of(card: Card, outgoing: Outgoing) -> Action | None:
    """The action that is asked for; None for the other roles."""
    if outgoing.role is not StepRole.EXECUTE:
        return None
    return card.action(_named.decode(bytes(outgoing.body)).action)


def effect_of(outgoing: Outgoing) -> Effect:
    """What the component does by the card that it had first, whatever a newer one says."""
    if outgoing.role is not StepRole.EXECUTE:
        return OF_ROLE[outgoing.role][0]
    return DECLARED[_named.decode(bytes(outgoing.body)).action].effect


def garbled(answer: Answer, dice: Dice) -> Answer:
    """What no honest encoder writes: wrong types, wrong shapes, a graph that is none."""
    text = payload(dice.pick(answers.GARBAGE))
    return msgspec.structs.replace(answer, response=text, operation_poll_after_ms=None)


def with_spent(answer: Answer, dice: Dice, *, lent: int) -> Answer:
    """The component repeated something of its own: never more than it was lent."""
    return msgspec.structs.replace(answer, retries_spent=dice.between(0, lent))


def failed(
    failure: AcpError, effect: Effect, *, answered: bool = True, not_sent: bool = False
) -> Answer:
    """An answer that is an error, read as a connection reads it."""
    did = failure.side_effect
    if did is None:
        did = SideEffect.NONE if effect is Effect.READ else SideEffect.UNKNOWN
    return Answer(error=failure, side_effect=did, answered=answered, not_sent=not_sent)


def error_before_work(dice: Dice) -> AcpError:
    """Any error there is, made before anything was done."""
    return error(dice.pick(OWN_ERRORS), "no", side_effect=SideEffect.NONE)


def error_behind_work(dice: Dice) -> AcpError:
    """Any error there is, made when the work was done."""
    reasons = [reason for reason in OWN_ERRORS if ERRORS[reason].side_effect is None]
    stated = SideEffect.PERFORMED if dice.happens(0.5) else SideEffect.UNKNOWN
    return error(dice.pick(reasons), "too late", side_effect=stated)


def pushed_back(dice: Dice) -> AcpError:
    """Not now."""
    reason = dice.pick((Reason.OVERLOADED, Reason.RATE_LIMITED))
    return error(reason, "later", side_effect=SideEffect.NONE, retry_after_ms=dice.between(10, 400))
