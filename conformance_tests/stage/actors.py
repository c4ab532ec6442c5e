"""An actor: one component of a case. It answers by script and keeps everything it was sent.

A script is a list of replies per call (`plan`, `execute`, ...); the n-th request gets the n-th, the
last one repeats. A reply is the message itself with a few keys of its own in front: `status`,
`delay_ms`, `raw`, `headers`, `hang`. Without a script it echoes, plans its one action, accepts.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from acp_spec.bindings.errors import ERRORS, HTTP_OF_CODE
from acp_spec.model.errors import Code, Reason
from conformance_tests.messages.tree import Text, Tree, Value, write_value

MESSAGES: Final = {
    "plan": ("PlanRequest", "PlanResponse"),
    "execute": ("ExecuteRequest", "ExecuteResponse"),
    "observe": ("ObserveRequest", "ObserveResponse"),
    "reflect": ("ReflectRequest", "ReflectResponse"),
    "cancel": ("CancelRequest", "CancelResponse"),
    "get_operation": ("OperationRequest", "OperationState"),
    "cancel_operation": ("OperationRequest", "CancelResponse"),
    "describe": ("Empty", "Card"),
    "health": ("Empty", "Health"),
}
OWN_KEYS: Final = ("http_status", "delay_ms", "raw", "headers", "hang", "deaf", "all_calls")
HANG_S: Final = 20.0
SENT_KEPT: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """One request as an actor got it."""

    do: str
    tree: Tree
    headers: dict[str, str]
    at_ms: float
    body: bytes = b""
    binding: str = "http"
    grpc_deadline_ms: float | None = None

    def as_tree(self) -> Tree:
        """For cases: the message with `@headers` and `@at_ms` beside it."""
        about: Tree = {"@headers": cast("Tree", self.headers), "@at_ms": int(self.at_ms)}
        if self.grpc_deadline_ms is not None:
            about["@deadline_ms"] = int(self.grpc_deadline_ms)
        return {**self.tree, **about}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What an actor answers: a status and a message, or raw bytes."""

    status: int
    tree: Tree
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None

    def body(self) -> bytes:
        return write_value(self.tree) if self.raw is None else self.raw


Ear: TypeAlias = Callable[[Heard], Heard]


def as_it_came(heard: Heard) -> Heard:
    return heard


class Actor:
    """One scripted component. `card` and `scripts` are a case's data, with its names filled in."""

    def __init__(self, card: Tree, scripts: dict[str, list[Tree]]) -> None:
        self.card = card
        self.scripts = scripts
        self.heard: list[Heard] = []
        self._counts: dict[str, int] = {}
        self._cancelled: dict[str, asyncio.Event] = {}
        self._news = asyncio.Event()
        self._free: set[asyncio.Event] = set()
        self._deaf = any(reply.get("deaf") for reply in scripts.get("execute", []))
        self._released = False
        self.ear: Ear = as_it_came
        """What it takes down of a request; another gateway, to all that a case can see."""

    def of(self, do: str) -> list[Heard]:
        return [heard for heard in self.heard if heard.do == do]

    async def wait_for(self, do: str, count: int, *, within_s: float) -> None:
        """Returns once it heard that many, or when the time is over."""
        deadline = time.monotonic() + within_s
        while len(self.of(do)) < count and (left := deadline - time.monotonic()) > 0:
            self._news.clear()
            try:
                async with asyncio.timeout(left):
                    await self._news.wait()
            except TimeoutError:
                return

    def release(self) -> None:
        """Whatever hangs is let go: the case is over."""
        self._released = True
        for waiting in self._cancelled.values():
            waiting.set()

    def let_go(self) -> None:
        """Whatever hangs now answers as its script says."""
        for waiting in self._cancelled.values():
            self._free.add(waiting)
            waiting.set()

    def replace_script(self, do: str, replies: list[Tree]) -> None:
        """From now on these answers, from the first."""
        self.scripts[do] = replies
        self._counts[do] = 0

    async def answer(self, heard: Heard) -> Said:
        """What it says to this request, when it says it."""
        if len(self.heard) < SENT_KEPT:
            self.heard.append(self.ear(heard))
        self._news.set()
        reply = self._scripted(heard)
        if reply.get("hang"):
            reply = await self._hang(heard, reply)
        if "delay_ms" in reply:
            await asyncio.sleep(float(cast("int", reply["delay_ms"])) / 1000)
        return _said(reply)

    def _scripted(self, heard: Heard) -> Tree:
        number = self._counts.get(heard.do, 0)
        self._counts[heard.do] = number + 1
        script = self.scripts.get(heard.do)
        if heard.do == "cancel" and not self._deaf:
            context = str(heard.tree.get("call_id", ""))
            self._cancelled.setdefault(context, asyncio.Event()).set()
        if script:
            return _with_calls(script[min(number, len(script) - 1)], heard)
        return _DEFAULTS[heard.do](heard, self)

    async def _hang(self, heard: Heard, reply: Tree) -> Tree:
        """Until it is cancelled; then it says so."""
        context = cast("Tree", heard.tree.get("context", {}))
        cancelled = self._cancelled.setdefault(str(context.get("call_id")), asyncio.Event())
        if self._released:
            return {"error": dict(_CANCELLED)}
        try:
            async with asyncio.timeout(HANG_S):
                await cancelled.wait()
        except TimeoutError:
            self._free.add(cancelled)
        if cancelled in self._free:
            return {k: v for k, v in reply.items() if k != "hang"}
        return {"error": dict(_CANCELLED)}


_CANCELLED: Final[Tree] = {
    "code": "CANCELLED",
    "reason": "CANCELLED",
    "message": "Stopped as asked.",
    "side_effect": "NONE",
}


def _with_calls(reply: Tree, heard: Heard) -> Tree:
    """`all_calls: true` names every call of the request for a retry."""
    if not reply.get("all_calls"):
        return reply
    calls = cast("list[Tree]", heard.tree.get("calls", []))
    return {**reply, "retry_call_ids": [call.get("call_id") for call in calls]}


def _said(reply: Tree) -> Said:
    tree = {key: value for key, value in reply.items() if key not in OWN_KEYS}
    headers = cast("dict[str, str]", reply.get("headers", {}))
    raw = reply.get("raw")
    status = int(cast("int", reply.get("http_status", _status_of(tree))))
    return Said(status=status, tree=tree, headers=headers, raw=_bytes(raw))


def _bytes(raw: Value) -> bytes | None:
    if raw is None:
        return None
    return raw.data if isinstance(raw, Text) else str(raw).encode()


def _status_of(tree: Tree) -> int:
    """As SPEC section 5 says for the error, else 200."""
    error = tree.get("error")
    if not isinstance(error, dict):
        return 200
    if error.get("reason") in Reason.__members__:
        return ERRORS[Reason[str(error["reason"])]].http
    code = str(error.get("code"))
    return HTTP_OF_CODE[Code[code]] if code in Code.__members__ else 500


def _echo(heard: Heard, actor: Actor) -> Tree:
    return {"output": heard.tree.get("arguments", Text(b"null")), "side_effect": "NONE"}


def _plan(heard: Heard, actor: Actor) -> Tree:
    names = [str(a["name"]) for a in cast("list[Tree]", actor.card.get("actions", []))]
    given = heard.tree.get("input", Text(b"null"))
    goals: list[Value] = [{"id": "g", "action": name, "arguments": given} for name in names[:1]]
    return {"plan": {"sub_goals": goals}}


def _observe(heard: Heard, actor: Actor) -> Tree:
    return {"stored": len(cast("list[Value]", heard.tree.get("observations", [])))}


def _reflect(heard: Heard, actor: Actor) -> Tree:
    return {"verdict": "ACCEPT", "output": heard.tree.get("draft", Text(b"null"))}


def _cancel(heard: Heard, actor: Actor) -> Tree:
    return {"state": "STOPPED", "side_effect": "NONE"}


def _operation(heard: Heard, actor: Actor) -> Tree:
    return {"status": "RUNNING", "poll_after_ms": 50}


_DEFAULTS: Final[dict[str, Callable[[Heard, Actor], Tree]]] = {
    "plan": _plan,
    "execute": _echo,
    "observe": _observe,
    "reflect": _reflect,
    "cancel": _cancel,
    "cancel_operation": _cancel,
    "get_operation": _operation,
    "describe": lambda heard, actor: actor.card,
    "health": lambda heard, actor: {"status": "SERVING"},
}
