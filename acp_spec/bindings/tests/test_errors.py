"""The table of errors is complete, and says what SPEC section 5 says."""

import pytest

from acp_spec.bindings.errors import (
    CODE_OF_GRPC,
    ERRORS,
    GRPC_OF_CODE,
    HTTP_OF_CODE,
    MESSAGE_CHARACTERS_MAX,
    REASON_OF_CODE,
    REASON_OF_HTTP,
    effective_side_effect,
    error,
    from_grpc,
    from_http,
    grpc_status,
    http_status,
    passed_on,
)
from acp_spec.model.calls import ExecuteResponse, Operation, PlanResponse
from acp_spec.model.enums import Boundary, Effect, SideEffect
from acp_spec.model.errors import AcpError, Code, Reason

# The rows that the protocol fixes, as they stand there.
FIXED = {
    "INVALID_REQUEST": ("INVALID_ARGUMENT", 400),
    "SEMANTIC_MISMATCH": ("INVALID_ARGUMENT", 422),
    "CONTRACT_VIOLATION": ("INVALID_ARGUMENT", 422),
    "PLAN_REJECTED": ("FAILED_PRECONDITION", 422),
    "LOOP_LIMIT": ("FAILED_PRECONDITION", 422),
    "RETRY_UNSAFE": ("FAILED_PRECONDITION", 422),
    "STALE_STATE": ("ABORTED", 409),
    "STALE_ATTEMPT": ("ABORTED", 409),
    "CALL_IN_PROGRESS": ("ABORTED", 409),
    "IDEMPOTENCY_CONFLICT": ("ALREADY_EXISTS", 409),
    "RATE_LIMITED": ("RESOURCE_EXHAUSTED", 429),
    "BUDGET_EXHAUSTED": ("RESOURCE_EXHAUSTED", 429),
    "SANDBOX_LIMIT": ("RESOURCE_EXHAUSTED", 429),
    "PAYLOAD_TOO_LARGE": ("RESOURCE_EXHAUSTED", 413),
    "BREAKER_OPEN": ("UNAVAILABLE", 503),
    "NO_COMPONENT": ("UNAVAILABLE", 503),
    "OVERLOADED": ("UNAVAILABLE", 503),
    "TIMEOUT": ("DEADLINE_EXCEEDED", 504),
    "EVENTS_EXPIRED": ("OUT_OF_RANGE", 410),
    "VERSION_UNSUPPORTED": ("FAILED_PRECONDITION", 400),
    "LOOP": ("FAILED_PRECONDITION", 400),
}


def test_every_reason_has_a_row() -> None:
    assert set(ERRORS) == set(Reason)


def test_every_code_has_an_http_status_a_grpc_status_and_a_reason() -> None:
    assert set(HTTP_OF_CODE) == set(GRPC_OF_CODE) == set(REASON_OF_CODE) == set(Code)


@pytest.mark.parametrize("reason", FIXED)
def test_the_rows_of_the_protocol_stand_unchanged(reason: str) -> None:
    row = ERRORS[Reason(reason)]
    assert (row.code.value, row.http) == FIXED[reason]


def test_grpc_numbers_are_the_canonical_ones() -> None:
    assert [GRPC_OF_CODE[code] for code in Code] == list(range(1, 17))
    assert GRPC_OF_CODE[Code.DEADLINE_EXCEEDED] == 4
    assert GRPC_OF_CODE[Code.UNAUTHENTICATED] == 16
    assert all(CODE_OF_GRPC[number] is code for code, number in GRPC_OF_CODE.items())


@pytest.mark.parametrize("reason", list(Reason))
def test_a_clients_fault_is_never_a_5xx(reason: Reason) -> None:
    row = ERRORS[reason]
    if row.boundary is Boundary.CLIENT:
        assert 400 <= row.http < 500


@pytest.mark.parametrize("reason", list(Reason))
def test_an_error_is_filled_from_its_row(reason: Reason) -> None:
    failure = error(reason, "text")
    row = ERRORS[reason]
    assert (failure.code, failure.retryable, failure.side_effect, failure.boundary) == (
        row.code,
        row.retryable,
        row.side_effect,
        row.boundary,
    )
    assert http_status(failure) == row.http
    assert grpc_status(failure) == GRPC_OF_CODE[row.code]


def test_a_reason_of_a_components_own_follows_its_code() -> None:
    failure = AcpError(code=Code.ABORTED, reason="ACCOUNT_FROZEN", message="frozen")
    assert http_status(failure) == 409


@pytest.mark.parametrize(
    ("answer", "effect", "expected"),
    [
        (ExecuteResponse(side_effect=SideEffect.NONE), Effect.WRITE, SideEffect.NONE),
        (ExecuteResponse(), Effect.WRITE, SideEffect.PERFORMED),
        (ExecuteResponse(), Effect.READ, SideEffect.NONE),
        (ExecuteResponse(operation=Operation()), Effect.WRITE, SideEffect.UNKNOWN),
        (PlanResponse(), Effect.READ, SideEffect.NONE),
        (error(Reason.TIMEOUT, "late"), Effect.WRITE, SideEffect.UNKNOWN),
        (error(Reason.TIMEOUT, "late"), Effect.READ, SideEffect.NONE),
        (error(Reason.OVERLOADED, "full"), Effect.WRITE, SideEffect.NONE),
    ],
)
def test_an_unstated_side_effect_is_read_with_care(
    answer: ExecuteResponse | PlanResponse | AcpError, effect: Effect, expected: SideEffect
) -> None:
    assert effective_side_effect(answer, effect) is expected


@pytest.mark.parametrize("status", [*REASON_OF_HTTP, 302, 418, 500, 599])
def test_a_proxys_page_is_the_components_boundary_and_side_effect_unknown(status: int) -> None:
    failure = from_http(status, "<html>")
    assert failure.boundary is Boundary.COMPONENT
    assert failure.side_effect is SideEffect.UNKNOWN


@pytest.mark.parametrize("status", [0, *range(1, 17), 99])
def test_only_two_bare_grpc_statuses_prove_that_nothing_ran(status: int) -> None:
    proven = from_grpc(status, "bare").side_effect is SideEffect.NONE
    assert proven is (status in {12, 16})


@pytest.mark.parametrize(
    "reason",
    [
        "",
        "order 12 failed",
        "outOfStock",
        "X\x1b[2J",
        "A__B",
        "A_",
        "_A",
        "1A",
        "R" * 129,
        "\N{SNOWMAN}",
    ],
)
def test_a_reason_that_is_no_word_becomes_that_of_its_code_and_is_told(reason: str) -> None:
    """It would be a label of metrics, a value of `retry_on`, and our own breach of ERR-003."""
    stated = AcpError(code=Code.UNAVAILABLE, reason=reason, message="not now")
    told = passed_on(stated)
    assert (told.code, told.reason) == (Code.UNAVAILABLE, "UNAVAILABLE")
    assert "not now" in told.message
    assert repr(reason[:128]) in told.message


@pytest.mark.parametrize(
    "reason", [*(one.value for one in Reason), "INSUFFICIENT_FUNDS", "E42", "HTTP_2_GONE"]
)
def test_a_component_may_have_reasons_of_its_own(reason: str) -> None:
    stated = AcpError(code=Code.INTERNAL, reason=reason, message="m")
    assert passed_on(stated) == stated


def test_a_long_message_is_cut() -> None:
    told = passed_on(AcpError(code=Code.INTERNAL, reason="OWN", message="m" * 100_000))
    assert len(told.message) == MESSAGE_CHARACTERS_MAX + 3
