"""HTTP attempts against real servers that keep or break the protocol (SPEC section 5)."""

import asyncio
import json

import pytest

from acp_spec.model.enums import Boundary, CancelState, Effect, SideEffect, StepRole
from acp_spec.model.errors import AcpFailure, Code
from gateway.runtime.connection import Answer, Connection
from gateway.transports.address_guard import HTTP_SCHEMES, parse_component_url
from gateway.transports.http_connection import HttpConnection
from gateway.transports.outbound import ConnectionOptions, with_context
from gateway.transports.tests.http_calls import GOOD, answer_of, hung, reason, then_end, to
from gateway.transports.tests.raw_peer import (
    GUARD,
    PATIENT_MS,
    Answers,
    Behaviour,
    Peer,
    answering,
    context,
    http,
    one_call,
    outgoing,
    peer,
    run,
)


def is_a_connection(connection: HttpConnection) -> Connection:
    return connection  # checked by mypy


# -- what is sent --------------------------------------------------------------------------------


def test_the_request_carries_the_journaled_bytes_behind_the_context() -> None:
    seen: list[bytes] = []

    async def behave(peer: Peer) -> None:
        seen.append(await peer.request() or b"")
        await peer.say(http(GOOD))

    body = b'{"action":"a","arguments":{"n":9007199254740993, "x": 0.10}}'
    call = outgoing(context(traceparent="00-1-2-01"), body=body)
    answer = answer_of(behave, call)
    head, _, sent = seen[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /acp/v1/execute HTTP/1.1"
    headers = dict(line.split(": ", 1) for line in lines[1:])
    assert headers["idempotency-key"] == "call-1"
    assert headers["acp-version"] == "1.0"
    assert headers["traceparent"] == "00-1-2-01"
    assert headers["host"].startswith("127.0.0.1:")
    assert sent.endswith(b"," + body[1:])
    assert 0 < json.loads(sent)["context"]["timeout_ms"] <= PATIENT_MS
    assert int(headers["acp-timeout-ms"]) == json.loads(sent)["context"]["timeout_ms"]
    assert bytes(answer.response) == GOOD
    assert answer.side_effect is SideEffect.PERFORMED


@pytest.mark.parametrize("body", [b"{}", b" { } ", b'{ "a": 1}', b'{"a":1}', b'\n{\n"a":1}\n'])
def test_a_context_goes_in_front_of_any_object(body: bytes) -> None:
    made = json.loads(with_context(context(), body))
    assert made.pop("context")["call_id"] == "call-1"
    assert made == json.loads(body)


def test_a_header_value_that_would_break_the_head_stays_in_the_body_only() -> None:
    seen: list[bytes] = []

    async def behave(peer: Peer) -> None:
        seen.append(await peer.request() or b"")
        await peer.say(http(GOOD))

    answer_of(behave, outgoing(context(traceparent="x\r\nevil: 1")))
    assert b"evil: 1\r\n" not in seen[0]
    assert rb"x\r\nevil: 1" in seen[0]


def test_a_credential_is_sent_and_its_absence_sends_nothing() -> None:
    async def story() -> None:
        seen: list[bytes] = []

        async def behave(peer: Peer) -> None:
            while (request := await peer.request()) is not None:
                seen.append(request)
                await peer.say(http(GOOD))

        async with peer(behave) as served:
            target = parse_component_url(f"http://127.0.0.1:{served.port}", HTTP_SCHEMES)
            secrets = {"ledger": "s3cret", "bad": "a\r\nb"}
            options = ConnectionOptions(auth="ledger")
            connection = HttpConnection(
                target, GUARD, options=options, credentials=secrets.__getitem__
            )
            assert (await one_call(connection)).error is None
            assert b"authorization: Bearer s3cret\r\n" in seen[0]
            bare = HttpConnection(target, GUARD, options=options)
            answer = await one_call(bare)
            assert answer.not_sent
            assert "ledger" in (answer.error.message if answer.error else "")
            assert len(seen) == 1
            await connection.close()
            await bare.close()

    run(story())


def test_a_request_over_the_cards_limit_is_not_sent() -> None:
    answer = answer_of(answering(http(GOOD)), options=ConnectionOptions(max_request_bytes=100))
    assert (reason(answer), answer.not_sent) == ("PAYLOAD_TOO_LARGE", True)
    assert answer.side_effect is SideEffect.NONE


def test_connections_are_kept_and_used_again() -> None:
    async def story() -> None:
        async with peer(answering(http(GOOD))) as served:
            connection = to(served.port)
            for _ in range(5):
                assert (await one_call(connection)).error is None
            assert served.connections == 1
            await connection.close()

    run(story())


def test_the_time_a_call_waited_for_a_connection_is_taken_from_what_it_is_given() -> None:
    async def story() -> int:
        seen: list[bytes] = []

        async def behave(peer: Peer) -> None:
            while (request := await peer.request()) is not None:
                seen.append(request)
                await asyncio.sleep(0.05)
                await peer.say(http(GOOD))

        async with peer(behave) as served:
            connection = to(served.port, options=ConnectionOptions(connections_max=1))
            answers = Answers()
            for number in (1, 2):
                connection.send(outgoing(context(f"c{number}")), answers)
            await answers.wait(2)
            await connection.close()
            assert served.connections == 1
        left: int = json.loads(seen[1].partition(b"\r\n\r\n")[2])["context"]["timeout_ms"]
        return left

    assert run(story()) <= PATIENT_MS - 40


# -- what comes back -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "body"),
    [
        (StepRole.PLAN, b'{"plan":{"root_goal":"g","sub_goals":[]}}'),
        (StepRole.OBSERVE, b'{"stored":1}'),
        (StepRole.REFLECT, b'{"verdict":"ACCEPT"}'),
        (StepRole.EXECUTE, b'{"output":null}'),
    ],
)
def test_every_role_has_its_route_and_its_response(role: StepRole, body: bytes) -> None:
    async def behave(peer: Peer) -> None:
        request = await peer.request() or b""
        expected = f"POST /base/acp/v1/{role.value.lower()} ".encode()
        await peer.say(http(body if request.startswith(expected) else b"{}"))

    async def story() -> Answer:
        async with peer(behave) as served:
            connection = to(served.port, base="/base")
            answer = await one_call(connection, outgoing(role=role, body=b"{}"))
            await connection.close()
            return answer

    assert bytes(run(story()).response) == body


@pytest.mark.parametrize(
    ("body", "effect", "side_effect"),
    [
        (b'{"output":1}', Effect.READ, SideEffect.NONE),
        (b'{"output":1}', Effect.WRITE, SideEffect.PERFORMED),
        (b'{"output":1,"side_effect":"NONE"}', Effect.WRITE, SideEffect.NONE),
        (b'{"output":1,"side_effect":"NEW_IN_1_9"}', Effect.WRITE, SideEffect.UNKNOWN),
    ],
)
def test_an_absent_side_effect_has_its_meaning(
    body: bytes, effect: Effect, side_effect: SideEffect
) -> None:
    answer = answer_of(answering(http(body)), outgoing(effect=effect))
    assert (answer.error, answer.side_effect) == (None, side_effect)


def test_the_envelope_of_a_reply_is_read() -> None:
    body = (
        b'{"output":1,"component":{"version":"1.2.3"},"retries_spent":2,"usage":{"tokens":7},'
        b'"llm_calls":[{"id":"l","prompt":[0.10]}]}'
    )
    answer = answer_of(answering(http(body)))
    assert (answer.served_version, answer.retries_spent) == ("1.2.3", 2)
    assert answer.usage is not None
    assert answer.usage.tokens == 7
    assert bytes(answer.llm_calls[0].prompt) == b"[0.10]"


def test_an_accepted_operation_says_when_to_poll() -> None:
    answer = answer_of(answering(http(b'{"operation":{"poll_after_ms":50}}')))
    assert (answer.operation_poll_after_ms, answer.side_effect) == (50, SideEffect.UNKNOWN)
    both = answer_of(answering(http(b'{"output":1,"operation":{"poll_after_ms":50}}')))
    assert reason(both) == "CONTRACT_VIOLATION"


def test_an_acp_error_is_handed_on_as_stated() -> None:
    body = (
        b'{"error":{"code":"ABORTED","reason":"MY_REASON","message":"m","retryable":true,'
        b'"retry_after_ms":5,"side_effect":"NONE","details":{"n":0.10}},"retries_spent":1}'
    )
    answer = answer_of(answering(http(body, status="409 Conflict")))
    assert answer.error is not None
    assert (answer.error.code, reason(answer)) == (Code.ABORTED, "MY_REASON")
    assert bytes(answer.error.details) == b'{"n":0.10}'
    assert (answer.answered, answer.side_effect, answer.retries_spent) == (
        True,
        SideEffect.NONE,
        1,
    )


@pytest.mark.parametrize(
    ("effect", "side_effect"),
    [(Effect.READ, SideEffect.NONE), (Effect.WRITE, SideEffect.UNKNOWN)],
)
def test_an_acp_error_that_states_no_side_effect(effect: Effect, side_effect: SideEffect) -> None:
    body = b'{"error":{"code":"INTERNAL","reason":"INTERNAL","message":"m"}}'
    answer = answer_of(answering(http(body, status="500 Oops")), outgoing(effect=effect))
    assert (reason(answer), answer.side_effect) == ("INTERNAL", side_effect)


def test_an_acp_error_under_status_200_is_an_error() -> None:
    body = b'{"error":{"code":"INTERNAL","reason":"INTERNAL","message":"m"}}'
    assert reason(answer_of(answering(http(body)))) == "INTERNAL"
    unknown_field = b'{"output":1,"error":"none"}'
    assert answer_of(answering(http(unknown_field))).error is None


def test_a_proxys_page_is_the_components_failure_and_nobody_knows_what_was_done() -> None:
    page = http(b"<html>Bad gateway</html>", status="502 Bad Gateway", kind="text/html")
    answer = answer_of(answering(page))
    assert answer.error is not None
    assert (reason(answer), answer.side_effect) == ("UNAVAILABLE", SideEffect.UNKNOWN)
    assert answer.error.boundary is Boundary.COMPONENT
    assert not answer.answered
    assert not answer.not_sent
    assert "Bad gateway" in answer.error.message


def test_retry_after_of_a_foreign_429_is_read() -> None:
    page = http(b"slow down", status="429 X", kind="text/plain", extra="Retry-After: 2\r\n")
    answer = answer_of(answering(page))
    assert answer.error is not None
    assert (reason(answer), answer.error.retry_after_ms) == ("RATE_LIMITED", 2_000)


@pytest.mark.parametrize(
    "response",
    [
        http(b"<html>", kind="text/html"),
        http(b"", status="204 No Content"),
        http(b'{"output":'),
        http(b'{"output":1,"output":2}'),
        http(b'{"output":"\\ud800"}'),
        http(b'{"output":' + b"[" * 60 + b"]" * 60 + b"}"),
        http(b'{"output":1}\xff'),
        http(b"[]"),
        http(b'{"retries_spent":-1}'),
        http(b"{}", status="302 Found", extra="location: http://127.0.0.1:1/\r\n"),
        http(b'{"output":1}', extra="content-encoding: gzip\r\n"),
        b"\x15\x03\x03\x00\x02\x02\x16",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    ],
)
def test_an_answer_that_is_none_breaks_the_contract(response: bytes) -> None:
    answer = answer_of(answering(response))
    assert reason(answer) == "CONTRACT_VIOLATION"
    assert (answer.side_effect, answer.answered, answer.not_sent) == (
        SideEffect.UNKNOWN,
        False,
        False,
    )


def test_an_unknown_verdict_breaks_the_contract() -> None:
    call = outgoing(role=StepRole.REFLECT, effect=Effect.READ)
    answer = answer_of(answering(http(b'{"verdict":"PERHAPS"}')), call)
    assert (reason(answer), answer.side_effect) == ("CONTRACT_VIOLATION", SideEffect.NONE)


@pytest.mark.parametrize(
    "response",
    [
        http(b'{"output":"' + b"a" * 2_000 + b'"}'),
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        + (b"100\r\n" + b" " * 256 + b"\r\n") * 8,
        b"HTTP/1.1 200 OK\r\n" + b"x: " + b"a" * 70_000,
        b"HTTP/1.1 200 OK\r\n" + (b"x: " + b"a" * 1_000 + b"\r\n") * 70 + b"\r\n",
    ],
)
def test_an_answer_over_the_limit_is_refused_while_it_comes(response: bytes) -> None:
    answer = answer_of(answering(response), options=ConnectionOptions(max_response_bytes=1_000))
    assert (reason(answer), answer.side_effect) == ("PAYLOAD_TOO_LARGE", SideEffect.UNKNOWN)


# -- partial output ------------------------------------------------------------------------------


def stream(*lines: bytes, ends: bool = True) -> bytes:
    head = (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson; charset=utf-8\r\n"
        b"transfer-encoding: chunked\r\n\r\n"
    )
    chunks = b"".join(b"%x\r\n%b\n\r\n" % (len(line) + 1, line) for line in lines)
    return head + chunks + (b"0\r\n\r\n" if ends else b"")


PROGRESS = b'{"progress":{"done":0.10},"message":"half"}'


def test_the_last_line_of_a_stream_is_the_response() -> None:
    answer = answer_of(answering(stream(PROGRESS, PROGRESS, GOOD)))
    assert bytes(answer.response) == GOOD


def test_an_error_in_the_last_line_is_the_error() -> None:
    line = b'{"error":{"code":"INTERNAL","reason":"INTERNAL","message":"m"}}'
    assert reason(answer_of(answering(stream(PROGRESS, line)))) == "INTERNAL"


@pytest.mark.parametrize(
    "behaviour",
    [
        then_end(stream(PROGRESS, GOOD, ends=False)),
        then_end(stream(PROGRESS, ends=False)),
        answering(stream(PROGRESS)),
        answering(stream()),
    ],
)
def test_a_cut_stream_is_never_a_success(behaviour: Behaviour) -> None:
    answer = answer_of(behaviour)
    assert (reason(answer), answer.side_effect) == ("UNAVAILABLE", SideEffect.UNKNOWN)


def test_a_stream_in_a_call_that_has_none_breaks_the_contract() -> None:
    answer = answer_of(answering(stream(b'{"stored":1}')), outgoing(role=StepRole.OBSERVE))
    assert reason(answer) == "CONTRACT_VIOLATION"


# -- questions -----------------------------------------------------------------------------------


def questions(answers: dict[bytes, bytes]) -> Behaviour:
    async def behave(peer: Peer) -> None:
        while (request := await peer.request()) is not None:
            await peer.say(answers[request.partition(b" HTTP")[0]])

    return behave


def test_questions_are_asked_and_answered() -> None:
    card = b'{"name":"ledger","version":"1.0.0","limits":{"max_request_bytes":50}}'
    peer_answers = {
        b"GET /acp/v1/component": http(card),
        b"GET /acp/v1/health": http(b'{"status":"SERVING","signals":{"inflight":2}}'),
        b"POST /acp/v1/calls/c%2F1/cancel": http(b'{"state":"STOPPED"}'),
        b"GET /acp/v1/operations/c": http(b'{"status":"RUNNING","poll_after_ms":7}'),
        b"POST /acp/v1/operations/c/cancel": http(b'{"state":"SOMETHING_NEW"}'),
    }

    async def story() -> None:
        async with peer(questions(peer_answers)) as served:
            connection = to(served.port)
            assert (await connection.describe(PATIENT_MS)).name == "ledger"
            assert connection.max_request_bytes == 50
            health = await connection.health(PATIENT_MS)
            assert health.signals is not None
            assert health.signals.inflight == 2
            cancelled = await connection.cancel("c/1", 0, timeout_ms=PATIENT_MS)
            assert cancelled.state is CancelState.STOPPED
            assert (await connection.operation("c", PATIENT_MS)).poll_after_ms == 7
            unknown = await connection.cancel_operation("c", PATIENT_MS)
            assert unknown.state is CancelState.UNKNOWN_CALL
            await connection.close()

    run(story())


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        (hung, "TIMEOUT"),
        (then_end(b""), "UNAVAILABLE"),
        (answering(http(b"nope", status="404 Not Found", kind="text/plain")), "NOT_FOUND"),
        (answering(http(b"<html>", kind="text/html")), "CONTRACT_VIOLATION"),
        (answering(http(b"{}")), "CONTRACT_VIOLATION"),
    ],
)
def test_a_question_without_a_good_answer_raises(behaviour: Behaviour, why: str) -> None:
    async def story() -> str:
        async with peer(behaviour) as served:
            connection = to(served.port)
            with pytest.raises(AcpFailure) as raised:
                await connection.describe(200 if why == "TIMEOUT" else PATIENT_MS)
            await connection.close()
            return raised.value.error.reason

    assert run(story()) == why
