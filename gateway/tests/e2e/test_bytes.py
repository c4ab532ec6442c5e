"""What goes in comes out, byte for byte: through mappings, bindings, observations and verdicts.

One workflow over three components: the SDK's over HTTP, the SDK's over gRPC, and a stranger's that
moves text. Any JSON text may enter; only white space outside strings may go.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings

from gateway.tests.e2e.client import Client
from gateway.tests.e2e.json_texts import compact, values
from gateway.tests.e2e.stranger import READ, Stranger, card, elements, member

EXAMPLES = 25
KINDS = ("exact-http", "exact-grpc", "exact-raw")
WORKFLOW = """
workflow: {name}
version: 1.0.0
steps:
  - name: plan
    role: plan
    component: {name}
    input_mapping: {{goal: input.goal}}
  - {{name: act, role: execute, plan: plan}}
  - name: static
    role: execute
    component: {name}
    action: {name}.echo
    input_mapping: {{whole: input.value, bound: "act.results[1].output.kept", one: "1 + 1"}}
    output_mapping: {{kept: output.whole}}
  - {{name: remember, role: observe, component: {name}}}
  - name: judge
    role: reflect
    component: {name}
    input_mapping: {{draft: vars.kept}}
output: judge.output
"""
ODD = (
    '{"b":9007199254740993,"a":0.10,"c":123456789012345678.90,'
    '"\\u0061b":"\\u00e9 é \\/ \\ud83d\\ude00",'
    '"z":[1E400,-0,-0.0,1.0,18446744073709551616],"":null,"nested":{"y":2,"x":1}}'
)


def raw(name: str) -> Stranger:
    """The stranger's component: every payload is cut out of the request's text and put back."""

    def plan(body: str) -> str:
        first = f'{{"id":"first","action":"{name}.echo","arguments":{member(body, "input")}}}'
        second = (
            f'{{"id":"second","action":"{name}.echo","arguments":{{"before":1,"kept":null}},'
            '"depends_on":["first"],"bindings":[{"to":"/kept","from":"first","pointer":"/value"}]}'
        )
        return f'{{"plan":{{"sub_goals":[{first},{second}]}}}}'

    def echo(body: str) -> str:
        return f'{{"output":{member(body, "arguments")},"side_effect":"NONE"}}'

    def observe(body: str) -> str:
        seen = member(body, "observations")
        return f'{{"stored":1,"memory":[{{"id":"all","data":{seen}}}]}}'

    def reflect(body: str) -> str:
        return f'{{"verdict":"ACCEPT","output":{member(body, "draft")}}}'

    roles = ("PLANNER", "EXECUTOR", "OBSERVER", "REFLECTOR")
    answers = {"plan": plan, "execute": echo, "observe": observe, "reflect": reflect}
    return Stranger(card(name, *roles, actions={f"{name}.echo": READ}), answers)


@pytest.fixture(scope="module")
def sdk_component() -> Iterator[Callable[[str], dict[str, str]]]:
    """`sdk_component(name)` starts one; its ready line has `http` and `grpc`."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str) -> dict[str, str]:
        command = [sys.executable, "-m", "gateway.tests.e2e.exact", name]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        processes.append(process)
        assert process.stdout is not None
        ready: dict[str, str] = json.loads(process.stdout.readline())
        return ready

    yield start
    for process in processes:
        process.terminate()
        process.wait(20)
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture(scope="module", autouse=True)
def components(
    client: Client,
    sdk_component: Callable[[str], dict[str, str]],
    stranger: Callable[[Stranger], Stranger],
) -> None:
    client.register(sdk_component("exact-http")["http"])
    client.register(sdk_component("exact-grpc")["grpc"], transport="GRPC")
    client.register(stranger(raw("exact-raw")).url)
    for name in KINDS:
        client.put_workflow(WORKFLOW.format(name=name))


@pytest.mark.parametrize("name", KINDS)
@settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@example(value=ODD)
@given(value=values())
def test_any_json_goes_through_a_workflow_byte_for_byte(
    client: Client, name: str, value: str
) -> None:
    given = f'{{"goal":"g","value":{value}}}'
    reply = client.run(name, given)
    assert reply.json["status"] == "SUCCEEDED", reply.text
    wanted = compact(value)
    assert member(compact(reply.text), "output") == wanted
    told = compact(client.get(f"/v1/sessions/{reply.json['session_id']}/trajectory").text)
    assert member(told, "input") == compact(given)
    passed = [
        compact(given),
        f'{{"before":1,"kept":{wanted}}}',
        f'{{"whole":{wanted},"bound":{wanted},"one":2}}',
    ]
    executed = [row for row in elements(member(told, "calls")) if '"role":"EXECUTE"' in row]
    assert [member(row, "arguments") for row in executed] == passed
    assert [member(row, "output") for row in executed] == passed
    remembered = member(told, "observations")
    for text in passed:
        assert f'"arguments":{text},"output":{text}' in remembered


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a":1,"a":2}', "twice"),
        ('"\\ud800"', "surrogate"),
        ("[" * 49 + "]" * 49, "48"),
        ('{"a":01}', ""),
        ("NaN", ""),
    ],
)
def test_json_that_readers_disagree_about_is_refused_where_it_enters(
    client: Client, text: str, says: str
) -> None:
    reply = client.post("/v1/sessions", f'{{"workflow":"exact-raw","input":{text}}}')
    assert reply.status == 400, reply.text
    assert reply.reason == "INVALID_REQUEST"
    assert says in reply.message


def test_the_same_over_grpc_and_http_is_told_in_the_same_words(client: Client) -> None:
    told = set()
    for name in KINDS:
        reply = client.run(name, f'{{"goal":"g","value":{ODD}}}')
        told.add(member(compact(reply.text), "output"))
    assert told == {ODD}
