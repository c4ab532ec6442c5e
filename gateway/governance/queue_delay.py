"""Too long a queue, told by time: shed newcomers once a delay has stood over a target (R09).

After CoDel (K. Nichols, V. Jacobson, "Controlling Queue Delay", 2012): a burst may queue, a delay
that does not go away within an interval is a standing queue and is answered by refusing, newest and
lowest first. Where CoDel drops at growing rate, this law lets in again whoever would wait less than
the target, so that the slots behind the queue never run dry. Pure: the state is a value.
"""

from typing import Annotated

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import Boundary, SideEffect
from acp_spec.model.errors import AcpError, Reason
from gateway.governance.verdicts import ADMIT, Refuse, Verdict

TARGET_MS = 100
"""A delay that nobody notices beside calls of 10 to 1,000 ms."""

INTERVAL_MS = 200
"""Shorter bursts are what a queue is for; CoDel's interval is such a round trip, too."""

DEADLINE_SHARE = 0.7
"""Of its deadline a session may be forecast to need: means are forecast, some take longer."""

CALLS_WAITING = 2
"""Calls that may wait for each slot, however long they are; at half the allowance still one, so
that a slot of a target that does one long thing at a time never waits for a newcomer."""

RETRY_AFTER_MIN_MS = 100
"""Sooner, whoever was refused would only find the same queue."""


class QueueDelay(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of the law. `target_ms` 0: nothing is shed."""

    target_ms: Annotated[int, msgspec.Meta(ge=0, le=86_400_000)] = TARGET_MS
    interval_ms: Annotated[int, msgspec.Meta(ge=1, le=86_400_000)] = INTERVAL_MS


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one queue. `since_ms`: since when its delay is over the target; of one that
    sheds, since when it is under it and nobody had to be refused."""

    shedding: bool = False
    since_ms: float | None = None
    seen_ms: float = 0.0


CALM = Standing()


def observe(before: Standing, law: QueueDelay, *, delay_ms: float, now_ms: float) -> Standing:
    """The state after a look at the delay. A look long ago says nothing of the time between."""
    if now_ms - before.seen_ms > max(law.interval_ms, 1_000):
        before = CALM
    over = delay_ms > law.target_ms
    if over is before.shedding:  # as it is held to be: nothing is changing
        return Standing(shedding=before.shedding, seen_ms=now_ms)
    since_ms = now_ms if before.since_ms is None else before.since_ms
    if now_ms - since_ms >= law.interval_ms:
        return Standing(shedding=over, seen_ms=now_ms)
    return Standing(shedding=before.shedding, since_ms=since_ms, seen_ms=now_ms)


def held_back(after: Standing) -> Standing:
    """The state once somebody was refused: a delay under the target is the shedding's own work."""
    return msgspec.structs.replace(after, since_ms=None) if after.shedding else after


class Newcomer(msgspec.Struct, frozen=True, kw_only=True):
    """Who wants in: what it would wait, what it would need in all, and its part of the target.

    `floor_ms`: one call of the busiest place; below it no slot has even one waiting for it.
    `least_ms`: what it would take with nobody before it.
    """

    wait_ms: float
    whole_ms: float
    deadline_ms: int
    floor_ms: float = 0.0
    least_ms: float = 0.0
    allowance: float = 1.0
    crowds: bool = False


def check(standing: Standing, law: QueueDelay, *, newcomer: Newcomer) -> Verdict:
    """Refuse who could not end in time, and who would lengthen a standing queue."""
    if not law.target_ms:
        return ADMIT
    most_ms = newcomer.deadline_ms * DEADLINE_SHARE
    hurries = newcomer.wait_ms and newcomer.deadline_ms
    if hurries and newcomer.least_ms > newcomer.deadline_ms:
        return Refuse("deadline", _too_short(newcomer))
    if hurries and newcomer.whole_ms > most_ms:
        message = (
            f"it would end in about {newcomer.whole_ms:.0f} ms, too late for its deadline of"
            f" {newcomer.deadline_ms} ms: nothing was begun"
        )
        return Refuse("deadline", refusal(message, after_ms=newcomer.whole_ms - most_ms))
    allowed_ms = max(law.target_ms, CALLS_WAITING * newcomer.floor_ms) * newcomer.allowance
    if not standing.shedding or newcomer.wait_ms <= allowed_ms:
        return ADMIT
    message = f"its calls would wait about {newcomer.wait_ms:.0f} ms, and such a queue stands"
    reason = Reason.OVERLOADED
    if newcomer.crowds:
        reason = Reason.RATE_LIMITED
        message = f"{message}; this tenant has more than its share of it"
    after_ms = newcomer.wait_ms - allowed_ms
    return Refuse("queue_delay", refusal(message, after_ms=after_ms, reason=reason))


def _too_short(newcomer: Newcomer) -> AcpError:
    """No load is the reason, and no later time is better: TIMEOUT, and not to be repeated."""
    message = (
        f"deadline_ms: {newcomer.deadline_ms} ms are too short, with nobody before it it takes at"
        f" least {newcomer.least_ms:.0f} ms: nothing was begun"
    )
    failure = error(Reason.TIMEOUT, message, side_effect=SideEffect.NONE, boundary=Boundary.GATEWAY)
    return msgspec.structs.replace(failure, retryable=False)


def refusal(message: str, *, after_ms: float, reason: Reason = Reason.OVERLOADED) -> AcpError:
    """The gateway's own refusal, with the least that whoever asks again should wait."""
    return error(
        reason,
        message,
        boundary=Boundary.GATEWAY,
        retry_after_ms=max(RETRY_AFTER_MIN_MS, int(after_ms)),
    )


def hopeless(left_ms: float, *, needed_ms: float) -> Refuse:
    """Of a call that would wait or be served in vain: its session would be over before.

    It is not to be repeated: a later attempt has less time still.
    """
    message = f"{left_ms:.0f} ms are left, and its answer would come after {needed_ms:.0f} ms"
    failure = error(Reason.OVERLOADED, message, boundary=Boundary.GATEWAY)
    return Refuse("queue_delay", msgspec.structs.replace(failure, retryable=False))
