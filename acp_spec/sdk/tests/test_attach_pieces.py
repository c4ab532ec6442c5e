"""Pieces become a body, or one call fails: wrong order, too much, too many."""

import pytest

from acp_spec.codec.frames import Piece, Unreadable
from acp_spec.codec.refusals import Direction
from acp_spec.model.errors import Reason
from acp_spec.sdk.attach_pieces import Pieces

KEY = ("c", 1)


def pieces(*, max_bytes: int = 10_000, bodies_max: int = 3) -> Pieces:
    return Pieces(max_bytes=max_bytes, bodies_max=bodies_max, direction=Direction.RESPONSE)


def piece(index: int, data: bytes = b"x", *, is_last: bool = False, call_id: str = "c") -> Piece:
    return Piece((call_id, 1), index, is_last, data)


def test_pieces_in_order_become_their_body() -> None:
    book = pieces()
    assert book.add(piece(0, b"a")) is None
    assert book.add(piece(0, b"other", call_id="d")) is None
    assert book.add(piece(1, b"b")) is None
    assert book.add(piece(2, b"c", is_last=True)) == b"abc"
    assert book.add(piece(1, b"!", is_last=True, call_id="d")) == b"other!"


@pytest.mark.parametrize("indexes", [(1,), (0, 0), (0, 2), (0, -1)])
def test_a_wrong_order_fails_the_call_once_and_swallows_the_rest(indexes: tuple[int, ...]) -> None:
    book = pieces()
    said = [book.add(piece(index)) for index in (*indexes, 7, 8)]
    said.append(book.add(piece(9, is_last=True)))
    failed = [one for one in said if one is not None]
    assert len(failed) == 1
    assert isinstance(failed[0], Unreadable)
    assert failed[0].failure.reason == Reason.CONTRACT_VIOLATION.value
    assert book.add(piece(0, b"new", is_last=True)) == b"new"


def test_a_body_over_the_limit_fails_alone_and_is_not_kept() -> None:
    book = pieces(max_bytes=2_000)
    assert book.add(piece(0, b"x" * 3_000)) is None  # the body's own head is allowed for
    failed = book.add(piece(1, b"x" * 3_000))
    assert isinstance(failed, Unreadable)
    assert failed.failure.reason == Reason.PAYLOAD_TOO_LARGE.value
    assert book.add(piece(2, b"x" * 3_000)) is None
    assert book.add(piece(0, b"fine", is_last=True, call_id="d")) == b"fine"
    assert book.add(piece(3, is_last=True)) is None


def test_more_bodies_than_calls_may_be_open_are_refused() -> None:
    book = pieces(bodies_max=1)
    assert book.add(piece(0)) is None
    assert isinstance(book.add(piece(0, call_id="d")), Unreadable)
    assert book.add(piece(1, is_last=True)) == b"xx"
