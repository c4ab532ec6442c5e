"""A component that attached, as a suite reaches it: calls over its credits, questions on control.

It acknowledges each answer at once unless a case withholds that, and waits over dropped streams: an
answer may come on a later pair. What only attach has is an order (`do: attach`): `attach_orders`.
"""

import asyncio
from dataclasses import dataclass, field, replace
from typing import Final, cast

from acp_spec.bindings.routes import COMPONENT
from acp_spec.codec.shapes import message_name
from conformance_tests.messages.tree import Inexpressible, Tree, to_proto
from conformance_tests.raw.attach_bodies import (
    CHUNK_BYTES,
    Key,
    Pieces,
    call_body,
    call_frame,
    chunks,
    key_of,
    key_tree,
)
from conformance_tests.raw.attach_end import AttachEnd, Frame, Link
from conformance_tests.raw.http1 import Unreachable
from conformance_tests.runner.answers import Answer
from conformance_tests.runner.peers import Ask

QUESTIONS: Final = ("cancel", "get_operation", "cancel_operation")
WITHIN_S: Final = 10.0


@dataclass(slots=True)
class Waiting:
    """Who waits for one key: equal calls share the answer."""

    futures: list["asyncio.Future[Frame]"] = field(default_factory=list)


class AttachPeer:
    """See `Peer`; over the suite's own end of attach."""

    binding = "attach"

    def __init__(self, end: AttachEnd) -> None:
        self.url = end.url
        self.end = end
        self.pieces = Pieces("AnswerFrame")
        self.answered: dict[Key, list[tuple[int, str]]] = {}
        """Of each key: on which link an answer came, and as what."""
        self.withheld: set[Key] = set()
        self.open: dict[Key, int] = {}
        """Written and not answered yet, with the link they were written on."""
        self._bodies: dict[Key, bytes] = {}
        self._writing: set[asyncio.Task[None]] = set()
        self._waiting: dict[Key, Waiting] = {}
        self._questions: dict[tuple[str, str], list[asyncio.Future[Tree]]] = {}
        end.listener = self._heard

    async def close(self) -> None:
        await self.end.stop()

    async def ask(self, ask: Ask) -> Answer:
        if ask.do == "describe":
            link = await self.linked(within_s=ask.timeout_s)
            return _success(ask, cast("Tree", link.hello.get("card", {})), message="Card")
        if ask.do in QUESTIONS:
            return await self._question(ask)
        if ask.do not in COMPONENT or ask.do == "health":
            raise Inexpressible(f"{ask.do} has no place in attach")
        return await self._call(ask)

    async def linked(self, *, within_s: float = WITHIN_S) -> Link:
        """The link that stands, or the next one. Raises Unreachable."""
        end = self.end
        await end.until(lambda: end.link is not None or bool(end.abandoned), within_s=within_s)
        found = end.link
        if found is None:
            why = end.abandoned or f"it did not come in {within_s:g} s"
            raise Unreachable(f"the component is not attached: {why}")
        return found

    # ---- calls -----------------------------------------------------------------------------------

    async def _call(self, ask: Ask) -> Answer:
        key = _key(ask)
        request = ask.body
        if request is None:
            request = to_proto(ask.tree, message_name(COMPONENT[ask.do].rpc_in))
        if ask.how.get("ack") is False:
            self.withheld.add(key)
        future: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(key, Waiting()).futures.append(future)
        begun = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(ask.timeout_s):
                await self._send(key, call_body(key, ask.do, request=request), how=ask.how)
                frame = await future
        except TimeoutError:
            raise Unreachable(f"no answer over attach within {ask.timeout_s:g} s") from None
        elapsed_ms = (asyncio.get_running_loop().time() - begun) * 1000
        return _answer(ask, frame, elapsed_ms=elapsed_ms)

    async def _send(self, key: Key, body: bytes, *, how: Tree) -> None:
        link = await self._credit()
        link.credits -= 1
        self.open[key] = link.number
        self._bodies[key] = body
        size = int(str(how.get("chunk_bytes", CHUNK_BYTES)))
        for _ in range(2 if how.get("twice") else 1):
            if len(body) <= size:
                link.call(call_frame(body))
                continue
            pieces = chunks(key, body, size=size)
            if how.get("order") == "wrong":
                pieces = [pieces[1], pieces[0], *pieces[2:]]
            for piece in pieces:
                link.call(to_proto({"chunk": piece}, "GatewayCallsFrame"))
                await asyncio.sleep(0.002)  # so that others come between

    async def _credit(self) -> Link:
        """A link with a credit to spend; waits for it until cancelled."""
        while True:
            link = self.end.link
            if link is not None and link.credits > 0:
                return link
            await self.end.until(
                lambda: self.end.link is not None and self.end.link.credits > 0, within_s=WITHIN_S
            )

    # ---- questions -------------------------------------------------------------------------------

    async def _question(self, ask: Ask) -> Answer:
        link = await self.linked()
        tree: Tree = {"call_id": ask.call_id, **ask.tree}
        kind = "cancelled" if ask.do == "cancel" else "operation"
        future: asyncio.Future[Tree] = asyncio.get_running_loop().create_future()
        self._questions.setdefault((kind, ask.call_id), []).append(future)
        link.say({ask.do: tree})
        try:
            async with asyncio.timeout(ask.timeout_s):
                said = await future
        except TimeoutError:
            raise Unreachable(f"no answer to {ask.do} on the control stream") from None
        message = message_name(COMPONENT[ask.do].rpc_out)
        if "error" in said:
            return _failure(ask, {"error": said["error"]})
        held = said.get({"cancel": "response", "get_operation": "state"}.get(ask.do, "cancelled"))
        tree = held if isinstance(held, dict) else {}
        if ask.do == "cancel":
            tree = {**tree, "@attempt": key_of(said)[1]}
        return _success(ask, tree, message=message)

    # ---- what comes in ---------------------------------------------------------------------------

    def _heard(self, link: Link, frame: Frame) -> None:
        match frame.name:
            case "hello":
                self._returned(frame.tree)
            case "answer":
                self._answered(link, frame)
            case "chunk":
                whole = self.pieces.add(frame.tree)
                if whole is not None:
                    self._answered(link, replace(frame, name="answer", tree=whole))
            case "cancelled":
                self._told((frame.name, key_of(frame.tree)[0]), frame.tree)
            case "operation":
                self._told((frame.name, str(frame.tree.get("call_id", ""))), frame.tree)
            case _:
                pass

    def _returned(self, hello: Tree) -> None:
        """What never arrived is written again; what is finished is answered in a moment."""
        working, finished = _keys(hello, "in_flight"), _keys(hello, "finished_unacked")
        lost = [key for key in self.open if key not in {*working, *finished}]
        self.open = {key: number for key, number in self.open.items() if key in working}
        for key in lost:
            task = asyncio.ensure_future(self._send(key, self._bodies[key], how={}))
            self._writing.add(task)
            task.add_done_callback(self._writing.discard)

    def _told(self, subject: tuple[str, str], tree: Tree) -> None:
        for future in self._questions.pop(subject, []):
            if not future.done():
                future.set_result(tree)

    def _answered(self, link: Link, frame: Frame) -> None:
        key, name = key_of(frame.tree), _member(frame.tree)
        if name == "progress":
            return
        self.open.pop(key, None)
        self._bodies.pop(key, None)
        self.answered.setdefault(key, []).append((link.number, name))
        if key not in self.withheld:
            self.acknowledge(link, key)
        waiting = self._waiting.pop(key, Waiting())
        for future in waiting.futures:
            if not future.done():
                future.set_result(frame)

    @staticmethod
    def acknowledge(link: Link, key: Key) -> None:
        tree: Tree = {"acknowledged": {"key": key_tree(key)}}
        link.call(to_proto(tree, "GatewayCallsFrame"))


def _key(ask: Ask) -> Key:
    """As the context says; where it says nothing that is a key, one of its own."""
    context = ask.tree.get("context")
    about = context if isinstance(context, dict) else {}
    call_id, attempt = about.get("call_id"), about.get("attempt")
    return (
        str(call_id or f"unnamed-{id(ask):x}"),
        attempt if isinstance(attempt, int) and attempt > 0 else 1,
    )


def _keys(hello: Tree, name: str) -> set[Key]:
    return {key_of({"key": one}) for one in cast("list[Tree]", hello.get(name, []))}


def _member(tree: Tree) -> str:
    return next((name for name in tree if name != "key"), "")


def _answer(ask: Ask, frame: Frame, *, elapsed_ms: float) -> Answer:
    name = _member(frame.tree)
    held = frame.tree.get(name)
    tree = held if isinstance(held, dict) else {}
    if name == "error":
        return _failure(ask, tree, elapsed_ms=elapsed_ms)
    message = message_name(COMPONENT[name].rpc_out) if name in COMPONENT else ""
    return _success(ask, tree, message=message, elapsed_ms=elapsed_ms, name=name)


def _success(
    ask: Ask, tree: Tree, *, message: str, elapsed_ms: float = 0.0, name: str = ""
) -> Answer:
    return Answer(
        binding="attach",
        do=ask.do,
        message=message,
        ok=True,
        tree=tree,
        headers={"answered-as": name} if name else {},
        elapsed_ms=elapsed_ms,
    )


def _failure(ask: Ask, tree: Tree, *, elapsed_ms: float = 0.0) -> Answer:
    return Answer(
        binding="attach",
        do=ask.do,
        message="ErrorBody",
        ok=False,
        tree=tree,
        elapsed_ms=elapsed_ms,
    )
