"""The tree of a session: every attempt with its times, every decision, every gap."""

import io

from rich.console import Console

from acp_spec.bindings.errors import error
from acp_spec.model.enums import SessionStatus
from acp_spec.model.errors import Reason
from acp_spec.model.payload import payload
from acp_spec.model.plan import Plan, SubGoal
from acp_spec.model.semantics import HowMapped, MappedValue
from acp_spec.model.times import rfc3339
from acp_spec.model.trajectory import (
    SCHEMA_VERSION,
    Attempt,
    FallbackRow,
    Gap,
    PlanVersion,
    ReflectionRow,
    Trajectory,
)
from gateway.cli.trace_tree import tree_of


def drawn(trajectory: Trajectory) -> str:
    text = io.StringIO()
    Console(file=text, width=200).print(tree_of(trajectory))
    return text.getvalue()


def trajectory(status: SessionStatus, **more: object) -> Trajectory:
    fields: dict[str, object] = {"session_id": "S", "lineage_id": "S.0", "status": status}
    return Trajectory(schema_version=SCHEMA_VERSION, **{**fields, **more})  # type: ignore[arg-type]


def attempt(number: int, **more: object) -> Attempt:
    fields: dict[str, object] = {
        "call_id": "c" * 32,
        "attempt": number,
        "step": "act",
        "role": "EXECUTE",
        "action": "ledger.balance",
        "component": "ledger",
        "component_version": "1.0.0",
        "queued_at": rfc3339(1_010),
    }
    return Attempt(**{**fields, **more})  # type: ignore[arg-type]


def test_a_session_is_drawn_with_its_attempts_in_order() -> None:
    failed = attempt(1, sent_at=rfc3339(1_020), ended_at=rfc3339(1_070), wait_ms=10,
                     error=error(Reason.TIMEOUT, "no answer [in time]"))  # fmt: skip
    good = attempt(
        2, sent_at=rfc3339(1_100), ended_at=rfc3339(1_130), output=payload(b'{"cents": 5}')
    )
    text = drawn(
        trajectory(
            SessionStatus.SUCCEEDED,
            workflow="hotline@1.0.0",
            plan=(
                PlanVersion(
                    generation=1,
                    step="plan",
                    call_id="p",
                    plan=Plan(sub_goals=(SubGoal(id="a", action="ledger.balance"),)),
                ),
            ),
            calls=(failed, good),
            reflections=(ReflectionRow(step="judge", call_id="r", verdict="ACCEPT"),),
            gaps=(Gap(what="llm_calls", why="the component reports none"),),
            output=payload(b'{"answer": "5 cents"}'),
            opened_at=rfc3339(1_000),
            ended_at=rfc3339(1_200),
        )
    )
    assert "S hotline@1.0.0 SUCCEEDED after 200 ms" in text
    assert (
        "#1 ledger@1.0.0, at 10 ms, waited 10 ms, took 50 ms: TIMEOUT: no answer [in time]" in text
    )
    assert '#2 ledger@1.0.0, at 10 ms, waited 0 ms, took 30 ms: {"cents": 5}' in text
    assert text.index("#1") < text.index("#2")
    assert text.count("ledger.balance cccccccccccc") == 1
    assert "plan 1 by plan" in text
    assert "verdict ACCEPT by judge" in text
    assert "missing: llm_calls (the component reports none)" in text
    assert 'output {"answer": "5 cents"}' in text


def test_a_call_that_was_not_sent_or_taken_over_says_so() -> None:
    rows = (
        attempt(1, component=""),
        attempt(1, call_id="d" * 32, reused=True, reused_from="e" * 32),
    )
    text = drawn(trajectory(SessionStatus.FAILED, calls=rows))
    assert "#1 nobody" in text
    assert "not sent" in text
    assert "reused from eeeeeeeeeeee" in text


def test_a_long_payload_is_cut_with_its_length() -> None:
    long = payload(b'"' + b"x" * 5000 + b'"')
    text = drawn(trajectory(SessionStatus.RUNNING, output=long))
    assert "(5002 characters)" in text


def test_what_components_and_clients_wrote_is_neither_markup_nor_emoji_nor_an_escape() -> None:
    failed = attempt(1, action="[/foo]", component=":x:", step="[bold]act",
                     error=error(Reason.INTERNAL, "[/foo] :x: \x1b[31mred"))  # fmt: skip
    text = drawn(
        trajectory(
            SessionStatus.FAILED,
            workflow="[/foo]",
            input=payload(b'{"v":"[/foo] :x:"}'),
            calls=(failed,),
            reflections=(ReflectionRow(step="[/j]", call_id="r", verdict="[/v]", critique="[/c]"),),
            gaps=(Gap(what="[/w]", why="[/y]"),),
        )
    )
    assert 'input {"v":"[/foo] :x:"}' in text
    assert "[/foo] :x: \\u001b[31mred" in text
    assert "verdict [/v] by [/j]: [/c]" in text
    assert "#1 :x:@1.0.0" in text
    assert "[bold]act" in text
    assert "missing: [/w] ([/y])" in text


def test_what_values_meant_and_who_answered_is_drawn() -> None:
    said = MappedValue(
        at="/intent", domain="d", from_="gimme", to="REFUND", how=HowMapped.NEAREST, confidence=0.7
    )
    row = attempt(1, arguments_mapped=(said,), output_mapped=(said,))
    text = drawn(trajectory(SessionStatus.SUCCEEDED, input_mapped=(said,), calls=(row,)))
    assert text.count("/intent: 'gimme' meant 'REFUND' (NEAREST, 0.70)") == 3
    rules = FallbackRow(rule="small", version="r1")
    text = drawn(trajectory(SessionStatus.SUCCEEDED, fallback=rules))
    assert "answered by the rule small (rules r1), no component was called" in text
    assert "a probe" in drawn(trajectory(SessionStatus.FAILED, fallback=FallbackRow(probe=True)))
