"""Peers that break one rule of attach: what a component says and hears on its two streams."""

import asyncio
import time
from collections.abc import Callable
from typing import Final, cast

from acp_spec.bindings.errors import error
from acp_spec.model.errors import AcpFailure, Reason
from conformance_tests.broken.attach_layer import AttachRule, Frames
from conformance_tests.broken.peer import ATTACHED_REQUEST_BYTES, BrokenPeer
from conformance_tests.messages.tree import Text, Tree
from conformance_tests.raw.attach_bodies import Key, Pieces, key_of, key_tree

SULKS_S: Final = 9.0
ONE_BYTE_MORE: Final = str(ATTACHED_REQUEST_BYTES + 1)
"""As PAY-012 sends it, beside all others: to end the streams there would disturb them."""


def _held(frame: Tree, name: str) -> Tree | None:
    found = frame.get(name)
    return found if isinstance(found, dict) else None


def _says(name: str, change: Callable[[Tree], Frames]) -> Callable[[], AttachRule]:
    """Frames of one kind are said otherwise; the rule keeps nothing."""

    def says(stream: str, frame: Tree) -> Frames:
        return change(frame) if name in frame else [frame]

    return lambda: AttachRule(says=says)


def _beat_first(frame: Tree) -> Frames:
    return [{"heartbeat": {}}, frame]


def _another_instance() -> AttachRule:
    number = [0]

    def says(stream: str, frame: Tree) -> Frames:
        hello = _held(frame, "hello")
        if hello is None:
            return [frame]
        number[0] += 1
        return [{"hello": {**hello, "instance_id": f"instance-{number[0]}"}}]

    return AttachRule(says=says)


def _sulks() -> AttachRule:
    rule = AttachRule()

    async def dials() -> None:
        if "Not now." in rule.refused:
            rule.refused.clear()
            await asyncio.sleep(SULKS_S)

    rule.dials = dials
    return rule


def _grants_more() -> AttachRule:
    def says(stream: str, frame: Tree) -> Frames:
        granted = _held(frame, "credits")
        number = int(str(granted.get("granted", 0))) if granted else 0
        return [{"credits": {"granted": number + 1}}] if number > 8 else [frame]

    return AttachRule(says=says)


def _forgets(field: str) -> Callable[[Tree], Frames]:
    def change(frame: Tree) -> Frames:
        hello = cast("Tree", frame["hello"])
        return [{"hello": {k: v for k, v in hello.items() if k != field}}]

    return change


def _gives_up_on_a_drop() -> AttachRule:
    """What was in flight at a hello ends as cancelled."""
    listed: set[Key] = set()

    def says(stream: str, frame: Tree) -> Frames:
        hello, answer = _held(frame, "hello"), _held(frame, "answer")
        if hello is not None:
            inside = cast("list[Tree]", hello.get("in_flight", []))
            listed.update(key_of({"key": one}) for one in inside)
        if answer is not None and key_of(answer) in listed and _slept(answer, 1200):
            return [_cancelled(answer)]
        return [frame]

    return AttachRule(says=says)


def _slept(answer: Tree, ms: int) -> bool:
    execute = _held(answer, "execute") or {}
    output = execute.get("output")
    return isinstance(output, Text) and f'"slept_ms":{ms}'.encode() in output.data


def _cancelled(answer: Tree) -> Tree:
    error: Tree = {"code": "CANCELLED", "reason": "CANCELLED", "message": "The stream dropped."}
    return {"answer": {"key": answer["key"], "error": {"error": error}}}


def _stops_at_a_drain() -> AttachRule:
    drained = [False]

    def hears(stream: str, frame: Tree) -> Frames:
        drained[0] = drained[0] or "drain" in frame
        return [frame]

    def says(stream: str, frame: Tree) -> Frames:
        answer = _held(frame, "answer")
        is_meant = answer is not None and drained[0] and _slept(answer, 1300)
        return [_cancelled(answer)] if answer and is_meant else [frame]

    return AttachRule(says=says, hears=hears)


def _answers_once() -> AttachRule:
    """What was not acknowledged is not sent again."""
    said: set[Key] = set()

    def says(stream: str, frame: Tree) -> Frames:
        answer = _held(frame, "answer")
        if answer is None:
            return [frame]
        known = key_of(answer) in said
        said.add(key_of(answer))
        return [] if known else [frame]

    return AttachRule(says=says)


def _lists_what_is_done() -> AttachRule:
    done: list[Key] = []

    def hears(stream: str, frame: Tree) -> Frames:
        acknowledged = _held(frame, "acknowledged")
        if acknowledged is not None:
            done.append(key_of(acknowledged))
        return [frame]

    def says(stream: str, frame: Tree) -> Frames:
        hello = _held(frame, "hello")
        if hello is None or not done:
            return [frame]
        listed = [*cast("list[Tree]", hello.get("finished_unacked", [])), *map(key_tree, done[-9:])]
        return [{"hello": {**hello, "finished_unacked": list(listed)}}]

    return AttachRule(says=says, hears=hears)


def _runs_twice() -> AttachRule:
    seen: set[Key] = set()
    twice: set[Key] = set()

    def hears(stream: str, frame: Tree) -> Frames:
        call = _held(frame, "call")
        if call is not None and "acp.test.sleep" in str(call):
            (twice if key_of(call) in seen else seen).add(key_of(call))
        return [frame]

    def says(stream: str, frame: Tree) -> Frames:
        answer = _held(frame, "answer")
        return [frame, frame] if answer and key_of(answer) in twice else [frame]

    return AttachRule(says=says, hears=hears)


def _whole() -> AttachRule:
    """A large answer is one frame."""
    pieces = Pieces("AnswerFrame")

    def says(stream: str, frame: Tree) -> Frames:
        chunk = _held(frame, "chunk")
        if chunk is None:
            return [frame]
        whole = pieces.add(chunk)
        return [{"answer": whole}] if whole is not None else []

    return AttachRule(says=says)


def _counts_from_one(frame: Tree) -> Frames:
    chunk = cast("Tree", frame["chunk"])
    return [{"chunk": {**chunk, "index": int(str(chunk.get("index", 0))) + 1}}]


def _mixes_chunks() -> AttachRule:
    """A body in chunks that comes while another does is not put together."""
    open_: set[Key] = set()
    mixed: set[Key] = set()
    over: set[Key] = set()

    def hears(stream: str, frame: Tree) -> Frames:
        chunk = _held(frame, "chunk")
        if chunk is None:
            return [frame]
        key, index = key_of(chunk), int(str(chunk.get("index", 0)))
        if chunk.get("last"):
            open_.discard(key)
            over.add(key)
        elif index == 0 and open_:
            mixed.add(key)
        elif index == 0 and key not in over:
            open_.add(key)
        return [{"chunk": {**chunk, "index": index + 1}}] if key in mixed else [frame]

    return AttachRule(hears=hears)


def _ends() -> AcpFailure:
    """Raised where streams are read or written, it ends both."""
    return AcpFailure(error(Reason.UNAVAILABLE, "the rule ends the streams"))


def _ends_at(reason: Reason, text: str, *, but: str = "none") -> Callable[[], AttachRule]:
    """Instead of failing that call alone, the streams end; the answer comes on the next ones.

    Only for a call in chunks whose refusal says `text`, and does not say `but`.
    """

    def make() -> AttachRule:
        in_chunks: set[Key] = set()

        def hears(stream: str, frame: Tree) -> Frames:
            if (chunk := _held(frame, "chunk")) is not None:
                in_chunks.add(key_of(chunk))
            return [frame]

        def says(stream: str, frame: Tree) -> Frames:
            answer = _held(frame, "answer") or {}
            said = _held(_held(answer, "error") or {}, "error") or {}
            message = str(said.get("message"))
            is_meant = said.get("reason") == reason.value and text in message and but not in message
            if is_meant and key_of(answer) in in_chunks:
                in_chunks.discard(key_of(answer))
                raise _ends()
            return [frame]

        return AttachRule(says=says, hears=hears)

    return make


def _ends_at_the_unknown() -> AttachRule:
    def hears(stream: str, frame: Tree) -> Frames:
        if not frame:
            raise _ends()
        return [frame]

    return AttachRule(hears=hears)


def _one_beat() -> AttachRule:
    until = [time.monotonic() + 0.05]

    def says(stream: str, frame: Tree) -> Frames:
        if "hello" in frame:
            until[0] = time.monotonic() + 0.05
        return [] if "heartbeat" in frame and time.monotonic() > until[0] else [frame]

    return AttachRule(says=says)


def _another_attempt(frame: Tree) -> Frames:
    outcome = cast("Tree", frame["cancelled"])
    key = key_of(outcome)
    if key[1] != 7:
        return [frame]
    return [{"cancelled": {**outcome, "key": key_tree((key[0], 1))}}]


def _another_role() -> AttachRule:
    marked: set[Key] = set()

    def hears(stream: str, frame: Tree) -> Frames:
        call = _held(frame, "call")
        if call is not None and "'case': 'role'" in str(call):
            marked.add(key_of(call))
        return [frame]

    def says(stream: str, frame: Tree) -> Frames:
        answer = _held(frame, "answer")
        if answer is None or "plan" not in answer or key_of(answer) not in marked:
            return [frame]
        return [{"answer": {"key": answer["key"], "observe": {}}}]

    return AttachRule(says=says, hears=hears)


PEERS: Final = (
    BrokenPeer(
        requirement="ATT-001",
        does="beats before it says hello",
        because=r"at: first: expected 'hello', got 'heartbeat'",
        attach=_says("hello", _beat_first),
    ),
    BrokenPeer(
        requirement="ATT-002",
        does="dials without acp-version",
        because=r"at: versions/0: '' is not like",
        attach=lambda: AttachRule(metadata=False),
    ),
    BrokenPeer(
        requirement="ATT-003",
        does="is another instance each time",
        because=r"at: hello/instance_id: expected 'instance-\d+', got 'instance-\d+'",
        attach=_another_instance,
    ),
    BrokenPeer(
        requirement="ATT-004",
        does="does not notice that the calls stream has ended",
        because=r"at: back: expected True, got False",
        attach=lambda: AttachRule(holds_on=True),
    ),
    BrokenPeer(
        requirement="ATT-005",
        does="gives up when it is refused for now",
        because=r"at: back: expected True, got False",
        attach=_sulks,
    ),
    BrokenPeer(
        requirement="ATT-006",
        does="dials again though it was refused for good",
        because=r"at: hellos_after: expected 0, got \d",
        attach=lambda: AttachRule(stays=True),
    ),
    BrokenPeer(
        requirement="ATT-007",
        does="does not say which attachment its calls stream belongs to",
        because=r"at: attachment: expected 'right', got ''",
        attach=lambda: AttachRule(
            first=lambda tree: {k: v for k, v in tree.items() if k != "attachment_id"}
        ),
    ),
    BrokenPeer(
        requirement="ATT-008",
        does="grants more than its card allows",
        because=r"at: over: expected 0, got \d",
        attach=_grants_more,
    ),
    BrokenPeer(
        requirement="ATT-009",
        does="does not say what it works on",
        because=r"at: hello/in_flight: \[\] lacks",
        attach=_says("hello", _forgets("in_flight")),
    ),
    BrokenPeer(
        requirement="ATT-010",
        does="stops its calls when the streams drop",
        because=r"ok: expected success, got attach CANCELLED",
        attach=_gives_up_on_a_drop,
    ),
    BrokenPeer(
        requirement="ATT-011",
        does="does not say which answers it keeps",
        because=r"at: hello/finished_unacked: \[\] lacks",
        attach=_says("hello", _forgets("finished_unacked")),
    ),
    BrokenPeer(
        requirement="ATT-012",
        does="does not send a kept answer again",
        because=r"at: now: expected 1, got 0",
        attach=_answers_once,
    ),
    BrokenPeer(
        requirement="ATT-013",
        does="lists what was acknowledged",
        because=r"at: hello/finished_unacked: .* holds",
        attach=_lists_what_is_done,
    ),
    BrokenPeer(
        requirement="ATT-014",
        does="runs a call that it works on again",
        because=r"at: count: expected 1, got 2",
        attach=_runs_twice,
    ),
    BrokenPeer(
        requirement="ATT-015",
        does="writes a large answer as one frame",
        because=r"at: largest_frame: \d+ is more than 262144",
        attach=_whole,
    ),
    BrokenPeer(
        requirement="ATT-016",
        does="counts chunks from 1",
        because=r"at: chunk_faults: expected 0 items, got",
        attach=_says("chunk", _counts_from_one),
    ),
    BrokenPeer(
        requirement="ATT-017",
        does="cannot read the chunks of two calls in turns",
        because=r"at: output/[ab] is absent",
        attach=_mixes_chunks,
    ),
    BrokenPeer(
        requirement="ATT-018",
        does="ends the streams at a chunk in a wrong order",
        because=r"at: link: expected \d+, got \d+",
        attach=_ends_at(Reason.INVALID_REQUEST, "was due"),
    ),
    BrokenPeer(
        requirement="ATT-019",
        does="ends the streams at a call that is too large",
        because=r"at: link: expected \d+, got \d+",
        attach=_ends_at(Reason.PAYLOAD_TOO_LARGE, "", but=ONE_BYTE_MORE),
    ),
    BrokenPeer(
        requirement="ATT-020",
        does="does not notice bytes that are no message",
        because=r"at: back: expected True, got False",
        attach=lambda: AttachRule(deaf=True),
    ),
    BrokenPeer(
        requirement="ATT-021",
        does="ends the streams at a frame it does not know",
        because=r"at: link: expected \d+, got \d+",
        attach=_ends_at_the_unknown,
    ),
    BrokenPeer(
        requirement="ATT-022",
        does="beats once",
        because=r"at: beats: 0 is less than 1",
        attach=_one_beat,
    ),
    BrokenPeer(
        requirement="ATT-023",
        does="does not notice that the gateway has fallen silent",
        because=r"at: back: expected True, got False",
        attach=lambda: AttachRule(beats=True),
    ),
    BrokenPeer(
        requirement="ATT-024",
        does="answers a cancel for another attempt",
        because=r"at: @attempt: expected 7, got 1",
        attach=_says("cancelled", _another_attempt),
    ),
    BrokenPeer(
        requirement="ATT-025",
        does="stops its calls when the gateway leaves",
        because=r"ok: expected success, got attach CANCELLED",
        attach=_stops_at_a_drain,
    ),
    BrokenPeer(
        requirement="ATT-026",
        does="answers a plan in another role",
        because=r"answer_of_its_role: plan was answered as observe",
        attach=_another_role,
    ),
)
