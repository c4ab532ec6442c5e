"""An action served by a program: bytes as they are, limits as SANDBOX_LIMIT, the card says how."""

import asyncio
import dataclasses
import json
import os
import signal
import threading
from pathlib import Path
from typing import Unpack

import pytest

from acp_spec import Component, Effect, Idempotency, InProcess, build_context
from acp_spec.model.calls import ErrorBody, ExecuteRequest, ExecuteResponse
from acp_spec.model.enums import SideEffect
from acp_spec.model.sandbox import Guard, Sandbox, lacking
from acp_spec.sdk.component import ActionOptions
from acp_spec.sdk.sandbox import Limits, Program, SandboxUnavailable, offer_program
from acp_spec.sdk.sandbox.capability import capabilities
from acp_spec.sdk.sandbox.tests.running import AMPLE, processes_with
from acp_spec.sdk.values import read
from acp_spec.sdk.warden import tree

READ: ActionOptions = {"effect": Effect.READ, "idempotency": Idempotency.NATURAL}


def shell(text: str, *, limits: Limits = AMPLE, **options: Unpack[ActionOptions]) -> Component:
    component = Component("programs", "1.0.0")
    program = Program(command=("/bin/sh", "-c", text))
    offer_program(component, program, action="run", limits=limits, **options)
    return component


def asked(
    component: Component, arguments: bytes = b"{}", *, timeout_ms: int = 30_000
) -> ExecuteResponse | ErrorBody:
    from acp_spec.model.payload import Payload

    context = build_context("run", read(Payload(arguments)), timeout_ms=timeout_ms)
    request = ExecuteRequest(context=context, action="run", arguments=Payload(arguments))

    async def story() -> ExecuteResponse | ErrorBody:
        async with InProcess(component) as client:
            answer = await client.execute(request)
            assert isinstance(answer, ExecuteResponse | ErrorBody)
            return answer

    return asyncio.run(story())


def test_arguments_and_output_pass_byte_for_byte() -> None:
    exact = b'{"amount":0.10,"id":123456789012345678.90,"big":9007199254740993}'
    answer = asked(shell("cat", **READ), exact)
    assert isinstance(answer, ExecuteResponse), answer
    assert bytes(answer.output) == exact


def test_a_program_learns_which_call_it_serves() -> None:
    answer = asked(shell('printf "[\\"%s\\", \\"%s\\"]" "$ACP_ACTION" "$ACP_ATTEMPT"', **READ))
    assert isinstance(answer, ExecuteResponse), answer
    assert read(answer.output) == ["run", "1"]


@pytest.mark.parametrize(
    ("effect", "side_effect"), [(Effect.READ, SideEffect.NONE), (Effect.WRITE, SideEffect.UNKNOWN)]
)
def test_a_limit_is_named_and_only_a_read_has_surely_done_nothing(
    effect: Effect, side_effect: SideEffect
) -> None:
    limits = dataclasses.replace(AMPLE, wall_ms=200)
    answer = asked(shell("sleep 60", limits=limits, effect=effect))
    assert isinstance(answer, ErrorBody)
    failed = answer.error
    assert (failed.reason, failed.side_effect) == ("SANDBOX_LIMIT", side_effect)
    assert "WALL_CLOCK" in failed.message
    details = json.loads(bytes(failed.details))
    assert (details["limit"], details["allowed"]) == ("WALL_CLOCK", 200)


def test_the_callers_deadline_ends_the_run_and_is_no_limit() -> None:
    word = f"61.{os.getpid()}"
    answer = asked(shell(f"sleep {word}", **READ), timeout_ms=300)
    assert isinstance(answer, ErrorBody)
    assert answer.error.reason == "TIMEOUT"
    between_looks = threading.Event()
    for _ in range(400):
        if not processes_with(word):
            return
        between_looks.wait(0.05)
    raise AssertionError("the program outlived its call")


def test_a_program_that_fails_shows_its_words_to_nobody_but_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = asked(shell("echo the password is swordfish >&2; exit 3"))
    assert isinstance(answer, ErrorBody)
    assert (answer.error.reason, answer.error.side_effect) == ("INTERNAL", SideEffect.UNKNOWN)
    assert "exit code 3" in answer.error.message
    assert "swordfish" not in answer.error.message
    assert "swordfish" in caplog.text


def test_a_lost_sandbox_is_no_proof_that_nothing_was_done() -> None:
    """Whoever kills the warden (an administrator, the kernel short of memory) kills the run; a
    write that had begun must not be sent again as if it had not.
    """
    word = f"62.{os.getpid()}"
    component = shell(f"sleep {word}")
    answers: list[ExecuteResponse | ErrorBody] = []
    calling = threading.Thread(target=lambda: answers.append(asked(component)))
    calling.start()
    between_looks = threading.Event()
    wardens: list[int] = []
    for _ in range(400):
        if any(_is_sleep(pid) for pid in processes_with(word)):
            wardens = _wardens_of(os.getpid())
            break
        between_looks.wait(0.05)
    for pid in wardens:
        os.kill(pid, signal.SIGKILL)
    calling.join(30)
    assert wardens
    (answer,) = answers
    assert isinstance(answer, ErrorBody)
    assert (answer.error.reason, answer.error.side_effect) == ("INTERNAL", SideEffect.UNKNOWN)
    held = {one.guard: one.mechanism for one in capabilities()}
    for _ in range(400):
        left = [pid for pid in processes_with(word) if _is_sleep(pid)]
        if not left:
            return
        if held[Guard.WHOLE_TREE] != "process namespace":
            os.kill(left[0], signal.SIGKILL)  # docs/sandbox.md: it lives on there
        between_looks.wait(0.05)
    raise AssertionError("the program outlived the warden")


def _is_sleep(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text() == "sleep\n"
    except OSError:
        return False


def _wardens_of(pid: int) -> list[int]:
    """Our children that are wardens: each of them began with the same words."""
    ours = set(tree.descendants(pid))
    top = [one for one in processes_with("acp_spec.sdk.warden.watch") if one in ours]
    return [one for one in top if _parent(one) == pid]


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_output_that_is_no_json_is_a_failure_of_the_component() -> None:
    answer = asked(shell("echo not json", **READ))
    assert isinstance(answer, ErrorBody)
    assert answer.error.reason == "INTERNAL"


def test_the_card_says_what_holds_and_is_the_same_on_every_system() -> None:
    card = shell("cat", limits=AMPLE).card()
    offered = card.actions[0].sandbox
    assert isinstance(offered, Sandbox)
    assert offered.memory_bytes == AMPLE.memory_bytes
    assert set(offered.guards) == {guard.value for guard in AMPLE.demanded}
    assert lacking((Guard.MEMORY, Guard.NETWORK), offered) == ()
    assert lacking((Guard.MEMORY_EXACT, Guard.MEMORY), offered) == (Guard.MEMORY_EXACT,)
    assert lacking((Guard.MEMORY,), None) == (Guard.MEMORY,)


def test_what_this_system_cannot_hold_is_refused_when_the_action_is_offered() -> None:
    program = Program(command=("true",))
    exact = next(one for one in capabilities() if one.guard is Guard.MEMORY_EXACT)
    limits = Limits(also=frozenset({Guard.MEMORY_EXACT}))
    component = Component("strict", "1.0.0")
    if exact.held:
        offer_program(component, program, action="run", limits=limits)
        assert component.card().action("run") is not None
        return
    with pytest.raises(SandboxUnavailable, match="action run demands .*MEMORY_EXACT.*delegate"):
        offer_program(component, program, action="run", limits=limits)


def test_a_program_that_is_missing_has_done_nothing() -> None:
    component = Component("programs", "1.0.0")
    offer_program(component, Program(command=("no-such-program",)), action="run", limits=AMPLE)
    answer = asked(component)
    assert isinstance(answer, ErrorBody)
    assert (answer.error.reason, answer.error.side_effect) == ("SANDBOX_LIMIT", SideEffect.NONE)
