"""Those who use a gateway: each opens one session and does with it what its dice say.

They hold the gateway to its word: what a client was told stands in the books and may never be taken
back. A client whose gateway dies asks again, under the same `session_key` where it has one.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Protocol, TypeVar

from acp_spec.model.enums import TERMINAL_SESSION, FeedbackKind, Mode, StepType
from acp_spec.model.errors import AcpFailure, Reason
from acp_spec.model.payload import Payload, payload
from acp_spec.model.session import (
    Feedback,
    FinishRequest,
    ManualStep,
    Opened,
    OpenSession,
    SessionView,
)
from gateway.runtime.principal import ALL_SCOPES, Principal
from gateway.simulation import random_workflows
from gateway.simulation.dice import Dice
from gateway.simulation.house import House
from gateway.simulation.town import NUMBER

T = TypeVar("T")

TENANTS: Final = tuple(
    Principal(tenant=name, scopes=ALL_SCOPES, names=("*",), subject=f"{name}-client")
    for name in ("red", "green", "blue")
)
BY_HAND: Final = payload(b'{"by":"hand"}')
TRIES_MAX: Final = 30
AGAIN_S: Final = 0.4
MANUAL: Final[tuple[tuple[StepType, bytes], ...]] = (
    (StepType.PLAN, b'{"goal":"x"}'),
    (StepType.TOOL, b'{"action":"read","arguments":{"n":1}}'),
    (StepType.TOOL, b'{"action":"book","arguments":{"n":2}}'),
    (StepType.TOOL, b'{"action":"pay","arguments":{"n":3}}'),
    (StepType.LLM, b'{"action":"ask","arguments":{"n":4}}'),
    (StepType.TOOL, b'{"action":"grow","arguments":{"n":5}}'),
)


class Gone(Exception):
    """The gateway did not answer: it is down, or died while it was asked."""


class Gateway(Protocol):
    """A gateway as its clients reach it, over all of its lives."""

    async def ask(
        self, work: Callable[[House], Coroutine[Any, Any, T]], *, promised: str = ""
    ) -> T:
        """Raises Gone, or the AcpFailure it was answered with.

        `promised`: the session whose answer says that something is kept now.
        """

    def told(self, session_id: str, view: SessionView | Opened) -> None: ...

    def told_version(self, session_id: str, version: str) -> None: ...

    def told_erased(self, session_id: str) -> None: ...


class Client:
    """One client and its session."""

    def __init__(self, gateway: Gateway, number: int, *, dice: Dice, files: Sequence[int]) -> None:
        self._gateway = gateway
        self._dice = dice
        self._tenant = dice.pick(TENANTS)
        self._mode = Mode.MANUAL if dice.happens(0.08) else Mode.AUTOMATIC
        self._waits = dice.happens(0.3)
        key = f"key-{number}" if dice.happens(0.25) else ""
        manual = self._mode is Mode.MANUAL
        self._request = OpenSession(
            workflow="" if manual else random_workflows.reference(dice.pick(files)),
            input=_input(dice),
            deadline_ms=_deadline_ms(dice, manual=manual),
            labels={NUMBER: str(number)},
            session_key=key,
            mode=self._mode,
        )

    async def live(self) -> None:
        """Everything this client does, until it has seen enough."""
        session_id = await self._open()
        if not session_id:
            return
        if self._mode is Mode.MANUAL:
            await self._by_hand(session_id)
        elif self._dice.happens(0.10):
            await asyncio.sleep(self._dice.latency_s(0.12))
            await self._cancel(session_id)
        if self._dice.happens(0.25):
            await self._until_ended(session_id)
            if self._dice.happens(0.6):
                await self._judge(session_id)
            if self._dice.happens(0.3):
                await self._erase(session_id)
        elif self._dice.happens(0.1):
            await self._judge(session_id)

    # ---- opening -----------------------------------------------------------------------------

    async def _open(self) -> str:
        """The session's id; empty when nobody knows whether there is one, or it was refused."""
        wait_s = 2.0 if self._waits and self._mode is Mode.AUTOMATIC else 0.0
        for _ in range(TRIES_MAX):
            try:
                found, _ = await self._gateway.ask(
                    lambda house: house.sessions.open(self._request, self._tenant, wait_s=wait_s)
                )
            except Gone:
                if not self._request.session_key and self._dice.happens(0.5):
                    return ""
            except AcpFailure as failure:
                if failure.error.reason != Reason.OVERLOADED.value:
                    return ""
            else:
                self._gateway.told(found.session_id, found)
                return found.session_id
            await asyncio.sleep(AGAIN_S)
        return ""

    # ---- what may be done with it ------------------------------------------------------------

    async def _patiently(
        self, work: Callable[[House], Coroutine[Any, Any, T]], *, promised: str = ""
    ) -> T | None:
        """Ask until somebody answers; None when it is refused."""
        for _ in range(TRIES_MAX):
            try:
                return await self._gateway.ask(work, promised=promised)
            except Gone:
                await asyncio.sleep(AGAIN_S)
            except AcpFailure:
                return None
        return None

    async def _cancel(self, session_id: str) -> None:
        view = await self._patiently(
            lambda house: house.sessions.cancel(session_id, self._tenant),
            promised=session_id,
        )
        if view is not None:
            self._gateway.told_version(session_id, view.state_version)

    async def _until_ended(self, session_id: str) -> None:
        for _ in range(TRIES_MAX * 4):
            view = await self._patiently(
                lambda house: house.sessions.view(session_id, self._tenant)
            )
            if view is None:
                return
            if view.status in TERMINAL_SESSION:
                self._gateway.told(session_id, view)
                return
            await asyncio.sleep(0.6)

    async def _judge(self, session_id: str) -> None:
        feedback = Feedback(kind=FeedbackKind.RATING, score=0.5, author="a", comment="fine")
        accepted = await self._patiently(
            lambda house: house.sessions.feedback(session_id, feedback, principal=self._tenant),
            promised=session_id,
        )
        if accepted is not None:
            self._gateway.told_version(session_id, accepted.state_version)

    async def _erase(self, session_id: str) -> None:
        async def erase(house: House) -> bool:
            await house.sessions.erase(session_id, self._tenant)
            return True

        if await self._patiently(erase):
            self._gateway.told_erased(session_id)

    async def _by_hand(self, session_id: str) -> None:
        """A client that runs its steps itself; it may walk away in the middle."""
        for number in range(self._dice.between(2, 5)):
            kind, text = self._dice.pick(MANUAL)
            step = ManualStep(step_type=kind, payload=payload(text), step_key=f"k{number}")
            result = await self._patiently(
                lambda house, step=step: house.sessions.manual_step(  # type: ignore[misc]
                    session_id, step, principal=self._tenant, wait_s=1.0
                ),
                promised=session_id,
            )
            if result is None:
                break
            self._gateway.told_version(session_id, result.state_version)
        if self._dice.happens(0.7):
            await asyncio.sleep(0.3)
            view = await self._patiently(
                lambda house: house.sessions.finish(
                    session_id,
                    FinishRequest(output=payload(b'{"by":"hand"}')),
                    principal=self._tenant,
                ),
                promised=session_id,
            )
            if view is not None:
                self._gateway.told(session_id, view)
            else:
                await self._cancel(session_id)
        elif self._dice.happens(0.7):
            await self._cancel(session_id)


def _input(dice: Dice) -> Payload:
    query = "q" if dice.happens(0.5) else "x"
    number = dice.between(0, 5)
    return payload(b'{"query":"%s","n":%d,"deep":{"list":[1,2]}}' % (query.encode(), number))


def _deadline_ms(dice: Dice, *, manual: bool) -> int:
    if manual:
        return dice.between(4_000, 15_000)
    return dice.between(150, 4_000) if dice.happens(0.2) else dice.between(10_000, 40_000)
