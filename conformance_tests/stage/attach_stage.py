"""One actor that attaches to a gateway: a small component by the rules, and wrong where told.

It keeps answers until they are acknowledged and goes on over dropped streams, which only an order
of a case opens again. What an order does stands in `ORDERS`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias, cast

import grpc

from conformance_tests.messages.tree import Text, Tree, Value, as_text, to_proto
from conformance_tests.raw.attach_bodies import CHUNK_BYTES, Key, chunks, key_of, key_tree
from conformance_tests.stage.actors import Actor, Heard, Said
from conformance_tests.stage.attach_link import AttachLink, Between

WELCOME_WITHIN_S: Final = 15.0
CREDITS: Final = 64
TRIES_MAX: Final = 5
LISTEN_S: Final = 0.5
"""A gateway that refuses by the metadata alone may end the stream while the first frame is written,
and then gRPC loses its status here: tried again, it is given this time to end it before."""
ROLES: Final = ("plan", "execute", "observe", "reflect")


class AttachedActor:
    """The actor behind its links; the last one is the one that counts."""

    def __init__(self, actor: Actor, url: str, *, token: str, between: Between) -> None:
        self.actor = actor
        self.links: list[AttachLink] = []
        self.credits = CREDITS
        self.calls: list[Key] = []
        self.acks: list[Key] = []
        self._url = url.rpartition("://")[2]
        self._token = token
        self._between = between
        self._working: dict[Key, asyncio.Task[None]] = {}
        self._kept: dict[Key, Tree] = {}
        self._is_mute = False

    @property
    def link(self) -> AttachLink:
        return self.links[-1]

    async def close(self) -> None:
        for link in self.links:
            await link.close()
        for task in self._working.values():
            task.cancel()

    async def obey(self, how: Tree) -> Tree:
        """Carry out an order, and tell how things stand."""
        await ORDERS[str(how.get("order", "look"))](self, how)
        return self.facts()

    def facts(self) -> Tree:
        """What a case may look at."""
        link = self.link
        return {
            "link": link.number,
            "open": link.is_open,
            "welcome": link.welcome or {},
            "error": link.error,
            "ended": cast("Value", sorted(link.ended)),
            "beats": link.beats,
            "drained": link.drained,
            "largest_frame": link.largest,
            "chunk_faults": cast("Value", link.pieces.faults),
            "calls": [key_tree(key) for key in self.calls],
            "acks": [key_tree(key) for key in self.acks],
            "links": [{"open": one.is_open, "error": one.error} for one in self.links],
        }

    # ---- orders ----------------------------------------------------------------------------------

    async def hello(self, how: Tree) -> None:
        """A new pair of streams; what a hello lists is what is so, unless stated otherwise."""
        await self._say_hello(how)
        for _ in range(TRIES_MAX - 1):
            if self.link.broke:
                self.links.pop()
                await self._say_hello(how, listen_s=LISTEN_S)

    async def _say_hello(self, how: Tree, *, listen_s: float = 0.0) -> None:
        token = str(how.get("token") or self._token)
        metadata = [("acp-version", str(how.get("version", "1.0")))]
        if token:
            metadata.append(("authorization", f"Bearer {token}"))
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1)]
        channel = grpc.aio.insecure_channel(self._url, options=options)
        link = AttachLink(len(self.links) + 1, channel, self._between, self._heard, tuple(metadata))
        self.links.append(link)
        said = self._between.says("control", self._hello(how))
        first = to_proto({"frames": cast("Value", said)}, "ComponentControl")
        await link.open("control", first, listen_s=listen_s)
        await link.until(lambda: bool(link.welcome or link.ended), within_s=WELCOME_WITHIN_S)
        if link.welcome is None:
            return
        begun: Tree = {"attachment_id": link.welcome.get("attachment_id", "")}
        if self.credits:
            begun["frames"] = [{"credits": {"granted": self.credits - len(self._working)}}]
        await link.open("calls", to_proto(begun, "ComponentCalls"))
        for key, answer in list(self._kept.items()):
            await self._send(key, answer, order="")
        link.tasks.append(asyncio.create_task(self._beat(link)))

    def _hello(self, how: Tree) -> Tree:
        if how.get("first") == "heartbeat":
            return {"heartbeat": {}}
        return {
            "hello": {
                "instance_id": "conformance",
                "incarnation": how.get("incarnation", 5),
                "card": cast("Value", self.actor.card),
                "in_flight": how.get("in_flight", [key_tree(key) for key in self._working]),
                "finished_unacked": how.get("finished", [key_tree(key) for key in self._kept]),
                "acp_version": "1.0",
            }
        }

    async def drop(self, how: Tree) -> None:
        await self.link.close()

    async def end_calls(self, how: Tree) -> None:
        await self.link.close("calls")

    async def calls_only(self, how: Tree) -> None:
        """A calls stream of nobody, on a pair of its own."""
        await self._calls_only()
        for _ in range(TRIES_MAX - 1):
            if self.link.broke:
                self.links.pop()
                await self._calls_only()

    async def _calls_only(self) -> None:
        link = AttachLink(
            len(self.links) + 1,
            grpc.aio.insecure_channel(self._url, options=[("grpc.use_local_subchannel_pool", 1)]),
            self._between,
            self._heard,
            (("acp-version", "1.0"), ("authorization", f"Bearer {self._token}")),
        )
        self.links.append(link)
        await link.open("calls", to_proto({"attachment_id": "of-nobody"}, "ComponentCalls"))
        await link.until(lambda: bool(link.ended), within_s=WELCOME_WITHIN_S)

    async def look(self, how: Tree) -> None:
        """Nothing is done."""

    async def grant(self, how: Tree) -> None:
        await self.link.say("calls", {"credits": {"granted": how["count"]}})

    async def answer(self, how: Tree) -> None:
        """An answer that nobody asked for."""
        key = (str(how["of"]), 1)
        await self.link.say(
            "calls", {"answer": {"key": key_tree(key), "execute": {"output": Text(b"1")}}}
        )

    async def progress(self, how: Tree) -> None:
        """Progress of every call that is worked on."""
        for key in self._working:
            done: Tree = {"key": key_tree(key), "progress": {"progress": as_text({"at": 1})}}
            await self.link.say("calls", {"answer": done})

    async def raw(self, how: Tree) -> None:
        data = how["bytes"]
        sent = self._between.raw(data.data if isinstance(data, Text) else b"")
        await self.link.write(str(how.get("stream", "calls")), sent)

    async def say(self, how: Tree) -> None:
        """A frame on control."""
        await self.link.say("control", cast("Tree", how["frame"]))

    async def hello_again(self, how: Tree) -> None:
        await self.link.say("control", self._hello(how))

    async def mute(self, how: Tree) -> None:
        self._is_mute = True

    # ---- what comes in ---------------------------------------------------------------------------

    def _heard(self, link: AttachLink, frame: Tree) -> None:
        name = next(iter(frame), "")
        tree = cast("Tree", frame.get(name, {}))
        match name:
            case "welcome":
                link.welcome = tree
            case "heartbeat":
                link.beats += 1
            case "drain":
                link.drained = True
            case "acknowledged":
                self.acks.append(key_of(tree))
                self._kept.pop(key_of(tree), None)
            case "call":
                self._called(tree)
            case "chunk":
                whole = link.pieces.add(tree)
                if whole is not None:
                    self._called(whole)
            case "cancel" | "get_operation" | "cancel_operation":
                link.tasks.append(asyncio.create_task(self._asked(link, name, tree=tree)))
            case _:
                pass

    def _called(self, call: Tree) -> None:
        key = key_of(call)
        self.calls.append(key)
        if key not in self._working and key not in self._kept:
            self._working[key] = asyncio.create_task(self._work(key, call))

    async def _work(self, key: Key, call: Tree) -> None:
        do = next(name for name in ROLES if name in call)
        said = await self.actor.answer(_heard(do, cast("Tree", call[do])))
        answer: Tree = {"key": key_tree(key), **_as_answer(do, said)}
        self._working.pop(key, None)
        self._kept[key] = answer
        if self.link.is_open:
            await self._send(key, answer, order=said.headers.get("chunk-order", ""))
            await self.link.say("calls", {"credits": {"granted": 1}})

    async def _send(self, key: Key, answer: Tree, *, order: str) -> None:
        body = to_proto(answer, "AnswerFrame")
        size = 1024 if order else CHUNK_BYTES
        if len(body) <= size:
            await self.link.say("calls", {"answer": answer})
            return
        pieces = chunks(key, body, size=size)
        for piece in pieces[::-1] if order == "wrong" else pieces:
            await self.link.say("calls", {"chunk": piece})

    async def _asked(self, link: AttachLink, do: str, *, tree: Tree) -> None:
        said = await self.actor.answer(_heard(do, tree))
        if do == "cancel":
            key: Tree = {"call_id": tree.get("call_id"), "attempt": tree.get("attempt", 0)}
            await link.say("control", {"cancelled": {"key": key, "response": said.tree}})
            return
        outcome = {"get_operation": "state"}.get(do, "cancelled")
        held: Tree = said.tree if "error" in said.tree else {outcome: said.tree}
        await link.say("control", {"operation": {"call_id": tree.get("call_id"), **held}})

    async def _beat(self, link: AttachLink) -> None:
        beat_ms = int(str((link.welcome or {}).get("heartbeat_ms") or 1000))
        while link.is_open:
            if not self._is_mute:
                await link.say("control", {"heartbeat": {}})
            await asyncio.sleep(beat_ms / 1000)


def _heard(do: str, tree: Tree) -> Heard:
    return Heard(do=do, tree=tree, headers={}, at_ms=time.monotonic() * 1000, binding="attach")


def _as_answer(do: str, said: Said) -> Tree:
    if "error" in said.tree:
        return {"error": said.tree}
    other = said.headers.get("answer-as", do)
    return {other: said.tree if other == do else {}}


Order: TypeAlias = Callable[[AttachedActor, Tree], Awaitable[None]]
ORDERS: Final[dict[str, Order]] = {
    "hello": AttachedActor.hello,
    "drop": AttachedActor.drop,
    "end_calls": AttachedActor.end_calls,
    "calls_only": AttachedActor.calls_only,
    "look": AttachedActor.look,
    "grant": AttachedActor.grant,
    "answer": AttachedActor.answer,
    "progress": AttachedActor.progress,
    "raw": AttachedActor.raw,
    "say": AttachedActor.say,
    "hello_again": AttachedActor.hello_again,
    "mute": AttachedActor.mute,
}
