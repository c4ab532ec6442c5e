"""Steps that a client runs itself: targets, refusals, exact bytes, the end (SPEC section 6)."""

import msgspec
import pytest

from acp_spec.model.enums import Kind, Mode, SessionStatus, StepRole, StepStatus, StepType
from acp_spec.model.errors import AcpError
from acp_spec.model.ids import body_digest
from acp_spec.model.payload import payload
from acp_spec.model.session import ManualStep
from gateway.engine.events import CallCreated, FinishRequested
from gateway.engine.manual import manual_call
from gateway.engine.tests.casting import Cast, Terms
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import (
    ONE_ACTION,
    PLANNER,
    TOOLS,
    Line,
    action,
    card,
    catalog_of,
    failed,
    first,
    gave,
    troupe,
    workflow_of,
)

MODEL = card("model", action("complete"), kind=Kind.LLM)
RIVAL = card("rival", action("read"))
CATALOG = catalog_of(PLANNER, TOOLS, MODEL)


def opened(**lines: Line) -> Play:
    terms = Terms(mode=Mode.MANUAL)
    return Play(None, CATALOG, Cast(component=troupe(**lines)), terms=terms).open()


def step(kind: StepType, text: bytes, key: str = "k", component: str = "") -> ManualStep:
    return ManualStep(step_type=kind, payload=payload(text), step_key=key, component=component)


def made(play: Play, wanted: ManualStep) -> CallCreated:
    found = manual_call(play.state, wanted, world=play.world())
    assert isinstance(found, CallCreated), found
    return found


def refused(play: Play, wanted: ManualStep) -> AcpError:
    found = manual_call(play.state, wanted, world=play.world())
    assert isinstance(found, AcpError)
    return found


def test_a_tool_step_sends_the_clients_bytes() -> None:
    play = opened(read=gave(1))
    text = b'{"action":"read","arguments":{"n":9007199254740993, "m":0.10}}'
    play.feed(made(play, step(StepType.TOOL, text)))
    play.run(until_ms=100)
    (sent,) = play.sent
    assert sent.body == text
    assert sent.created.body_digest == body_digest("read", b'{"n":9007199254740993, "m":0.10}')
    assert sent.created.step_type is StepType.TOOL
    assert play.status == "RUNNING", "its client goes on"


def test_a_step_without_arguments_has_the_digest_of_none() -> None:
    created = made(opened(), step(StepType.TOOL, b'{"action":"read"}'))
    assert created.body_digest == body_digest("read", b"")
    assert bytes(created.body) == b'{"action":"read"}'


def test_a_plan_step_goes_to_a_planner() -> None:
    created = made(opened(), step(StepType.PLAN, b'{"goal":"g"}'))
    assert (created.role, created.component) == (StepRole.PLAN, "planner")
    assert created.step_type is StepType.PLAN


def test_an_llm_step_needs_a_component_of_that_kind() -> None:
    play = opened()
    created = made(play, step(StepType.LLM, b'{"action":"complete"}'))
    assert (created.component, created.step_type) == ("model", StepType.LLM)
    assert "use step_type TOOL" in refused(play, step(StepType.LLM, b'{"action":"read"}')).message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"[]", "payload"),
        (b"7", "payload"),
        (b'{"action":7}', "payload"),
        (b"{}", "name the action"),
        (b'{"action":"ghost"}', "ghost"),
    ],
)
def test_a_payload_that_is_no_request_is_refused_and_says_why(text: bytes, says: str) -> None:
    assert says in refused(opened(), step(StepType.TOOL, text)).message


@pytest.mark.parametrize("name", [b'"context"', b'"\\u0063ontext"'])
@pytest.mark.parametrize("kind", [StepType.TOOL, StepType.PLAN])
def test_a_client_cannot_write_the_context_itself(name: bytes, kind: StepType) -> None:
    """It stood behind the gateway's own and would have been read instead: another tenant's name."""
    text = b'{"action":"read",' + name + b':{"tenant":"bank"}}'
    failure = refused(opened(), step(kind, text))
    assert failure.reason == "INVALID_REQUEST"
    assert "payload.context" in failure.message


def test_a_named_component_is_used_and_must_declare_the_action() -> None:
    play = opened()
    play.catalog = catalog_of(TOOLS, RIVAL, PLANNER)
    assert (
        "or several can"
        in refused(
            Play(None, play.catalog, play.cast, terms=play.terms).open(),
            step(StepType.TOOL, b'{"action":"read"}'),
        ).message
    )
    chosen = step(StepType.TOOL, b'{"action":"read"}', component="rival@^1.0")
    assert made(play, chosen).component == "rival"
    wrong = step(StepType.TOOL, b'{"action":"pay"}', component="rival")
    assert "does not declare" in refused(play, wrong).message


def test_a_step_whose_pinned_version_has_left_is_meant_for_it_still() -> None:
    """So that the version which serves instead shows as a deviation; it served without a word."""
    play = opened()
    pinned = f"{TOOLS.name}@{TOOLS.version}"
    assert play.state.opened.pins["action:read"] == pinned
    newer = msgspec.structs.replace(TOOLS, version="1.7.0")
    play.catalog = catalog_of(PLANNER, newer, MODEL)
    meant = made(play, step(StepType.TOOL, b'{"action":"read"}'))
    assert f"{meant.component}@{meant.version}" == pinned
    named = made(play, step(StepType.TOOL, b'{"action":"read"}', component=TOOLS.name))
    assert named.version == "1.7.0", "a client may name another one"


def test_manual_calls_are_retried_like_any_other() -> None:
    play = opened(read=first(1, failed(), gave(1)))
    play.feed(made(play, step(StepType.TOOL, b'{"action":"read"}')))
    play.run(until_ms=5_000)
    (call,) = play.state.calls.values()
    assert (call.status, call.number) == (StepStatus.SUCCEEDED, 2)


def test_a_failed_manual_step_does_not_end_the_session() -> None:
    play = opened(pay=failed())
    play.feed(made(play, step(StepType.TOOL, b'{"action":"pay"}')))
    play.run(until_ms=5_000)
    assert play.status == "RUNNING"
    assert play.state.manual == {"k": next(iter(play.state.calls))}


def test_the_client_finishes_with_its_output() -> None:
    play = opened()
    play.feed(FinishRequested(at_ms=play.now_ms, output=payload(b"0.10")))
    assert play.state.status is SessionStatus.SUCCEEDED
    assert bytes(play.state.output) == b"0.10"


def test_a_finish_cannot_turn_a_session_that_is_being_cancelled_into_a_success() -> None:
    play = opened(read=None)
    play.feed(made(play, step(StepType.TOOL, b'{"action":"read"}')))
    play.cancel()
    play.feed(FinishRequested(at_ms=play.now_ms, output=payload(b"1")))
    play.run()
    assert play.state.status is SessionStatus.CANCELLED


def test_another_key_is_another_call_and_the_same_key_the_same() -> None:
    play = opened()
    text = b'{"action":"read"}'
    one, same, other = (made(play, step(StepType.TOOL, text, key)).call_id for key in "aab")
    assert one == same
    assert one != other


def test_a_client_may_call_only_what_the_contract_of_its_workflow_allows() -> None:
    text = ONE_ACTION % "read" + "contract: {allowed_actions: [read]}\n"
    terms = Terms(mode=Mode.MANUAL)
    play = Play(workflow_of(text), CATALOG, Cast(component=troupe()), terms=terms).open()
    assert made(play, step(StepType.TOOL, b'{"action":"read"}')).action == "read"
    failure = refused(play, step(StepType.TOOL, b'{"action":"put"}'))
    assert failure.reason == "CONTRACT_VIOLATION"
