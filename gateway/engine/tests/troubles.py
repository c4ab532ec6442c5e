"""Random workflows, plans and troubled components: all of it hangs on one seed, to be repeated.

Components are pure: what they answer is a hash of the seed, the call and the attempt.
"""

import random

import msgspec

from acp_spec.bindings.errors import error
from acp_spec.model.calls import OperationState
from acp_spec.model.enums import FeedbackKind, OperationStatus, SideEffect, StepRole
from acp_spec.model.errors import AcpError, Reason
from acp_spec.model.ids import unit_interval
from acp_spec.model.payload import payload
from acp_spec.model.session import Feedback
from acp_spec.model.times import rfc3339
from gateway.engine.definition import Workflow
from gateway.engine.events import FeedbackGiven
from gateway.engine.states import CallState, Phase
from gateway.engine.tests.casting import Cast, Said, Sent, Terms, operation_ended
from gateway.engine.tests.playing import Play
from gateway.engine.tests.stage import (
    CATALOG,
    STORED,
    accepted,
    failed,
    gave,
    goal,
    judged,
    planned,
    workflow_of,
)

ACTIONS = ("read", "pay", "book", "put", "peek", "brief", "grow", "print")
VERDICTS = ("ACCEPT", "ACCEPT", "RETRY", "RETRY", "REPLAN", "FALLBACK", "ABORT")

TROUBLES: tuple[tuple[float, str], ...] = (
    (0.50, "fine"),
    (0.05, "spent"),
    (0.07, "refused"),
    (0.05, "final"),
    (0.09, "unknown"),
    (0.05, "silent"),
    (0.06, "late"),
    (0.03, "not_sent"),
    (0.03, "garbage"),
    (0.07, "operation"),
)


class Chance:
    """Numbers hashed from the seed and whatever names the question."""

    def __init__(self, seed: int) -> None:
        self._seed = str(seed)

    def of(self, *parts: object) -> float:
        return unit_interval(self._seed, *(str(part) for part in parts))

    def pick(self, choices: tuple[str, ...], *parts: object) -> str:
        return choices[int(self.of(*parts) * len(choices))]


def trouble(at: float) -> str:
    for share, name in TROUBLES:
        at -= share
        if at < 0:
            return name
    return "fine"


def random_workflow(seed: int) -> Workflow:
    """A workflow of one to six steps."""
    dice = random.Random(seed)
    steps = []
    has_plan = dice.random() < 0.6
    if has_plan:
        steps.append(f"name: plan, role: plan{_keep_on(dice)}")
        require = _maybe(dice, ", require: all", 0.3)
        steps.append(f"name: act, role: execute, plan: plan{require}{_keep_on(dice)}")
    for number in range(dice.randint(0 if has_plan else 1, 2)):
        argument = f'input_mapping: {{n: "{dice.randint(0, 1)}"}}'
        condition = _maybe(dice, ', condition: "session.loop == 0"', 0.2)
        chosen = f"name: s{number}, role: execute, action: {dice.choice(ACTIONS)}"
        steps.append(f"{chosen}, {argument}{condition}{_keep_on(dice)}")
    if dice.random() < 0.5:
        steps.append(f"name: remember, role: observe{_keep_on(dice)}")
    if dice.random() < 0.7:
        back = "{REPLAN: plan, RETRY: act}" if has_plan else "{REPLAN: s0, RETRY: s0}"
        steps.append(f"name: judge, role: reflect, on: {back}{_keep_on(dice)}")
    fallback = _maybe(dice, "\nfallback: {output: input}", 0.5)
    lines = "\n".join(f"  - {{{text}}}" for text in steps)
    return workflow_of(
        f"workflow: w{seed}\nversion: 1.0.0\nsteps:\n{lines}\n"
        f"limits: {{max_loops: {dice.randint(1, 4)}}}\noutput: input{fallback}\n"
    )


def _maybe(dice: random.Random, text: str, chance: float) -> str:
    return text if dice.random() < chance else ""


def _keep_on(dice: random.Random) -> str:
    return _maybe(dice, ", on_error: continue", 0.2)


def random_plan(chance: Chance, call_id: str) -> Said:
    """Up to five sub-goals in a graph, with bindings that mostly resolve."""
    count = int(chance.of("size", call_id) * 6)
    goals = []
    for number in range(count):
        fields: dict[str, object] = {"arguments": {"n": int(chance.of("n", call_id, number) * 2)}}
        if number and chance.of("needs", call_id, number) < 0.5:
            needed = f"g{int(chance.of('which', call_id, number) * number)}"
            fields["depends_on"] = [needed]
            if chance.of("binds", call_id, number) < 0.5:
                pointer = chance.pick(("/done", "/missing", ""), "pointer", call_id, number)
                fields["bindings"] = [{"to": "/v", "from": needed, "pointer": pointer}]
            if chance.of("when", call_id, number) < 0.2:
                fields["when"] = [{"from": needed, "pointer": "/done", "op": "EXISTS"}]
        if chance.of("repeat", call_id, number) < 0.2:
            fields["repeat"] = True
        goals.append(goal(f"g{number}", chance.pick(ACTIONS, "action", call_id, number), **fields))
    if chance.of("broken", call_id) < 0.05:
        goals.append(goal("g0", "read", depends_on=["nobody"]))
    return planned(*goals)


def random_component(chance: Chance) -> Cast:
    """Components, operations and a gate that all misbehave now and then."""

    def component(sent: Sent) -> Said | None:
        created = sent.created
        kind = trouble(chance.of("trouble", created.call_id, sent.attempt))
        if kind == "operation" and created.role is not StepRole.EXECUTE:
            kind = "fine"
        if kind == "silent":
            return None
        said = _good(chance, sent) if kind in ("fine", "spent", "late") else _bad(kind)
        after_ms = 1 + int(chance.of("speed", created.call_id, sent.attempt) * 80)
        if kind == "late":
            after_ms = sent.timeout_ms + after_ms
        spent = min(sent.lease, 1) if kind == "spent" else 0
        return msgspec.structs.replace(said, after_ms=after_ms, retries_spent=spent)

    def on_cancel(sent: Sent) -> Said | None:
        if chance.of("stops", sent.created.call_id) < 0.5:
            return None
        return failed(Reason.CANCELLED, SideEffect.NONE)

    def operation(call_id: str, nth: int) -> OperationState | AcpError | None:
        at = chance.of("operation", call_id, nth)
        if at < 0.4:
            return OperationState(status=OperationStatus.RUNNING, poll_after_ms=int(at * 2000))
        if at < 0.5:
            return None
        if at < 0.6:
            return error(Reason.NOT_FOUND, "forgotten")
        if at < 0.8:
            return OperationState(status=OperationStatus.SUCCEEDED, output=payload(b'{"done":1}'))
        failure = error(Reason.INTERNAL, "it broke")
        return OperationState(
            status=OperationStatus.FAILED, error=failure, side_effect=SideEffect.UNKNOWN
        )

    def gate(call: CallState, attempt: int, now_ms: int) -> AcpError | int | None:
        at = chance.of("gate", call.created.call_id, attempt, now_ms // 50)
        if at < 0.04:
            return error(Reason.OVERLOADED, "full", retry_after_ms=20)
        return 30 if at < 0.10 else None

    return Cast(component=component, on_cancel=on_cancel, operation=operation, gate=gate)


def _good(chance: Chance, sent: Sent) -> Said:
    call_id = sent.created.call_id
    match sent.created.role:
        case StepRole.PLAN:
            return random_plan(chance, call_id)
        case StepRole.OBSERVE:
            return STORED
        case StepRole.REFLECT:
            verdict = chance.pick(VERDICTS, "verdict", call_id)
            asked = msgspec.json.decode(sent.body, type=_Judging)
            named = [c.call_id for c in asked.calls if chance.of("again", c.call_id, call_id) < 0.4]
            return judged(verdict, retry_call_ids=named, critique="hm")
        case StepRole.EXECUTE:
            return gave({"done": int(chance.of("done", call_id) * 3)})


class _Named(msgspec.Struct):
    call_id: str


class _Judging(msgspec.Struct):
    calls: list[_Named] = []


def _bad(kind: str) -> Said:
    match kind:
        case "refused":
            return failed(Reason.OVERLOADED, SideEffect.NONE)
        case "final":
            return failed(Reason.INVALID_REQUEST)
        case "unknown":
            return failed(Reason.UNAVAILABLE, SideEffect.UNKNOWN)
        case "not_sent":
            said = failed(Reason.UNAVAILABLE, SideEffect.NONE)
            return msgspec.structs.replace(said, not_sent=True)
        case "garbage":
            return Said(response=b'{"output":1,"verdict":"MAYBE","plan":7,"stored":"x"}')
        case _:
            return accepted(50)


def random_play(seed: int) -> Play:
    """A whole session, opened, with a client that may cancel, call back or judge at any moment."""
    chance = Chance(seed)
    deadline_ms = int(chance.of("deadline") ** 2 * 20_000) + 1
    if chance.of("generous") < 0.6:
        deadline_ms = 600_000
    terms = Terms(
        deadline_ms=deadline_ms,
        seed=seed,
        retry_budget=int(chance.of("budget") * 9),
        cancel_grace_ms=int(chance.of("grace") * 500),
        hedge_after_ms=int(chance.of("hedge_after") * 60) if chance.of("hedges") < 0.5 else 0,
    )
    play = Play(random_workflow(seed % 400), CATALOG, random_component(chance), terms=terms)
    if chance.of("cancels") < 0.3:
        play.at(int(chance.of("cancel_at") ** 2 * 2_000), play.cancel)
    if chance.of("calls_back") < 0.5:
        for number in range(4):
            play.at(int(chance.of("back_at", number) * 1_000), lambda: call_back(play))
    if chance.of("feedback") < 0.3:
        play.at(int(chance.of("feedback_at") * 3_000), lambda: judge(play))
    return play


def call_back(play: Play) -> None:
    """The first operation that runs reports its end itself."""
    for call in play.state.open_calls():
        if call.phase is Phase.OPERATION:
            play.feed(operation_ended(call, play.now_ms, output=b'{"done":9}'))
            return


def judge(play: Play) -> None:
    """Somebody gives feedback."""
    feedback = Feedback(kind=FeedbackKind.RATING, score=0.5, author="a", time=rfc3339(play.now_ms))
    play.feed(FeedbackGiven(at_ms=play.now_ms, feedback=feedback, feedback_id="f"))
