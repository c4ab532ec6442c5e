"""Chunks: cut and put together again, and every fault is kept for a case to look at."""

from conformance_tests.messages.tree import Text, Tree, to_proto
from conformance_tests.raw.attach_bodies import Pieces, call_body, chunks, key_of

KEY = ("call", 2)
ANSWER: Tree = {
    "key": {"call_id": "call", "attempt": 2},
    "execute": {"output": Text(b'"' + b"x" * 5000 + b'"')},
}


def test_a_body_in_chunks_is_the_body_again() -> None:
    pieces, whole = Pieces("AnswerFrame"), None
    for chunk in chunks(KEY, to_proto(ANSWER, "AnswerFrame"), size=1000):
        assert whole is None
        whole = pieces.add(chunk)
    assert whole == ANSWER
    assert pieces.faults == []


def test_chunks_of_several_bodies_may_come_in_turns() -> None:
    pieces = Pieces("AnswerFrame")
    other: Tree = {**ANSWER, "key": {"call_id": "other", "attempt": 1}}
    ours = chunks(KEY, to_proto(ANSWER, "AnswerFrame"), size=3000)
    theirs = chunks(("other", 1), to_proto(other, "AnswerFrame"), size=3000)
    turns = [one for pair in zip(ours, theirs, strict=True) for one in pair]
    found = [whole for chunk in turns if (whole := pieces.add(chunk)) is not None]
    assert found == [ANSWER, other]
    assert pieces.faults == []


def test_a_chunk_out_of_turn_is_a_fault() -> None:
    pieces = Pieces("AnswerFrame")
    first, *_ = chunks(KEY, to_proto(ANSWER, "AnswerFrame"), size=3000)
    pieces.add({**first, "index": 1})
    assert pieces.faults == ["chunk 1 came, 0 was due"]


def test_any_bytes_can_be_put_in_a_call() -> None:
    body = call_body(KEY, "execute", request=b"\xff no message")
    assert body.endswith(b"\xff no message")
    assert key_of({"key": {"call_id": "call"}}) == ("call", 0)
