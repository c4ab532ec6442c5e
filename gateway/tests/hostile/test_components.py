"""Components that answer wickedly: plans without measure, numbers without end, texts that explode.

The session ends with a reason, others are served meanwhile, and nothing of it is our failure.
"""

import json
from collections.abc import Callable
from itertools import count
from typing import Any, Final

import pytest

from gateway.tests.e2e.client import TERMINAL, Client
from gateway.tests.e2e.stranger import READ, Answer, Stranger, card
from gateway.tests.hostile.conftest import Target
from gateway.tests.hostile.served_others import others_are_served

Make = Callable[[Stranger], Stranger]
_NUMBERS: Final = count()
HUGE: Final = ("1e400", "-1e400", "1e999999999", "1e-999999999", "9" * 5_000, "-" + "9" * 20_000,
               "0." + "0" * 5_000 + "1", "9007199254740993", "-0", "1E+5")  # fmt: skip


def goal(name: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "action": "{name}.look", "arguments": {"x": 1}, **more}


def many(number: int) -> list[dict[str, Any]]:
    return [goal(f"g{n}") for n in range(number)]


def bound(pointer: str, to: str = "/x") -> list[dict[str, Any]]:
    binding = {"to": to, "from": "a", "pointer": pointer}
    return [goal("a"), goal("b", depends_on=["a"], bindings=[binding])]


def when(op: str, value: str) -> str:
    """A plan as text, since its number stands for itself."""
    condition = f'{{"from":"a","pointer":"/n","op":"{op}","value":{value}}}'
    return (
        '[{"id":"a","action":"{name}.look","arguments":{}},{"id":"b","action":"{name}.look",'
        f'"arguments":{{}},"depends_on":["a"],"when":[{condition}]}}]'
    )


PLANS: Final[dict[str, Any]] = {
    "ten thousand sub-goals": many(10_000),
    "one id many times": [goal("same") for _ in range(5_000)],
    "a cycle": [goal("a", depends_on=["b"]), goal("b", depends_on=["a"])],
    "itself": [goal("a", depends_on=["a"])],
    "nobody": [goal("a", depends_on=["nobody"])],
    "everybody of everybody": [
        goal(f"g{n}", depends_on=[f"g{m}" for m in range(n)]) for n in range(300)
    ],
    "one dependency many times": [goal("a"), goal("b", depends_on=["a"] * 20_000)],
    "a huge id": [goal("x" * 1_000_000)],
    "an id with a zero": [goal("a\0b")],
    "an empty id": [goal("")],
    "an unknown action": [{"id": "a", "action": "rm -rf /", "arguments": {}}],
    "a huge pointer": bound("/a" * 100_000),
    "a broken pointer": bound("a~2"),
    "a pointer to nothing": bound("/no/such/place"),
    "a huge place": bound("/n", "/x" * 50_000),
    "a place of nothing": bound("/n", "/no/such/place"),
    "the whole": bound("", ""),
    "many bindings": [
        goal("a"),
        goal(
            "b",
            depends_on=["a"],
            bindings=[{"to": f"/k{n}", "from": "a", "pointer": "/n"} for n in range(3_000)],
        ),
    ],
    "a binding from a stranger": [
        goal("a", bindings=[{"to": "/x", "from": "elsewhere", "pointer": ""}])
    ],
    "deep arguments": [goal("a", arguments=json.loads("[" * 47 + "]" * 47))],
    "no plan": {"root_goal": 7},
    **{f"{op} of {text[:12]}": when(op, text) for op in ("EQ", "LT", "GE") for text in HUGE},
    "an unknown comparison": when("MATCHES", '"(a+)+$"'),
}


def asked(client: Client, stranger: Make, answers: dict[str, Answer], workflow: str) -> Any:
    """The session once it ended: a component of a name of its own, and a workflow over it."""
    name = f"wicked-{next(_NUMBERS)}"
    actions = {f"{name}.look": {**READ, "operation_timeout_ms": 60_000}}
    told = card(name, "PLANNER", "EXECUTOR", "OBSERVER", "REFLECTOR", actions=actions)
    client.register(stranger(Stranger(told, answers)).url)
    source = workflow.replace("NAME", name)
    client.put_workflow(f"workflow: {name}\nversion: 1.0.0\n{source}")
    return name


def readable(text: str) -> Any:
    """JSON whose numbers may be longer than Python reads."""
    return json.loads(text, parse_int=str, parse_float=str)


def ends(client: Client, gateway: Target, name: str, value: str = "1") -> Any:
    with others_are_served(gateway):
        view = readable(client.run(name, value).text)
    assert view["status"] in TERMINAL, view
    assert len(json.dumps(view.get("error"))) < 10_000
    told = client.get(f"/v1/sessions/{view['session_id']}/trajectory").text
    assert '"call_id":' in told, "the story was told"
    return view


@pytest.mark.parametrize("kind", sorted(PLANS))
def test_no_plan_holds_the_gateway(
    client: Client, gateway: Target, stranger: Make, kind: str
) -> None:
    names: list[str] = []

    def plan(_: str) -> str:
        goals = PLANS[kind]
        text = goals if isinstance(goals, str) else json.dumps(goals)
        return f'{{"plan":{{"root_goal":"g","sub_goals":{text.replace("{name}", names[0])}}}}}'

    answers: dict[str, Answer] = {"plan": plan, "execute": lambda _: '{"output":{"n":5}}'}
    workflow = """
steps:
  - {name: plan, role: plan, component: NAME, input_mapping: {goal: "'g'"}}
  - {name: act, role: execute, plan: plan}
output: act.status
limits: {deadline_ms: 10000, max_sub_goals: 100}
"""
    names.append(asked(client, stranger, answers, workflow))
    view = ends(client, gateway, names[0])
    if view["status"] == "FAILED":
        assert view["error"]["reason"] in (
            "PLAN_REJECTED", "CONTRACT_VIOLATION", "NO_COMPONENT", "TIMEOUT",
        ), view["error"]  # fmt: skip
    gateway.assert_well()


@pytest.mark.parametrize("number", HUGE)
def test_no_number_holds_the_gateway(
    client: Client, gateway: Target, stranger: Make, number: str
) -> None:
    answers: dict[str, Answer] = {"execute": lambda _: f'{{"output":{{"n":{number}}}}}'}
    workflow = """
steps:
  - {name: one, role: execute, component: NAME, action: NAME.look, input_mapping: {x: input.n}}
  - name: two
    role: execute
    component: NAME
    action: NAME.look
    condition: "one.output.n > 1 || input.n == one.output.n"
    input_mapping: {a: "one.output.n + 1", b: "[one.output.n, input.n]", c: one.output.n}
    on_error: continue
output: "{'a': one.output.n, 'b': string(input.n)}"
limits: {deadline_ms: 10000}
"""
    name = asked(client, stranger, answers, workflow)
    view = ends(client, gateway, name, f'{{"n":{number}}}')
    if view["status"] == "FAILED":
        assert view["error"]["reason"] == "CONTRACT_VIOLATION", view["error"]
    gateway.assert_well()


ANSWERS: Final[dict[str, str]] = {
    "a poll at once": '{"operation":{"poll_after_ms":0}}',
    "a poll never": '{"operation":{"poll_after_ms":9223372036854775807}}',
    "a negative poll": '{"operation":{"poll_after_ms":-1}}',
    "negative retries": '{"output":1,"retries_spent":-5}',
    "endless retries": '{"output":1,"retries_spent":9223372036854775807}',
    "endless usage": '{"output":1,"usage":{"tokens":9223372036854775807,"cost_micros":1}}',
    "beyond int64": '{"output":1,"retries_spent":18446744073709551616}',
    "both": '{"output":1,"operation":{"poll_after_ms":1}}',
    "neither": "{}",
    "an unknown side effect": '{"output":1,"side_effect":"MAYBE"}',
    "many model calls": '{"output":1,"llm_calls":['
    + ",".join([f'{{"id":"{n}","model":"m","prompt":"p"}}' for n in range(2_000)])
    + "]}",
    "a deep output": '{"output":' + "[" * 48 + "]" * 48 + "}",
    "a deeper output": '{"output":' + "[" * 60 + "]" * 60 + "}",
    "a wide output": '{"output":{' + ",".join(f'"k{n}":{n}' for n in range(100_000)) + "}}",
    "a long text": '{"output":"' + "\\u0000" * 300_000 + '"}',
    "half a pair": '{"output":"\\ud800"}',
    "a key twice": '{"output":{"a":1,"a":2}}',
    "a null": '{"output":null}',
    "a list": "[]",
    "a number": "1e400",
    "an error of words": '{"error":"no"}',
    "an error of numbers": '{"error":{"code":5,"reason":7,"message":9}}',
    "an error without end": '{"error":{"code":"INTERNAL","reason":"R","message":"'
    + "m" * 2_000_000
    + '"}}',
    "a reason of bytes": '{"error":{"code":"INTERNAL","reason":"a\\u0000b\\n","message":"\\r\\n"}}',
}


@pytest.mark.parametrize("kind", sorted(ANSWERS))
def test_no_answer_holds_the_gateway(
    client: Client, gateway: Target, stranger: Make, kind: str
) -> None:
    answers: dict[str, Answer] = {
        "execute": lambda _: ANSWERS[kind],
        "cancel": lambda _: '{"state":"UNKNOWN_CALL","side_effect":"UNKNOWN"}',
    }
    workflow = """
steps:
  - {name: one, role: execute, component: NAME, action: NAME.look}
output: one.output
limits: {deadline_ms: 3000}
"""
    name = asked(client, stranger, answers, workflow)
    with others_are_served(gateway):
        session_id = client.open(name)
        if "poll" in kind:
            client.until(session_id, lambda view: view["status"] != "RUNNING")
            client.post(f"/v1/sessions/{session_id}/cancel")
        view = client.ended(session_id)
    if view["status"] == "FAILED":
        assert len(json.dumps(view["error"])) < 20_000
    gateway.assert_well()


@pytest.mark.parametrize("after_ms", ["0", "-1", "9223372036854775807", "1e30", '"soon"'])
def test_no_retry_after_holds_the_gateway(
    client: Client, gateway: Target, stranger: Make, after_ms: str
) -> None:
    failing = (
        '{"error":{"code":"UNAVAILABLE","reason":"OVERLOADED","message":"m","retryable":true,'
        f'"side_effect":"NONE","retry_after_ms":{after_ms}}}}}'
    )
    asked_for: list[str] = []

    def execute(body: str) -> tuple[int, str]:
        asked_for.append(body)
        return 503, failing

    workflow = """
steps:
  - {name: one, role: execute, component: NAME, action: NAME.look}
output: one.output
limits: {deadline_ms: 2000}
"""
    name = asked(client, stranger, {"execute": execute}, workflow)
    view = ends(client, gateway, name)
    assert view["status"] == "FAILED"
    assert len(asked_for) <= 3, "two retries a call at most"
    gateway.assert_well()
