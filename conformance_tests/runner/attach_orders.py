"""What a case orders at the suite's end of attach (`do: attach`), and the facts it gets back.

    {do: attach, attach: {order: drop}}

An order that ends streams waits until the component has come back, and answers with its new hello;
where it does not come, whatever still stands is ended too, so that later cases have a component.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias, cast

from conformance_tests.messages.tree import Tree, Value
from conformance_tests.raw.attach_bodies import Key
from conformance_tests.raw.attach_end import HEARTBEAT_MS, UNAVAILABLE, Link
from conformance_tests.runner.answers import Answer
from conformance_tests.runner.attach_peer import AttachPeer
from conformance_tests.runner.peers import Ask

BACK_WITHIN_S: Final = 7.0
"""Over the longest pause between two dials that a component may make."""
SILENT_S: Final = HEARTBEAT_MS * 3 / 1000
GARBAGE: Final = bytes.fromhex("0affffffff0f")
UNKNOWN_CONTROL: Final = bytes.fromhex("0a039a0600")
UNKNOWN_CALLS: Final = bytes.fromhex("9a0600")
STILL_MS: Final = 1500

Order: TypeAlias = Callable[[AttachPeer, Tree], Awaitable[Tree]]


class OrderedPeer(AttachPeer):
    """An attached component that may also be given orders."""

    async def ask(self, ask: Ask) -> Answer:
        """Raises Unreachable when nothing is attached, and comes in time."""
        if ask.do != "attach":
            return await super().ask(ask)
        tree = await _ORDERS[str(ask.how.get("order", "look"))](self, ask.how)
        return Answer(binding="attach", do="attach", message="", ok=True, tree=tree)


def _facts(peer: AttachPeer, link: Link) -> Tree:
    """Everything a case may look at."""
    hellos = sum(frame.name == "hello" for frame in link.frames)
    beats = [frame.at_ms for frame in link.frames if frame.name == "heartbeat"]
    return {
        "link": link.number,
        "first": link.first,
        "hellos": hellos,
        "hello": {"in_flight": [], "finished_unacked": [], **link.hello},
        "attachment": "right" if link.attachment_id == link.wanted_id else link.attachment_id,
        "versions": cast("Value", _versions(link)),
        "beats": len(beats),
        "credits": link.credits,
        "largest_frame": max(
            (f.size for one in peer.end.links for f in one.frames if f.stream == "calls"), default=0
        ),
        "chunk_faults": cast("Value", peer.pieces.faults),
    }


def _versions(link: Link) -> list[str]:
    return [stated.get("acp-version", "") for stated in (link.metadata, link.calls_metadata)]


async def _look(peer: AttachPeer, how: Tree) -> Tree:
    return _facts(peer, await peer.linked())


async def _beats(peer: AttachPeer, how: Tree) -> Tree:
    """Heartbeats in some time."""
    link = await peer.linked()
    before = sum(frame.name == "heartbeat" for frame in link.frames)
    await asyncio.sleep(SILENT_S)
    after = sum(frame.name == "heartbeat" for frame in link.frames)
    return {"beats": after - before}


async def _answers(peer: AttachPeer, how: Tree) -> Tree:
    """How often a call was answered, in all and on the newest link; waits for `at_least` there."""
    key, newest = _key(how), peer.end.links[-1].number

    def now() -> int:
        return sum(number == newest for number, _ in peer.answered.get(key, []))

    least = int(str(how.get("at_least", 0)))
    await peer.end.until(lambda: now() >= least, within_s=BACK_WITHIN_S)
    return {"count": len(peer.answered.get(key, [])), "now": now()}


async def _acknowledge(peer: AttachPeer, how: Tree) -> Tree:
    key = _key(how)
    peer.withheld.discard(key)
    peer.acknowledge(await peer.linked(), key)
    return {}


def _key(how: Tree) -> Key:
    return (str(how["of"]), int(cast("int", how.get("attempt", 1))))


async def _drop(peer: AttachPeer, how: Tree) -> Tree:
    link = await peer.linked()
    link.end(why=UNAVAILABLE)
    return await _back(peer, link)


async def _drop_calls(peer: AttachPeer, how: Tree) -> Tree:
    link = await peer.linked()
    link.end("calls")
    return await _back(peer, link)


async def _drop_control(peer: AttachPeer, how: Tree) -> Tree:
    link = await peer.linked()
    link.end("control")
    return await _back(peer, link)


async def _garbage(peer: AttachPeer, how: Tree) -> Tree:
    link = await peer.linked()
    link.out["calls"].put_nowait(GARBAGE)
    return await _back(peer, link)


async def _silence(peer: AttachPeer, how: Tree) -> Tree:
    link = await peer.linked()
    link.is_answering = False
    return await _back(peer, link)


async def _unknown(peer: AttachPeer, how: Tree) -> Tree:
    """Frames of the future on both streams."""
    link = await peer.linked()
    link.out["control"].put_nowait(UNKNOWN_CONTROL)
    link.call(UNKNOWN_CALLS)
    return {"link": link.number}


async def _drain(peer: AttachPeer, how: Tree) -> Tree:
    """Say that the gateway leaves; the streams end a little later."""
    link = await peer.linked()
    link.say({"drain": {"grace_ms": 200}})
    await asyncio.sleep(0.2)
    link.end(why=UNAVAILABLE)
    return await _back(peer, link)


async def _refuse(peer: AttachPeer, how: Tree) -> Tree:
    """End the streams and refuse the next hello; counts the hellos that follow."""
    link = await peer.linked()
    retryable = bool(how["retryable"])
    code = "UNAVAILABLE" if retryable else "PERMISSION_DENIED"
    error = {**UNAVAILABLE, "code": code, "reason": code, "retryable": retryable}
    peer.end.refusals.append({**error, "message": "Not now." if retryable else "Never."})
    before = peer.end.hellos
    link.end(why=UNAVAILABLE)
    refused = await peer.end.until(lambda: not peer.end.refusals, within_s=BACK_WITHIN_S)
    peer.end.refusals.clear()
    if retryable:
        return {**await _back(peer, link), "refused": refused}
    await asyncio.sleep(STILL_MS / 1000)
    return {"refused": refused, "hellos_after": peer.end.hellos - before - 1}


async def _back(peer: AttachPeer, old: Link) -> Tree:
    """Wait until the component is there again; `back` false: it did not come by itself."""
    end = peer.end

    def is_back() -> bool:
        return end.link is not None and end.link is not old

    if await end.until(is_back, within_s=BACK_WITHIN_S):
        new = end.link
        assert new is not None
        return {**_facts(peer, new), "back": True, "ended": cast("Value", sorted(old.ended))}
    ended = sorted(old.ended)
    old.end(why=UNAVAILABLE)
    await end.until(is_back, within_s=BACK_WITHIN_S)
    return {"back": False, "ended": cast("Value", ended)}


async def _granted(peer: AttachPeer, how: Tree) -> Tree:
    """Credits and calls at work, against what the card allows.

    Looked at when all is still: a grant may pass the chunks of the answer that it follows.
    """
    link = await peer.linked()
    limits = cast("Tree", cast("Tree", link.hello.get("card", {})).get("limits", {}))
    stated = limits.get("max_concurrency")
    return {"over": max(0, link.credits + len(peer.open) - int(str(stated))) if stated else 0}


_ORDERS: Final[dict[str, Order]] = {
    "look": _look,
    "beats": _beats,
    "answers": _answers,
    "acknowledge": _acknowledge,
    "drop": _drop,
    "drop_calls": _drop_calls,
    "drop_control": _drop_control,
    "garbage": _garbage,
    "silence": _silence,
    "unknown": _unknown,
    "drain": _drain,
    "refuse": _refuse,
    "granted": _granted,
}
