"""Whatever an error holds, its trailer fits, and what decides about a retry survives."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_spec.bindings.errors import error
from acp_spec.codec.error_trailer import decode_trailer, encode_trailer
from acp_spec.model.calls import ErrorBody, LlmCall
from acp_spec.model.enums import SideEffect
from acp_spec.model.errors import Reason
from acp_spec.model.payload import payload


@given(
    message=st.integers(0, 20_000).map(lambda n: "é" * n),
    details=st.integers(0, 20_000),
    calls=st.integers(0, 300),
)
@settings(max_examples=40, deadline=None)
def test_a_trailer_is_at_most_4_kib(message: str, details: int, calls: int) -> None:
    failure = msgspec.structs.replace(
        error(Reason.TIMEOUT, message, side_effect=SideEffect.PERFORMED, retry_after_ms=7),
        details=payload(b'"' + b"x" * details + b'"'),
    )
    llm_calls = tuple(LlmCall(id=f"call-{n}") for n in range(calls))
    data = encode_trailer(ErrorBody(error=failure, llm_calls=llm_calls, retries_spent=2))
    assert len(data) <= 4096
    read = decode_trailer(4, "", trailer=data)
    assert read.retries_spent == 2
    assert (read.error.code, read.error.reason) == (failure.code, failure.reason)
    assert (read.error.side_effect, read.error.retry_after_ms) == (SideEffect.PERFORMED, 7)
    assert read.error.details_truncated is (bytes(read.error.details) != bytes(failure.details))


def test_an_unreadable_trailer_leaves_the_status() -> None:
    failure = decode_trailer(14, "gone", trailer=b"\xff\xff").error
    assert failure.reason == Reason.UNAVAILABLE.value
    assert "could not be read" in failure.message


def test_no_trailer_leaves_the_status() -> None:
    assert decode_trailer(12, "no such method", trailer=None).error.side_effect is SideEffect.NONE
