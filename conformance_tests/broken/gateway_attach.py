"""Broken gateways for attach: what components that attached are sent, and how their streams end.

Calls of the cases that a rule is about carry a label, `att`, so that a rule touches no other case.
"""

from collections.abc import Callable
from typing import Final, cast

from conformance_tests.broken.gateway import BrokenGateway
from conformance_tests.broken.gateway_api import SOMEBODY
from conformance_tests.broken.meant import trajectory
from conformance_tests.broken.rules import after, instead, put, saying
from conformance_tests.messages.tree import Text, Tree
from conformance_tests.raw.attach_bodies import Key, Pieces, key_of, key_tree
from conformance_tests.stage.attach_link import Between, Frames

GARBAGE: Final = bytes.fromhex("0affffffff0f")


def _held(frame: Tree, name: str) -> Tree | None:
    found = frame.get(name)
    return found if isinstance(found, dict) else None


def _label(call: Tree) -> str:
    execute = _held(call, "execute") or {}
    labels = _held(_held(execute, "context") or {}, "labels") or {}
    return str(labels.get("att", ""))


def _hears(name: str, change: Callable[[Tree], Frames]) -> Callable[[], Between]:
    """Frames of one kind are heard otherwise."""
    return lambda: Between(hears=lambda stream, frame: change(frame) if name in frame else [frame])


def _says(name: str, change: Callable[[Tree], Frames]) -> Callable[[], Between]:
    return lambda: Between(says=lambda stream, frame: change(frame) if name in frame else [frame])


def _swallow(frame: Tree) -> Frames:
    return []


def _ends_with(text: str, code: str, *, but: str = "not that") -> Callable[[], Between]:
    """An end whose message says `text`, and not `but`, has another code."""

    def ended(error: Tree) -> Tree:
        message = str(error["message"])
        return {**error, "code": code} if text in message and but not in message else error

    return lambda: Between(ended=ended)


def _short_welcome(frame: Tree) -> Frames:
    welcome = cast("Tree", frame["welcome"])
    return [{"welcome": {k: v for k, v in welcome.items() if k != "reattach_grace_ms"}}]


def _one_more(frame: Tree) -> Frames:
    call = cast("Tree", frame["call"])
    if _label(call) != "second":
        return [frame]
    call_id, attempt = key_of(call)
    return [frame, {"call": {**call, "key": key_tree((f"{call_id}-more", attempt))}}]


def _all_the_time(frame: Tree) -> Frames:
    call = cast("Tree", frame["call"])
    if _label(call) != "left":
        return [frame]
    execute = cast("Tree", call["execute"])
    context = {**cast("Tree", execute["context"]), "timeout_ms": 4321}
    return [{"call": {**call, "execute": {**execute, "context": context}}}]


def _acknowledges_what_it_asked() -> Between:
    asked: set[Key] = set()

    def hears(stream: str, frame: Tree) -> Frames:
        call, acknowledged = _held(frame, "call"), _held(frame, "acknowledged")
        if call is not None:
            asked.add(key_of(call))
        return [] if acknowledged is not None and key_of(acknowledged) not in asked else [frame]

    return Between(hears=hears)


def _progress_as_answer(frame: Tree) -> Frames:
    answer = cast("Tree", frame["answer"])
    if "progress" not in answer:
        return [frame]
    return [{"answer": {"key": answer["key"], "execute": {"output": Text(b'{"value":1}')}}}]


def _listing(label: str, *, listed: bool) -> Callable[[], Between]:
    """A hello lists, or does not list, the calls with that label, whatever is so."""

    def make() -> Between:
        meant: set[Key] = set()

        def hears(stream: str, frame: Tree) -> Frames:
            call = _held(frame, "call")
            if call is not None and _label(call) == label:
                meant.add(key_of(call))
            return [frame]

        def says(stream: str, frame: Tree) -> Frames:
            hello = _held(frame, "hello")
            if hello is None:
                return [frame]
            stated = cast("list[Tree]", hello.get("in_flight", []))
            kept = [one for one in stated if key_of({"key": one}) not in meant]
            mine = [key_tree(key) for key in meant] if listed else []
            return [{"hello": {**hello, "in_flight": [*kept, *mine]}}]

        return Between(hears=hears, says=says)

    return make


def _one_frame() -> Between:
    pieces = Pieces("CallFrame")

    def hears(stream: str, frame: Tree) -> Frames:
        chunk = _held(frame, "chunk")
        if chunk is None:
            return [frame]
        whole = pieces.add(chunk)
        return [{"call": whole}] if whole is not None else []

    return Between(hears=hears)


def _loses_a_chunk(frame: Tree) -> Frames:
    chunk = cast("Tree", frame["chunk"])
    data = chunk.get("data")
    is_large = isinstance(data, Text) and len(data.data) > 100_000
    return [{"chunk": {**chunk, "index": 5}}] if is_large else [frame]


def _takes_any_role(frame: Tree) -> Frames:
    answer = cast("Tree", frame["answer"])
    if answer.get("plan") != {}:
        return [frame]
    return [{"answer": {"key": answer["key"], "execute": {"output": Text(b'{"value":1}')}}}]


def _forgets_the_operation(frame: Tree) -> Frames:
    operation = cast("Tree", frame["operation"])
    error: Tree = {"code": "NOT_FOUND", "reason": "NOT_FOUND", "message": "Never asked."}
    return [{"operation": {"call_id": operation["call_id"], "error": error}}]


GATEWAYS: Final = (
    BrokenGateway(
        requirement="ATT-030",
        does="does not say how long it waits for a return",
        because=r"at: welcome/reattach_grace_ms is absent",
        between=_hears("welcome", _short_welcome),
    ),
    BrokenGateway(
        requirement="ATT-031",
        does="has its own code for a stream without hello",
        because=r"at: error/code: expected 'INVALID_ARGUMENT', got 'ABORTED'",
        between=_ends_with("hello", "ABORTED", but="say hello again"),
    ),
    BrokenGateway(
        requirement="ATT-032",
        does="has its own code for a lower incarnation",
        because=r"at: error/code: expected 'ALREADY_EXISTS', got 'NOT_FOUND'",
        between=_ends_with("a higher incarnation", "NOT_FOUND"),
    ),
    BrokenGateway(
        requirement="ATT-033",
        does="has its own code for a stream that was taken over",
        because=r"at: links/0/error/code: expected 'ALREADY_EXISTS', got 'ABORTED'",
        between=_ends_with("attached anew", "ABORTED"),
    ),
    BrokenGateway(
        requirement="ATT-034",
        does="has its own code for an unknown attachment",
        because=r"at: error/code: expected 'NOT_FOUND', got 'INTERNAL'",
        between=_ends_with("no attachment of that id", "INTERNAL"),
    ),
    BrokenGateway(
        requirement="ATT-035",
        does="keeps control open when the calls stream has ended",
        because=r"at: ended: expected \['calls', 'control'\], got \['calls'\]",
        between=lambda: Between(lasts=True),
    ),
    BrokenGateway(
        requirement="ATT-036",
        does="writes one call more than it has credits",
        because=r"at: calls: expected 2 items, got 3",
        between=_hears("call", _one_more),
    ),
    BrokenGateway(
        requirement="ATT-037",
        does="gives a call that waited all its time",
        because=r"at: calls/0/context/timeout_ms: 4321 is more than 4100",
        between=_hears("call", _all_the_time),
    ),
    BrokenGateway(
        requirement="ATT-038",
        does="acknowledges only what it waits for",
        because=r"at: acks: .* lacks",
        between=_acknowledges_what_it_asked,
    ),
    BrokenGateway(
        requirement="ATT-039",
        does="takes progress for an answer and acknowledges it",
        because=r"at: acks: expected 0 items, got 1",
        between=_says("answer", _progress_as_answer),
    ),
    BrokenGateway(
        requirement="ATT-040",
        does="writes a call again that was listed",
        because=r"at: calls: expected 1 items, got 2",
        between=_listing("listed", listed=False),
    ),
    BrokenGateway(
        requirement="ATT-041",
        does="takes for granted that a call has arrived",
        # Not sent again; sooner or later it is given up, and repeated as another attempt.
        because=r"at: calls(: expected 2 items, got 1|/1/attempt: expected 1, got 2)",
        between=_listing("again", listed=True),
    ),
    BrokenGateway(
        requirement="ATT-042",
        does="thinks that a restarted component did nothing",
        because=r"at: calls/0/side_effect: expected one of UNKNOWN, got 'NONE'",
        client=after(trajectory, put("calls/0/side_effect", "NONE"), sees=b"was restarted"),
    ),
    BrokenGateway(
        requirement="ATT-043",
        does="thinks that a component that is gone did nothing",
        because=r"at: calls/0/side_effect: expected one of UNKNOWN, got 'NONE'",
        client=after(trajectory, put("calls/0/side_effect", "NONE"), sees=b"did not come back"),
    ),
    BrokenGateway(
        requirement="ATT-044",
        does="forgets over a restart what it has sent",
        because=r"at: (calls: expected 1 items, got 2|status: expected 'SUCCEEDED', got 'FAILED')",
        between=_listing("restart", listed=False),
    ),
    BrokenGateway(
        requirement="ATT-045",
        does="writes a large call as one frame",
        because=r"at: largest_frame: \d+ is more than 262144",
        between=_one_frame,
    ),
    BrokenGateway(
        requirement="ATT-046",
        does="cannot put a large answer together",
        because=r"at: status: expected 'SUCCEEDED', got 'FAILED'",
        between=_says("chunk", _loses_a_chunk),
    ),
    BrokenGateway(
        requirement="ATT-047",
        does="takes an answer of another role",
        because=r"at: status: expected 'FAILED', got 'SUCCEEDED'",
        between=_says("answer", _takes_any_role),
    ),
    BrokenGateway(
        requirement="ATT-048",
        does="does not notice bytes that are no message",
        because=r"at: ended: expected \['calls', 'control'\], got \[\]",
        between=lambda: Between(raw=lambda data: b"" if data == GARBAGE else data),
    ),
    BrokenGateway(
        requirement="ATT-049",
        does="answers no heartbeat",
        because=r"at: beats: 0 is less than 1",
        between=_hears("heartbeat", _swallow),
    ),
    BrokenGateway(
        requirement="ATT-050",
        does="has its own code for silence",
        because=r"at: error/code: expected 'DEADLINE_EXCEEDED', got 'ABORTED'",
        between=_ends_with("no heartbeat", "ABORTED"),
    ),
    BrokenGateway(
        requirement="ATT-051",
        does="does not answer a drain",
        because=r"at: drained: expected True, got False",
        between=_hears("drain", _swallow),
    ),
    BrokenGateway(
        requirement="ATT-052",
        does="still shows a component that has left",
        because=r"status: expected status 404, got 200",
        client=instead(lambda r: r.headers.get("x-case") == "drained", saying(SOMEBODY)),
    ),
    BrokenGateway(
        requirement="ATT-053",
        does="cancels nothing at components that attached",
        because=r"at: count: 0 is less than 1",
        between=_hears("cancel", _swallow),
    ),
    BrokenGateway(
        requirement="ATT-054",
        does="does not understand where an operation stands",
        because=r"at: status: expected 'SUCCEEDED', got 'FAILED'",
        between=_says("operation", _forgets_the_operation),
    ),
    BrokenGateway(
        requirement="ATT-055",
        does="ends the streams at a frame it does not know",
        because=r"at: open: expected True, got False",
        between=lambda: Between(raw=lambda data: GARBAGE if data.endswith(b"\x9a\x06\0") else data),
    ),
    BrokenGateway(
        requirement="ATT-056",
        does="has its own code for a token without the scope",
        because=r"at: error/code: expected 'PERMISSION_DENIED', got 'UNAUTHENTICATED'",
        between=_ends_with("scope", "UNAUTHENTICATED"),
    ),
)
