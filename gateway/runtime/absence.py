"""When the component that a call is pinned to is not there: wait, deviate, or refuse (SPEC 9.6).

A pinned version without an instance is waited for `pin_grace_ms`, after a start of the gateway for
the attach grace. Then the active version serves with a deviation, unless the workflow is strict.
"""

import asyncio
from collections.abc import Callable

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.enums import ROLE_OF_STEP, Boundary, StepRole
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.session import Deviation
from gateway.engine.definition import PinMode
from gateway.engine.events import AttemptStarted, CallCreated
from gateway.engine.states import CallState, SessionState
from gateway.runtime.clock import Clock
from gateway.runtime.queueing import Claim, Waiting
from gateway.runtime.targets import Target, Targets


class Found(msgspec.Struct, frozen=True):
    """Where the attempt goes, and whether that is not what was meant."""

    target: Target
    deviation: Deviation | None = None


class Absence:
    """Finds targets and keeps those who wait for one. `wake` is given a waiting attempt again."""

    def __init__(
        self, targets: Targets, clock: Clock, *, pin_grace_ms: int, attach_grace_ms: int
    ) -> None:
        self._targets = targets
        self._clock = clock
        self._pin_grace_ms = pin_grace_ms
        self._attach_until_ms = clock.monotonic_ms() + attach_grace_ms
        self._since: dict[tuple[str, str, int], float] = {}
        self._waiting: dict[tuple[str, str, int], Waiting] = {}
        self.wake: Callable[[Waiting], None] = lambda waiting: None
        self.avoid: Callable[[Target], bool] | None = None
        """Of a pin's instances those that a breaker keeps calls from, while there are others."""
        targets.on_change(self._changed)

    def target(
        self, state: SessionState, call: CallState, *, claim: Claim
    ) -> Found | AcpError | None:
        """The target; an error when nobody will serve; None while it is worth waiting."""
        found = self._now(state, call)
        if not self._since and isinstance(found, Found):
            return found  # nobody waits anywhere: the usual case
        key = (state.opened.session_id, call.created.call_id, call.number)
        if isinstance(found, Found):
            self._forget(key)
            return found
        now_ms = (
            self._clock.monotonic_ms()
        )  # a clock that is set back makes nobody wait for as long
        since_ms = min(self._since.setdefault(key, now_ms), now_ms - self._gone_for_ms(call))
        until_ms = max(since_ms + self._pin_grace_ms, self._attach_until_ms)
        if now_ms < until_ms:
            self._wait(key, claim(), for_ms=until_ms - now_ms)
            return None
        self._forget(key)
        return self._deviating(state, call) or found

    def next_target(self, state: SessionState, call: CallState) -> Target | None:
        """Where an attempt would go now; nobody waits for it."""
        found = self._now(state, call)
        return found.target if isinstance(found, Found) else None

    def another(self, state: SessionState, first: AttemptStarted) -> Target | None:
        """Another instance of the version that serves already; None: there is none to call."""

        def is_out(target: Target) -> bool:
            blocked = self.avoid is not None and self.avoid(target)
            return blocked or target.component_id == first.instance

        pin = f"{first.component}@{first.version}"
        target = self._targets.pick(pin, state.session_id, avoid=is_out)
        return None if target is None or is_out(target) else target

    def instance(self, component_id: str) -> Target | None:
        """That very instance, while it is registered."""
        return self._targets.instance(component_id)

    def _gone_for_ms(self, call: CallState) -> int:
        """For how long nobody serves the pin: what is gone for long is not waited for again."""
        created = call.created
        known_ms = self._targets.known_at(f"{created.component}@{created.version}")
        return 0 if known_ms is None else max(0, self._clock.now_ms() - known_ms)

    def _now(self, state: SessionState, call: CallState) -> Found | AcpError:
        created = call.created
        if created.component and created.version:
            pin = f"{created.component}@{created.version}"
            target = self._targets.pick(pin, state.session_id, avoid=self.avoid)
            return Found(target) if target else _nobody(pin)
        name = created.component or self._any_name(created)
        target = self._active(name, state.session_id) if name else None
        wanted = created.component or created.action or created.role.value
        return Found(target) if target else _nobody(wanted)

    def _any_name(self, created: CallCreated) -> str:
        """Who can do it by now, of a call that nobody could serve when it was created."""
        catalog = self._targets.catalog()
        if created.role is StepRole.EXECUTE:
            names = catalog.names_with_action(created.action)
            return names[0] if len(names) == 1 else ""
        names = catalog.names_with_role(ROLE_OF_STEP[created.role])
        return names[0] if names else ""

    def _active(self, name: str, session_id: str) -> Target | None:
        offer = self._targets.catalog().version(name)
        return self._targets.pick(offer.pin, session_id, avoid=self.avoid) if offer else None

    def _deviating(self, state: SessionState, call: CallState) -> Found | None:
        created = call.created
        workflow = state.workflow
        step = workflow.step(created.step) if workflow else None
        if workflow and step and workflow.pin_of(step) is PinMode.STRICT:
            return None
        target = self._active(created.component, state.session_id) if created.component else None
        if target is None or (created.action and target.card.action(created.action) is None):
            return None
        deviation = Deviation(
            step=created.step,
            role=created.role.value,
            intended=f"{created.component}@{created.version}",
            served=f"{target.card.name}@{target.card.version}",
            reason="no instance of the pinned version within its grace",
        )
        return Found(target, deviation)

    def _wait(self, key: tuple[str, str, int], waiting: Waiting, *, for_ms: float) -> None:
        if key not in self._waiting:
            loop = asyncio.get_running_loop()
            loop.call_later(for_ms / 1000 + 0.001, self._again, key)
        self._waiting[key] = waiting

    def _again(self, key: tuple[str, str, int]) -> None:
        waiting = self._waiting.pop(key, None)
        if waiting is not None:
            self.wake(waiting)

    def _changed(self) -> None:
        for key in list(self._waiting):
            self._again(key)

    def forget(self, waiting: Waiting) -> None:
        """It no longer wants to be sent."""
        self._forget((waiting.session_id, waiting.call_id, waiting.attempt))

    def _forget(self, key: tuple[str, str, int]) -> None:
        self._since.pop(key, None)
        self._waiting.pop(key, None)


def _nobody(wanted: str) -> AcpError:
    message = f"no instance of {wanted} is registered and reachable"
    return error(Reason.NO_COMPONENT, message, boundary=Boundary.GATEWAY)
